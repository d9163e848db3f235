// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/mapfile"
)

// create makes a matrix in one of the ways that there are.
func (k *kind[T]) create() string {
	dev, rows, cols := k.some(false), k.size(), k.size()
	o := matrix.Options{ColMajor: k.chance(3)}
	v := k.fresh(rows * cols)
	how := k.intn(9)
	k.note("make %d %dx%d on %s, %+v", how, rows, cols, dev.name, o.ColMajor)
	var m *matrix.Dense[T]
	var err error
	switch how {
	case 0:
		v = make([]int64, rows*cols)
		m, err = matrix.New[T](dev.Device, rows, cols, o)
	case 1:
		data := make([]T, rows*cols)
		for i := range rows {
			for j := range cols {
				at := i*cols + j
				if o.ColMajor {
					at = j*rows + i
				}
				data[at] = k.n.to(v[i*cols+j])
			}
		}
		m, err = matrix.FromSlice(dev.Device, rows, cols, data, o)
	case 2:
		lists := make([][]T, rows)
		for i := range lists {
			lists[i] = k.n.slice(v[i*cols:][:cols])
		}
		m, err = matrix.FromRows(dev.Device, lists, o)
	case 3:
		return k.mapped(dev, rows, cols, o)
	case 4, 5:
		return k.wrap(dev, rows, cols, o)
	case 6:
		return k.wrapBuffer(dev, rows, cols)
	case 7:
		return k.wrapFile(dev, rows, cols)
	default:
		return k.wrapAgain(dev)
	}
	if k.ok(dev, err) {
		k.adopt(k.own(m, dev, rows, cols, v))
	}
	return fmt.Sprintf("made %d %dx%d on %s", how, rows, cols, dev.name)
}

func (k *kind[T]) mapped(dev *device, rows, cols int, o matrix.Options) string {
	m, err := matrix.Map[T](dev.Device, rows, cols, o)
	if k.ok(dev, err) {
		h := k.own(m, dev, rows, cols, nil)
		h.fixed = true
		k.adopt(h)
	}
	return fmt.Sprintf("mapped %dx%d on %s", rows, cols, dev.name)
}

// wrap wraps a slice, with gaps now and then.
func (k *kind[T]) wrap(dev *device, rows, cols int, o matrix.Options) string {
	minor, major := cols, rows
	if o.ColMajor {
		minor, major = rows, cols
	}
	if k.chance(2) {
		o.Offset, o.Stride = k.intn(9), minor+k.intn(4)
	}
	stride := max(o.Stride, minor)
	s := &store[T]{cells: k.fresh(o.Offset + stride*major + k.intn(20))}
	s.host = k.n.slice(s.cells)
	return k.wrapStore(dev, s, rows, cols, o)
}

func (k *kind[T]) wrapStore(dev *device, s *store[T], rows, cols int, o matrix.Options) string {
	r := new(root)
	if k.chance(2) {
		r.releases = 1
		o.Release = func() { r.released.Add(1) }
	}
	m, err := matrix.Wrap(dev.Device, rows, cols, s.host, o)
	if !k.ok(dev, err) {
		return "wrapped nothing"
	}
	h := &handle[T]{m: m, s: s, root: r, dev: dev, rows: rows, cols: cols, off: o.Offset, dr: m.Stride(), dc: 1, fixed: true, wrapped: true}
	h.gaps = m.Stride() != cols
	if o.ColMajor {
		h.dr, h.dc, h.gaps = 1, m.Stride(), m.Stride() != rows
	}
	k.adopt(h)
	return fmt.Sprintf("wrapped %v", h)
}

// wrapAgain wraps memory a second time, on any device.
func (k *kind[T]) wrapAgain(dev *device) string {
	for _, h := range k.handles {
		if h.s.host != nil && len(h.s.cells) > 8 {
			rows := 1 + k.intn(4)
			cols := 1 + k.intn(len(h.s.cells)/4/rows+1)
			offset := k.intn(len(h.s.cells) - rows*cols)
			k.note("wrap again %v: %dx%d from %d on %s", h, rows, cols, offset, dev.name)
			return k.wrapStore(dev, h.s, rows, cols, matrix.Options{Offset: offset})
		}
	}
	return "nothing to wrap again"
}

// wrapBuffer wraps a buffer of the device.
func (k *kind[T]) wrapBuffer(dev *device, rows, cols int) string {
	v := k.fresh(rows*cols + 1)
	mem := matrix.Host(k.n.slice(v))
	if mem.Size%4 != 0 {
		v = v[:rows*cols]
		mem = matrix.Host(k.n.slice(append(v, 0, 0)[:(rows*cols+1)&^1]))
	}
	b, err := dev.NewBuffer(uint64(mem.Size))
	if !k.ok(dev, err) {
		return "no buffer"
	}
	if !k.ok(dev, b.Write(0, mem)) {
		k.must(b.Close())
		return "no room to write"
	}
	r := &root{releases: 1, free: func() { k.must(b.Close()) }}
	m, err := matrix.WrapBuffer[T](dev.Device, rows, cols, b.Handle(), matrix.Options{Release: func() { r.released.Add(1) }})
	if !k.ok(dev, err) {
		k.must(b.Close())
		return "wrapped no buffer"
	}
	h := k.own(m, dev, rows, cols, v[:rows*cols])
	h.root, h.fixed, h.wrapped = r, true, true
	k.adopt(h)
	return fmt.Sprintf("wrapped a buffer: %v", h)
}

// wrapFile wraps a file, which is looked at when the last matrix of it is closed.
func (k *kind[T]) wrapFile(dev *device, rows, cols int) string {
	s := &store[T]{cells: k.fresh(rows * cols)}
	path := filepath.Join(k.dir, fmt.Sprintf("mapped-%s-%d", k.name, k.steps))
	k.must(os.WriteFile(path, bytesOf(k.n.slice(s.cells)), 0o600))
	f := must[*mapfile.File](k.player)(mapfile.OpenWritable(path))
	r := &root{releases: 1}
	m, err := mapfile.Wrap[T](dev.Device, f, 0, rows, cols, matrix.Options{Release: func() { r.released.Add(1) }})
	k.must(f.Close())
	if !k.ok(dev, err) {
		k.must(os.Remove(path))
		return "wrapped no file"
	}
	h := k.own(m, dev, rows, cols, s.cells)
	h.root, h.fixed, h.wrapped, h.s = r, true, true, s
	r.free = func() { k.must(os.Remove(path)) }
	k.adopt(h)
	return fmt.Sprintf("wrapped a file: %v", h)
}

func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// derive makes a view or an alias.
func (k *kind[T]) derive(h *handle[T]) string {
	v := *h
	v.view = true
	what := k.intn(8)
	k.note("derive %d of %v", what, h)
	i, j := k.intn(h.rows), k.intn(h.cols)
	n, m := 1+k.intn(h.rows-i), 1+k.intn(h.cols-j)
	switch what {
	case 0:
		v.m = h.m.T()
		v.rows, v.cols, v.dr, v.dc = h.cols, h.rows, h.dc, h.dr
	case 1, 2:
		v.m = h.m.Slice(i, i+n, j, j+m)
		v.rows, v.cols, v.off, v.gaps = n, m, h.off+i*h.dr+j*h.dc, true
	case 3:
		v.m = h.m.Row(i)
		v.rows, v.off, v.gaps = 1, h.off+i*h.dr, true
	case 4:
		v.m = h.m.Col(j)
		v.cols, v.off, v.gaps = 1, h.off+j*h.dc, true
	case 5:
		if h.rows != h.cols {
			return "no diagonal"
		}
		v.m = h.m.DiagView()
		v.rows, v.dc, v.gaps = 1, h.dr+h.dc, true
	case 6:
		v.m = h.m.Alias()
		v.view = h.view
	default:
		if h.gaps {
			return "gaps"
		}
		n := h.rows * h.cols
		v.rows = 1 + k.intn(n)
		for n%v.rows != 0 {
			v.rows--
		}
		v.cols = n / v.rows
		v.m = h.m.Reshape(v.rows, v.cols)
		v.dr, v.dc = v.cols, 1
		if h.m.ColMajor() {
			v.dr, v.dc = 1, v.rows
		}
	}
	if !k.ok(h.dev, v.m.Err()) {
		return "no view"
	}
	k.adopt(&v)
	if k.chance(2) {
		k.same(&v)
	}
	return fmt.Sprintf("derived %d of %v", what, h)
}

// write changes elements without an expression.
func (k *kind[T]) write(h *handle[T]) string {
	v := k.fresh(h.rows * h.cols)
	i, j := k.intn(h.rows), k.intn(h.cols)
	how := k.intn(7)
	k.note("write %d to %v", how, h)
	var err error
	done := func() { h.set(v) }
	switch how {
	case 0:
		err = h.m.SetSlice(k.n.slice(v))
	case 1:
		err = h.m.Set(i, j, k.n.to(v[0]))
		done = func() { *h.cell(i, j) = v[0] }
	case 2:
		err = h.m.SetCol(j, k.n.slice(v[:h.rows]))
		done = func() {
			for i := range h.rows {
				*h.cell(i, j) = v[i]
			}
		}
	case 3:
		rows := make([][]T, h.rows)
		for i := range rows {
			rows[i] = k.n.slice(v[i*h.cols:][:h.cols])
		}
		err = h.m.SetRows(rows)
	case 4:
		err = h.m.Fill(k.n.to(v[0]))
		done = func() {
			for i := range v {
				v[i] = v[0]
			}
			h.set(v)
		}
	case 5:
		return k.access(h, v)
	default:
		return k.hostWrites(h, v)
	}
	k.wrote(h, err, done)
	return fmt.Sprintf("wrote %d to %v", how, h)
}

// wrote updates the model if a call succeeded. One that was refused has changed nothing, but for memory that is computed in parts.
func (k *kind[T]) wrote(h *handle[T], err error, done func()) {
	if k.ok(h.dev, err) {
		done()
		if k.chance(8) {
			k.same(h)
		}
		return
	}
	if h.m.Buffer() == nil || !h.m.Buffer().Windowed() {
		k.same(h)
		return
	}
	k.reset(h)
}

// reset gives a matrix whose elements are not known new ones.
func (k *kind[T]) reset(h *handle[T]) {
	if h.s.host != nil {
		for _, o := range k.handles {
			if o.s == h.s {
				k.must(o.m.Sync(k.ctx))
			}
		}
		h.s.cells = k.n.model(h.s.host)
		return
	}
	k.discard(h.s)
}

// access writes or reads what lies in memory.
func (k *kind[T]) access(h *handle[T], v []int64) string {
	writes := k.chance(2)
	in := buffer.Reads
	if writes {
		in = buffer.Writes
	}
	k.note("access %v of %v", writes, h)
	stop := errors.New("stop")
	fails := k.chance(5)
	var inside error
	err := h.m.Access(k.ctx, in, func(data []T) error {
		for i := range h.rows {
			for j := range h.cols {
				at := i*h.m.Stride() + j
				if h.m.ColMajor() {
					at = j*h.m.Stride() + i
				}
				if got := k.n.from(data[at]); got != *h.cell(i, j) {
					inside = fmt.Errorf("element %d,%d is %v, want %v", i, j, data[at], *h.cell(i, j))
				}
				if writes {
					data[at] = k.n.to(v[i*h.cols+j])
				}
			}
		}
		if fails && !writes {
			return stop
		}
		return nil
	})
	k.must(inside)
	if fails && !writes && errors.Is(err, stop) {
		return "access refused"
	}
	if k.ok(h.dev, err) && writes {
		h.set(v)
	}
	return fmt.Sprintf("accessed %v, writing %v", h, writes)
}

// hostWrites writes to wrapped memory.
func (k *kind[T]) hostWrites(h *handle[T], v []int64) string {
	if h.s.host == nil {
		return "not wrapped"
	}
	h.set(v)
	for i := range h.rows {
		for j := range h.cols {
			at := h.off + i*h.dr + j*h.dc
			h.s.host[at] = k.n.to(h.s.cells[at])
		}
	}
	k.must(h.m.Touch())
	return fmt.Sprintf("the host wrote %v", h)
}

// sync brings results to wrapped memory.
func (k *kind[T]) sync(h *handle[T]) string {
	k.note("sync %v", h)
	if k.chance(10) {
		k.must(h.dev.Sync(k.ctx))
	}
	if k.chance(10) {
		k.must(h.dev.Flush())
	}
	k.must(h.m.Sync(k.ctx))
	k.onHost(h)
	return fmt.Sprintf("synced %v", h)
}

var errShape = []error{buffer.ErrShape, matrix.ErrView, matrix.ErrExternalResize, gpu.ErrNoMemory, gpu.ErrLimit}
