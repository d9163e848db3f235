// SPDX-License-Identifier: Apache-2.0

package pipelines

import "math"

// Scene draws frame n of a moving scene, for those who have no images: discs that cross in front of a background that fades, and a square
// that turns. frame has red, green, blue and opacity of each pixel, row by row; what it is too short for is left out.
func Scene(frame []byte, width, height, n int) {
	if width < 1 || height < 1 || len(frame)/4 < width {
		return
	}
	c := canvas{frame, width, min(height, len(frame)/4/width)}
	for y := range c.height {
		v := byte(40 + 70*y/height)
		c.span(y, 0, width, [3]byte{v / 2, v, v + 40})
	}
	t, w, h := float64(n)/30, float64(width), float64(height)
	size := min(w, h)
	for i, colour := range [...][3]byte{{235, 94, 85}, {250, 200, 90}, {90, 200, 160}} {
		phase := t*(0.7+0.25*float64(i)) + 2.1*float64(i)
		c.disc(w*(0.5+0.38*math.Sin(phase)), h*(0.5+0.32*math.Cos(1.3*phase+float64(i))), size*(0.1+0.03*float64(i)), colour)
	}
	c.square(w/2, h/2, size*0.2, t*0.6, [3]byte{240, 240, 250})
}

type canvas struct {
	pixels        []byte
	width, height int
}

// span fills pixels x0 to x1-1 of a row.
func (c *canvas) span(y, x0, x1 int, colour [3]byte) {
	x0, x1 = max(x0, 0), min(x1, c.width)
	if x0 >= x1 {
		return
	}
	row := c.pixels[4*(y*c.width+x0) : 4*(y*c.width+x1)]
	row[0], row[1], row[2], row[3] = colour[0], colour[1], colour[2], 255
	for done := 4; done < len(row); done *= 2 {
		copy(row[done:], row[:done])
	}
}

func (c *canvas) disc(x, y, r float64, colour [3]byte) {
	for row := max(int(math.Ceil(y-r)), 0); row < min(int(y+r)+1, c.height); row++ {
		half := math.Sqrt(max(r*r-(float64(row)-y)*(float64(row)-y), 0))
		c.span(row, int(math.Ceil(x-half)), int(math.Floor(x+half))+1, colour)
	}
}

// square fills one that is turned by an angle: in each row what is within its four sides.
func (c *canvas) square(x, y, half, angle float64, colour [3]byte) {
	sin, cos := math.Sincos(angle)
	for row := range c.height {
		dy := float64(row) - y
		from, to := math.Inf(-1), math.Inf(1)
		// Within a side: |dx*a + dy*b| <= half.
		for _, side := range [...][2]float64{{cos, sin}, {-sin, cos}} {
			a, b := side[0], dy*side[1]
			if math.Abs(a) < 1e-9 {
				if math.Abs(b) > half {
					from, to = 1, 0
				}
				continue
			}
			lo, hi := (-half-b)/a, (half-b)/a
			from, to = max(from, min(lo, hi)), min(to, max(lo, hi))
		}
		if from <= to {
			c.span(row, int(math.Ceil(max(x+from, 0))), int(math.Floor(min(x+to, float64(c.width))))+1, colour)
		}
	}
}
