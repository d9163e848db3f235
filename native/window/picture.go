// SPDX-License-Identifier: Apache-2.0

package main

import (
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
)

// picture draws the elements of a field as screen.wgsl does.
func picture(field []float32, width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.SetRGBA(x, y, shade(field, (float64(x)+0.5)/float64(width)*size-0.5, (float64(y)+0.5)/float64(height)*size-0.5))
		}
	}
	return img
}

var palette = [...][3]float64{{0.02, 0.05, 0.13}, {0.03, 0.22, 0.36}, {0.09, 0.56, 0.58}, {0.96, 0.78, 0.47}, {1, 0.97, 0.88}}

func shade(field []float32, x, y float64) color.RGBA {
	h := min(max(elevation(field, x, y)*10, 0), 3.999)
	i, part := int(h), h-math.Floor(h)
	dx := -6 * (elevation(field, x+1, y) - elevation(field, x-1, y))
	dy := -6 * (elevation(field, x, y+1) - elevation(field, x, y-1))
	light := max((-0.5*dx-0.6*dy+0.8)/math.Sqrt((dx*dx+dy*dy+1)*(0.5*0.5+0.6*0.6+0.8*0.8)), 0)
	var c [3]uint8
	for k := range c {
		v := mix(palette[i][k], palette[i+1][k], part)*(0.35+0.8*light) + 0.35*math.Pow(light, 40)
		c[k] = uint8(math.Round(255 * min(v, 1)))
	}
	return color.RGBA{c[0], c[1], c[2], 255}
}

func elevation(field []float32, x, y float64) float64 {
	col, row := int(math.Floor(x)), int(math.Floor(y))
	at := func(row, col int) float64 { return float64(field[(row+size)%size*size+(col+size)%size]) }
	px, py := x-math.Floor(x), y-math.Floor(y)
	return mix(mix(at(row, col), at(row, col+1), px), mix(at(row+1, col), at(row+1, col+1), px), py)
}

func mix(a, b, part float64) float64 { return a*(1-part) + b*part }

func writePNG(name string, img image.Image) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		return err
	}
	return f.Close()
}
