// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// leaf returns an operand of a size: a matrix, a part of one, its transpose, or a number.
func (k *kind[T]) leaf(dev *device, rows, cols int) term[T] {
	for range 8 {
		h := pick(k.player, k.handles)
		if h.dev != dev {
			continue
		}
		if h.rows == rows && h.cols == cols {
			return k.n.term(h.m, rows, cols, func(i, j int) int64 { return *h.cell(i, j) })
		}
		if h.rows == cols && h.cols == rows {
			return k.n.term(h.m.T(), rows, cols, func(i, j int) int64 { return *h.cell(j, i) })
		}
		if h.rows >= rows && h.cols >= cols {
			i, j := k.intn(h.rows-rows+1), k.intn(h.cols-cols+1)
			return k.n.term(h.m.Slice(i, i+rows, j, j+cols), rows, cols, func(r, c int) int64 { return *h.cell(i+r, j+c) })
		}
	}
	v := k.fresh(1)[0]
	return k.n.term(matrix.Fill(rows, cols, k.n.to(v)), rows, cols, func(int, int) int64 { return v })
}

// gen makes an expression of a size on a device.
func (k *kind[T]) gen(dev *device, rows, cols, depth int) term[T] {
	if depth == 0 {
		return k.leaf(dev, rows, cols)
	}
	switch k.intn(10) {
	case 0, 1, 2, 3:
		a := k.gen(dev, rows, cols, depth-1)
		b := a // the same one twice, now and then
		if !k.chance(6) {
			b = k.gen(dev, []int{rows, rows, 1}[k.intn(3)], []int{cols, cols, 1}[k.intn(3)], depth-1)
		}
		op := pick(k.player, k.bi)
		return k.n.term(op.call(a.e, b.e), rows, cols, func(i, j int) int64 { return op.f(a.at(i, j), b.at(i, j)) }, a, b)
	case 4, 5:
		a := k.gen(dev, rows, cols, depth-1)
		op := pick(k.player, k.un(int64(k.intn(4))))
		return k.n.term(op.call(a.e), rows, cols, func(i, j int) int64 { return op.f(a.at(i, j)) }, a)
	case 6:
		a, b, c := k.gen(dev, rows, cols, depth-1), k.leaf(dev, rows, cols), k.leaf(dev, rows, cols)
		return k.n.term(matrix.Where(a.e, b.e, c.e), rows, cols, func(i, j int) int64 {
			if a.at(i, j) != 0 {
				return b.at(i, j)
			}
			return c.at(i, j)
		}, a, b, c)
	case 7:
		a := k.gen(dev, cols, rows, depth-1)
		return k.n.term(matrix.Transpose(a.e), rows, cols, func(i, j int) int64 { return a.at(j, i) }, a)
	case 8:
		return k.product(dev, rows, cols, depth)
	default:
		return k.folded(dev, rows, cols, depth)
	}
}

func (k *kind[T]) product(dev *device, rows, cols, depth int) term[T] {
	inner := k.size()
	a, b := k.gen(dev, rows, inner, depth-1), k.gen(dev, inner, cols, depth-1)
	large := false
	t := k.n.term(matrix.Mul(a.e, b.e), rows, cols, func(i, j int) int64 {
		sum, size := int64(0), int64(0)
		for l := range inner {
			x := a.at(i, l) * b.at(l, j)
			sum += x
			size += max(x, -x)
		}
		large = large || k.n.limit > 0 && size > k.n.limit
		return sum
	}, a, b)
	t.inexact = t.inexact || large
	return t
}

func (k *kind[T]) folded(dev *device, rows, cols, depth int) term[T] {
	f := pick(k.player, k.fold)
	call, r, c := f.all, k.size(), k.size()
	switch {
	case rows == 1 && cols == 1:
	case rows == 1:
		call, c = f.cols, cols
	case cols == 1:
		call, r = f.rows, rows
	default:
		return k.leaf(dev, rows, cols)
	}
	a := k.gen(dev, r, c, depth-1)
	size := int64(0)
	for _, x := range a.v {
		size += max(x, -x)
	}
	t := k.n.term(call(a.e), rows, cols, func(i, j int) int64 {
		first, out := true, int64(0)
		for y := range r {
			for x := range c {
				if cols > 1 && x != j || rows > 1 && y != i {
					continue
				}
				if v := a.at(y, x); first {
					first, out = false, v
				} else {
					out = f.f(out, v)
				}
			}
		}
		return out
	}, a)
	t.inexact = t.inexact || k.n.limit > 0 && size > k.n.limit
	return t
}

// exact returns an expression whose elements the model knows.
func (k *kind[T]) exact(dev *device, rows, cols int) term[T] {
	for range 5 {
		if t := k.gen(dev, rows, cols, 1+k.intn(3)); !t.inexact {
			return t
		}
	}
	v := k.fresh(1)[0]
	return k.n.term(matrix.Fill(rows, cols, k.n.to(v)), rows, cols, func(int, int) int64 { return v })
}

// assign computes an expression into a matrix, whose size may change if nobody shares it.
func (k *kind[T]) assign(h *handle[T]) string {
	rows, cols := h.rows, h.cols
	anew := h.sole() && !h.fixed && k.chance(2)
	if anew {
		rows, cols = k.size(), k.size()
	}
	t := k.exact(h.dev, rows, cols)
	k.note("assign %dx%d to %v", rows, cols, h)
	k.wrote(h, h.m.AssignContext(k.ctx, t.e), func() {
		if rows != h.rows || cols != h.cols {
			k.resized(h, rows, cols)
		}
		h.set(t.v)
	})
	return fmt.Sprintf("assigned %dx%d to %v", rows, cols, h)
}

// resized says that a matrix that nobody shares has another size.
func (k *kind[T]) resized(h *handle[T], rows, cols int) {
	h.rows, h.cols, h.s = rows, cols, &store[T]{cells: make([]int64, rows*cols)}
	h.compact()
}

// read compares what the ways of reading return.
func (k *kind[T]) read(h *handle[T]) string {
	how := k.intn(5)
	k.note("read %d of %v", how, h)
	switch how {
	case 0:
		k.same(h)
	case 1:
		i, j := k.intn(h.rows), k.intn(h.cols)
		v, err := h.m.At(k.ctx, i, j)
		if k.ok(h.dev, err) {
			k.equal("at", []T{v}, []int64{*h.cell(i, j)})
		}
	case 2:
		equal, err := matrix.EqualAll(k.ctx, h.m, h.m)
		if k.ok(h.dev, err) && !equal {
			k.fail("%v does not equal itself", h)
		}
	case 3:
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		_, err := h.m.Read(ctx)
		if err != nil {
			k.refused("a cancelled read", err, context.Canceled, gpu.ErrNoMemory, gpu.ErrLimit)
		}
		k.same(h)
	default:
		dst := make([]T, h.rows*h.cols+3)
		if k.ok(h.dev, h.m.ReadTo(k.ctx, dst)) {
			k.equal("read", dst[:h.rows*h.cols], h.values())
		}
	}
	return fmt.Sprintf("read %d of %v", how, h)
}

// compute reads an expression, or makes a matrix of it.
func (k *kind[T]) compute(h *handle[T]) string {
	rows, cols := h.rows, h.cols
	if k.chance(2) {
		rows, cols = k.size(), k.size()
	}
	t := k.exact(h.dev, rows, cols)
	k.note("compute %dx%d on %s", rows, cols, h.dev.name)
	if k.chance(2) {
		x := matrix.AddScalar(t.e, k.n.to(0)).On(h.dev.Device)
		got, err := x.Read(k.ctx)
		if k.ok(h.dev, err) {
			k.equal("the expression", got, t.v)
		}
		return fmt.Sprintf("computed %dx%d on %s", rows, cols, h.dev.name)
	}
	m, err := matrix.AddScalar(t.e, k.n.to(0)).On(h.dev.Device).Eval()
	if k.ok(h.dev, err) {
		k.adopt(k.own(m, h.dev, rows, cols, t.v))
	}
	return fmt.Sprintf("evaluated %dx%d on %s", rows, cols, h.dev.name)
}

// realFunctions compares functions of real numbers within what is said of them.
func (k *kind[T]) realFunctions() string {
	h := pick(k.player, k.handles)
	x := matrix.Clamp(h.m, k.n.to(-4), k.n.to(4))
	v := h.values()
	f := pick(k.player, k.re)
	k.note("real function of %v", h)
	got, err := f.call(x).Read(k.ctx)
	if !k.ok(h.dev, err) {
		return "no function"
	}
	tol := 1e-5
	if k.n.name == "float16" {
		tol = 2e-3
	}
	for i, g := range got {
		var y float64
		switch g := any(g).(type) {
		case float32:
			y = float64(g)
		case matrix.Half:
			y = float64(g.Float32())
		}
		if want := f.f(float64(min(max(v[i], -4), 4))); math.Abs(y-want) > tol*(1+math.Abs(want)) {
			k.fail("a function of %v: element %d is %v, want %v", h, i, y, want)
		}
	}
	return fmt.Sprintf("real function of %v", h)
}

// refuse makes calls that must fail and change nothing.
func (k *kind[T]) refuse(h *handle[T]) string {
	how := k.intn(7)
	k.note("refuse %d: %v", how, h)
	switch how {
	case 0:
		if h.fixed || h.view {
			k.refused("another size", h.m.Assign(matrix.Fill(h.rows+1, h.cols, k.n.to(1))), errShape...)
		}
	case 1:
		k.refused("another length", h.m.SetSlice(make([]T, h.rows*h.cols+1)), buffer.ErrShape)
	case 2:
		if h.view { // a view that stood in an expression does not keep others from being resized
			k.refused("a view", h.m.Resize(h.rows+1, h.cols+1), matrix.ErrView, matrix.ErrExternalResize)
		}
	case 3:
		k.refused("no operand", h.m.Assign(nil), buffer.ErrNil)
	case 4:
		k.refused("beyond", h.m.Assign(h.m.Slice(0, h.rows+1, 0, 1)), buffer.ErrIndex)
	case 5:
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		k.refused("cancelled", h.m.AssignContext(ctx, matrix.Neg(h.m)), context.Canceled)
	default:
		b := matrix.Fill(h.cols+1, 2, k.n.to(1))
		k.refused("a product", matrix.Mul(h.m, b).Err(), buffer.ErrShape)
	}
	k.same(h)
	return fmt.Sprintf("refused %d: %v", how, h)
}

// resize gives matrices other sizes, or other names.
func (k *kind[T]) resize(h *handle[T]) string {
	how := k.intn(4)
	k.note("resize %d %v", how, h)
	switch {
	case how == 0 && !h.gaps:
		rows := h.cols
		k.must(h.m.SetShape(rows, h.rows))
		h.rows, h.cols = rows, h.rows
		h.dr, h.dc = h.cols, 1
		if h.m.ColMajor() {
			h.dr, h.dc = 1, h.rows
		}
	case how == 1 && h.sole():
		rows, cols := k.size(), k.size()
		if !k.ok(h.dev, h.m.Resize(rows, cols)) {
			k.same(h)
			break
		}
		if rows != h.rows || cols != h.cols {
			k.resized(h, rows, cols)
			h.set(k.fresh(rows * cols))
			if !k.ok(h.dev, h.m.SetSlice(k.n.slice(h.values()))) {
				k.discard(h.s)
			}
		}
	case how == 2 && h.sole():
		k.must(h.m.Reset())
		if !h.m.IsEmpty() {
			k.fail("not empty")
		}
		h.fixed = false
		rows, cols := k.size(), k.size()
		t := k.n.term(matrix.Fill(rows, cols, k.n.to(3)), rows, cols, func(int, int) int64 { return 3 })
		if k.ok(h.dev, h.m.Assign(t.e)) {
			k.resized(h, rows, cols)
			h.set(t.v)
		} else {
			k.discard(h.s)
		}
	default:
		return "nothing to resize"
	}
	return fmt.Sprintf("resized %d: %v", how, h)
}

// move moves matrices from object to object and from device to device.
func (k *kind[T]) move(h *handle[T]) string {
	to, o := k.some(false), pick(k.player, k.handles)
	how := k.intn(6)
	k.note("move %d %v to %s, %v", how, h, to.name, o)
	switch how {
	case 0:
		h.m = must[*matrix.Dense[T]](k.player)(h.m.Move())
	case 1:
		c, err := h.m.CopyTo(k.ctx, to.Device)
		if k.ok(&device{name: to.name, limited: to.limited || h.dev.limited}, err) {
			k.adopt(k.own(c, to, h.rows, h.cols, h.values()))
		}
	case 2:
		if h.root.shares > 1 && !h.view && !h.wrapped {
			break // views that stood in expressions do not count
		}
		err := h.m.MoveTo(k.ctx, to.Device)
		switch {
		case h.view || h.fixed:
			if to != h.dev {
				k.refused("a view that moves", err, matrix.ErrView, matrix.ErrExternalResize)
			}
		case k.ok(&device{name: to.name, limited: to.limited || h.dev.limited}, err) && to != h.dev:
			v := h.values()
			k.resized(h, h.rows, h.cols)
			h.set(v)
			h.dev = to
		}
	case 3:
		c, err := h.m.Clone()
		if k.ok(h.dev, err) {
			k.adopt(k.own(c, h.dev, h.rows, h.cols, h.values()))
		}
	case 4:
		if h != o {
			k.must(matrix.Swap(h.m, o.m))
			h.m, o.m = o.m, h.m
		}
	default:
		if h == o {
			break
		}
		if h.wrapped {
			k.must(h.m.Sync(k.ctx))
			k.onHost(h)
		}
		k.must(h.m.Take(o.m))
		if !o.m.IsEmpty() {
			k.fail("not empty")
		}
		k.must(o.m.Close())
		was := *h
		*h = *o
		h.m = was.m
		for i, x := range k.handles {
			if x == o {
				k.handles = append(k.handles[:i], k.handles[i+1:]...)
				break
			}
		}
		k.unshare(was.root)
	}
	return fmt.Sprintf("moved %d %v", how, h)
}

// setValue copies matrices of whatever size and device into another.
func (k *kind[T]) setValue(h *handle[T]) string {
	o := pick(k.player, k.handles)
	k.note("set value of %v from %v", h, o)
	both := &device{name: h.dev.name, limited: h.dev.limited || o.dev.limited}
	if h.rows == o.rows && h.cols == o.cols {
		v := o.values()
		err := h.m.SetValue(o.m)
		if err != nil && both.limited {
			k.reset(h)
			return "set value refused"
		}
		k.must(err)
		h.set(v)
		return fmt.Sprintf("set value of %v", h)
	}
	if h.sole() && !h.fixed {
		v, rows, cols := o.values(), o.rows, o.cols
		err := h.m.SetValue(o.m)
		if k.ok(both, err) {
			k.resized(h, rows, cols)
			h.set(v)
		}
		return fmt.Sprintf("set value of %v", h)
	}
	if err := h.m.SetValue(h.m); err != nil && !errors.Is(err, matrix.ErrView) {
		k.ok(h.dev, err)
	}
	k.same(h)
	return fmt.Sprintf("set value of %v to itself", h)
}
