// SPDX-License-Identifier: Apache-2.0

package nn

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Window says how a window moves over images: what convolutions and pooling have in common. Strides and dilations of 0 are 1.
type Window struct {
	Channels, Height, Width       int // of the images
	KernelHeight, KernelWidth     int
	StrideHeight, StrideWidth     int // from one place of the window to the next
	DilationHeight, DilationWidth int // from one element of the window to the next
	Top, Bottom, Left, Right      int // how far the window reaches over the edges
}

// OutputSize returns how many places the window has. An error says what of the window makes no sense.
func (w Window) OutputSize() (height, width int, err error) {
	g, err := w.grid("OutputSize")
	if err != nil {
		return 0, 0, err
	}
	return g.outHeight, g.outWidth, nil
}

// grid is a window that was checked.
type grid struct {
	Window
	outHeight, outWidth int
	image, out, kernel  int // elements of a channel of an image, of a channel of a result, and of the window
}

func (w Window) grid(op string) (g grid, err error) {
	for _, p := range []*int{&w.StrideHeight, &w.StrideWidth, &w.DilationHeight, &w.DilationWidth} {
		if *p == 0 {
			*p = 1
		}
	}
	least := min(w.Channels, w.Height, w.Width, w.KernelHeight, w.KernelWidth)
	least = min(least, w.StrideHeight, w.StrideWidth, w.DilationHeight, w.DilationWidth)
	if least < 1 || min(w.Top, w.Bottom, w.Left, w.Right) < 0 {
		return g, fail(op, gpu.ErrInvalid, "sizes, strides and dilations are at least 1, padding at least 0")
	}
	g = grid{Window: w}
	if g.outHeight, err = places(op, w.Height, w.KernelHeight, w.StrideHeight, w.DilationHeight, w.Top, w.Bottom); err != nil {
		return g, err
	}
	if g.outWidth, err = places(op, w.Width, w.KernelWidth, w.StrideWidth, w.DilationWidth, w.Left, w.Right); err != nil {
		return g, err
	}
	// Everything that indices count: images with their padding, images of gradients, results and windows of all channels.
	height := w.Height + max(w.Top+w.Bottom, (w.KernelHeight-1)*w.DilationHeight)
	width := w.Width + max(w.Left+w.Right, (w.KernelWidth-1)*w.DilationWidth)
	err1 := counts(op, w.Channels, height, width)
	err2 := counts(op, w.Channels, w.KernelHeight, w.KernelWidth)
	err3 := counts(op, w.Channels, g.outHeight, g.outWidth)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return g, err
		}
	}
	g.image, g.out, g.kernel = w.Height*w.Width, g.outHeight*g.outWidth, w.KernelHeight*w.KernelWidth
	return g, nil
}

// places returns how many places a window has along one dimension.
func places(op string, size, kernel, stride, dilation, before, after int) (int, error) {
	const most = math.MaxInt32 / 4 // so that sums of two fit
	if max(size, kernel, stride, dilation, before, after) > most || kernel > 1 && dilation > most/(kernel-1) {
		return 0, fail(op, gpu.ErrLimit, "a size beyond int32")
	}
	room := size + before + after - (kernel-1)*dilation - 1
	if room < 0 {
		return 0, fail(op, gpu.ErrInvalid, "the window is larger than the padded image")
	}
	return room/stride + 1, nil
}

// images checks that rows are images of some number of elements, and returns their number.
func (g grid) images(op string, x Operand, channels, size int) (*Expr, int, error) {
	e, shape, err := read(op, x)
	if err != nil {
		return nil, 0, err
	}
	if shape[1] != channels*size {
		return nil, 0, shapeError(op, fault.Needs("each image", channels*size, "element"), shape, fault.Shape{shape[0], channels * size})
	}
	// The numbers of columns of what is multiplied or reduced.
	if err := counts(op, shape[0], max(channels, g.Channels), max(g.out, g.image)); err != nil {
		return nil, 0, err
	}
	return e, shape[0], nil
}

// canvas says where the elements of images go in other images: element (h, w) of the new ones is ((h+top)/sh, (w+left)/sw) of the
// old ones, if there is one.
type canvas struct {
	channels, height, width int // of the new images
	top, left, sh, sw       int
}

// put makes images of others. Elements that come from nowhere are 0 or, if that is another number, other.
func put[T matrix.Elem](x *matrix.Expr[T], height, width int, c canvas, other T) *matrix.Expr[T] {
	j := colsOf(c.channels * c.height * c.width)
	h := plus(rest(over(j, c.width), c.height), c.top)
	w := plus(rest(j, c.width), c.left)
	inside := below(h, height*c.sh).And(below(w, width*c.sw))
	if c.sh > 1 {
		inside = inside.And(matrix.Equal(rest(h, c.sh), number(0)))
	}
	if c.sw > 1 {
		inside = inside.And(matrix.Equal(rest(w, c.sw), number(0)))
	}
	place := times(times(over(j, c.height*c.width), height).Add(over(h, c.sh)), width).Add(over(w, c.sw))
	n, _ := x.Dims()
	y := matrix.Gather(x, rowsOf(n), matrix.Where(inside, place, number(-1)))
	if other != *new(T) {
		y = matrix.Where(matrix.Convert[T](inside), y, matrix.Fill(1, 1, other))
	}
	return y
}

// padded are the images with their padding.
func padded[T matrix.Elem](g grid, x *matrix.Expr[T], other T) (y *matrix.Expr[T], height, width int) {
	height, width = g.Height+g.Top+g.Bottom, g.Width+g.Left+g.Right
	if height == g.Height && width == g.Width {
		return x, height, width
	}
	return put(x, g.Height, g.Width, canvas{g.Channels, height, width, -g.Top, -g.Left, 1, 1}, other), height, width
}

// spread are results, or their gradients, with as much in between and around them that a window of stride 1, turned round, meets
// at each place of an image those that the image's element is part of.
func spread[T matrix.Elem](g grid, d *matrix.Expr[T], channels int) (y *matrix.Expr[T], height, width int) {
	reach, side := (g.KernelHeight-1)*g.DilationHeight, (g.KernelWidth-1)*g.DilationWidth
	height, width = g.Height+reach, g.Width+side
	c := canvas{channels, height, width, g.Top - reach, g.Left - side, g.StrideHeight, g.StrideWidth}
	return put(d, g.outHeight, g.outWidth, c, *new(T)), height, width
}

// walk is how a window goes over images that need no padding.
type walk struct {
	n, channels, height, width int // of the images
	outHeight, outWidth        int
	strideHeight, strideWidth  int
}

func (g grid) forward(n, height, width int) walk {
	return walk{n, g.Channels, height, width, g.outHeight, g.outWidth, g.StrideHeight, g.StrideWidth}
}

func (g grid) backward(n, channels, height, width int) walk {
	return walk{n, channels, height, width, g.Height, g.Width, 1, 1}
}

// columns has a column for each image and each place of the window, as in "High Performance Convolutional Neural Networks for Document
// Processing" (Chellapilla, Puri and Simard, 2006): the elements of all channels below the window. With each set, every channel has
// columns of its own, in the order of images, channels and places.
func columns[T matrix.Elem](g grid, x *matrix.Expr[T], w walk, each bool) *matrix.Expr[T] {
	rows, places := g.kernel, w.outHeight*w.outWidth
	count := w.n * places
	i := func() *whole { return rowsOf(rows) }
	j := func() *whole { return colsOf(count) }
	var channel, image *whole
	if each {
		count *= w.channels
		channel, image = rest(over(j(), places), w.channels), over(j(), places*w.channels)
	} else {
		rows *= w.channels
		channel, image = over(i(), g.kernel), over(j(), places)
	}
	h := times(rest(over(j(), w.outWidth), w.outHeight), w.strideHeight).
		Add(times(rest(over(i(), g.KernelWidth), g.KernelHeight), g.DilationHeight))
	v := times(rest(j(), w.outWidth), w.strideWidth).Add(times(rest(i(), g.KernelWidth), g.DilationWidth))
	return matrix.Gather(x, image, times(times(channel, w.height).Add(h), w.width).Add(v))
}
