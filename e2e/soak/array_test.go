// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/dlpack"
)

// from returns a step that converts a matrix of another element type.
func from[T, F matrix.Elem](to *kind[T], f *kind[F]) func() string {
	return func() string {
		if len(f.handles) == 0 {
			return "nothing to convert"
		}
		h := pick(to.player, f.handles)
		v := h.values()
		for i, x := range v { // what both types have
			v[i] = min(max(x, -2000), 2000)
			if f.n.unsigned || to.n.unsigned {
				v[i] = min(max(x, 0), 2000)
			}
		}
		lo := int64(-2000)
		if f.n.unsigned || to.n.unsigned {
			lo = 0
		}
		to.note("convert %v", h)
		m, err := matrix.Convert[T](matrix.Clamp(h.m, f.n.to(lo), f.n.to(2000))).Eval()
		if to.ok(h.dev, err) {
			to.adopt(to.own(m, h.dev, h.rows, h.cols, v))
		}
		return fmt.Sprintf("converted %v", h)
	}
}

// array goes by way of an array of any number of dimensions: other handles, files, other libraries.
func (k *kind[T]) array(h *handle[T]) string {
	how := k.intn(7)
	k.note("array %d of %v", how, h)
	a := must[*ndarray.Array](k.player)(h.m.Array())
	defer func() { k.must(a.Close()) }()
	switch how {
	case 0:
		k.arrayViews(h, a)
	case 1:
		v := k.fresh(1)[0]
		k.wrote(h, a.Fill(k.ctx, float64(v)), func() {
			all := h.values()
			for i := range all {
				all[i] = v
			}
			h.set(all)
		})
	case 2:
		k.lend(h, a)
	case 3, 4:
		k.files(h, a)
	case 5:
		o := pick(k.player, k.handles)
		if o.rows != h.rows || o.cols != h.cols || o == h {
			break
		}
		b := must[*ndarray.Array](k.player)(o.m.Array())
		defer func() { k.must(b.Close()) }()
		v := o.values()
		err := a.CopyFrom(k.ctx, b)
		if err != nil && o.dev.limited {
			k.ok(o.dev, err)
			k.reset(h)
			break
		}
		k.wrote(h, err, func() { h.set(v) })
	default:
		to := k.some(false)
		c, err := a.CopyToDevice(k.ctx, to.Device)
		if !k.ok(&device{name: to.name, limited: to.limited || h.dev.limited}, err) {
			break
		}
		m, err := matrix.FromArray[T](c)
		k.must(errors.Join(err, c.Close()))
		k.adopt(k.own(m, to, h.rows, h.cols, h.values()))
		last := k.handles[len(k.handles)-1]
		last.fixed, last.wrapped, last.dr, last.dc = true, true, h.cols, 1 // of the array's memory, as far as sizes go
		last.set(h.values())
	}
	return fmt.Sprintf("array %d of %v", how, h)
}

func (k *kind[T]) arrayViews(h *handle[T], a *ndarray.Array) {
	s := must[*ndarray.Array](k.player)(a.Share())
	v := must[*ndarray.Array](k.player)(s.Slice(ndarray.Region{Starts: []int{h.rows - 1, 0}, Ends: []int{-1, h.cols}, Steps: []int{-1, 1}}))
	w := must[*ndarray.Array](k.player)(v.Transpose())
	b, err := w.Bytes(k.ctx)
	if k.ok(h.dev, err) {
		got := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), h.rows*h.cols)
		for i := range h.cols {
			for j := range h.rows {
				if g, want := k.n.from(got[i*h.rows+j]), *h.cell(h.rows-1-j, i); g != want {
					k.fail("element %d,%d of the array is %d, want %d", i, j, g, want)
				}
			}
		}
	}
	c, err := a.Clone()
	if k.ok(h.dev, err) {
		k.must(c.Close())
	}
	k.must(errors.Join(s.Close(), v.Close(), w.Close()))
}

// lend lends memory to another library, and takes it back.
func (k *kind[T]) lend(h *handle[T], a *ndarray.Array) {
	t, err := dlpack.FromArray(k.ctx, a, dlpack.InPlace)
	if err != nil {
		if !errors.Is(err, gpu.ErrUnsupported) {
			k.ok(h.dev, err)
		}
		return
	}
	m := must[*dlpack.Managed](k.player)(dlpack.Export(t))
	t = must[*dlpack.Tensor](k.player)(dlpack.Import(m))
	if k.chance(2) {
		k.must(t.Close())
		return
	}
	t.Trust(h.dev.Device)
	b, err := dlpack.ToArray(h.dev.Device, t)
	if err != nil {
		if !errors.Is(err, gpu.ErrUnsupported) && !errors.Is(err, gpu.ErrReadOnly) {
			k.ok(h.dev, err)
		}
		k.must(t.Close())
		return
	}
	got, err := b.Bytes(k.ctx)
	if k.ok(h.dev, err) {
		k.equal("what came back", unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(got))), h.rows*h.cols), h.values())
	}
	k.must(b.Close())
}

// files saves a matrix in a file of any format and loads it on any device.
func (k *kind[T]) files(h *handle[T], a *ndarray.Array) {
	path := filepath.Join(k.dir, fmt.Sprintf("file-%s-%d", k.name, k.steps))
	f := must[*os.File](k.player)(os.Create(path))
	defer func() { k.must(errors.Join(f.Close(), os.Remove(path))) }()
	format := k.intn(3)
	list := ndarray.Params{{Name: "a", Array: a}, {Name: "b", Array: a}}
	err := ndarray.Save(k.ctx, list, func(headers []file.Header) (file.Writer, error) {
		switch format {
		case 0:
			return npy.NewZipWriter(f, headers, []uint16{zip.Store, zip.Deflate}[k.intn(2)])
		case 1:
			return safetensors.NewWriter(f, headers, map[string]string{"seed": "soak"})
		}
		return params.NewWriter(f, headers, params.Options{})
	})
	if !k.ok(h.dev, err) {
		return
	}
	size := must[int64](k.player)(f.Seek(0, io.SeekEnd))
	must[int64](k.player)(f.Seek(0, io.SeekStart))
	var r file.Reader
	switch format {
	case 0:
		r, err = npy.NewZipReader(f, size)
	case 1:
		r, err = safetensors.NewReader(f)
	default:
		r, err = params.NewReader(f, params.Options{})
	}
	k.must(err)
	dev := k.some(false)
	p, err := ndarray.Load(k.ctx, dev.Device, r, ndarray.LoadOptions{OnHost: k.chance(2)})
	if !k.ok(dev, err) {
		return
	}
	b := must[*ndarray.Array](k.player)(p.Get("b"))
	m, err := matrix.FromArray[T](b)
	k.must(errors.Join(err, p.Close()))
	got, err := m.Read(k.ctx)
	if k.ok(dev, err) {
		k.equal("the file", got, h.values())
	}
	k.must(m.Close())
}
