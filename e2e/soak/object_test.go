// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix"
)

var makers = []func(p *player) object{newRaw, newSparse, newCrunch, newGraph, newStages}

// raw is buffers of a device and a kernel, without anything of ours above.
type raw struct {
	dev    *device
	k      *gpu.Kernel
	a, b   *gpu.Buffer
	ma, mb []byte
}

const rawBytes = 1024

const rawSource = `struct Params { step: u32, count: u32, pad0: u32, pad1: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < p.count) { data[id.x] = data[id.x] * 3u + p.step * id.x; }
}`

func rawModel(_ [3]uint32, params []byte, storage [][]byte) {
	step, count := binary.LittleEndian.Uint32(params), binary.LittleEndian.Uint32(params[4:])
	for i := range count {
		w := storage[0][4*i:]
		binary.LittleEndian.PutUint32(w, binary.LittleEndian.Uint32(w)*3+step*i)
	}
}

func newRaw(p *player) object {
	dev := p.some(false)
	r := &raw{dev: dev, ma: make([]byte, rawBytes), mb: make([]byte, rawBytes)}
	var err error
	if r.k, err = dev.Kernel(p.ctx, gpu.KernelDesc{
		Label: "soak", Source: rawSource, Bindings: []driver.Access{driver.AccessParams, driver.AccessReadWrite}, Reference: rawModel,
	}); !p.ok(dev, err) {
		return nil
	}
	if r.a, err = dev.NewBuffer(rawBytes); p.ok(dev, err) {
		if r.b, err = dev.NewMappable(rawBytes); p.ok(dev, err) {
			if p.ok(dev, errors.Join(r.a.Write(0, gpu.HostBytes(r.ma)), r.b.Clear(0, rawBytes))) {
				return r
			}
		}
	}
	r.close(p)
	return nil
}

func (r *raw) uses(dev *device) bool { return r.dev == dev }

func (r *raw) act(p *player) string {
	at, n := uint64(p.intn(64)*4), uint64(4+p.intn(100)*4)
	how := p.intn(6)
	p.note("buffer %d on %s", how, r.dev.name)
	var err error
	switch how {
	case 0:
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(p.rng.Uint32())
		}
		if err = r.a.Write(at, gpu.HostBytes(data)); err == nil {
			copy(r.ma[at:], data)
		}
	case 1:
		if err = r.b.CopyFrom(at, r.a, 0, n); err == nil {
			copy(r.mb[at:], r.ma[:n])
		}
	case 2:
		params := make([]byte, 16)
		binary.LittleEndian.PutUint32(params, uint32(n))
		binary.LittleEndian.PutUint32(params[4:], rawBytes/4)
		if err = r.k.Dispatch([3]uint32{rawBytes / 256, 1, 1}, params, gpu.Arg{Buffer: r.a}); err == nil {
			rawModel([3]uint32{}, params, [][]byte{r.ma})
		}
	case 3:
		if err = r.a.Clear(at, n); err == nil {
			clear(r.ma[at : at+n])
		}
	case 4:
		err = r.b.Map(p.ctx, 0, rawBytes, func(b []byte) error {
			if !bytes.Equal(b, r.mb) {
				return errors.New("mapped memory has other bytes")
			}
			b[at]++
			return nil
		})
		if err == nil {
			r.mb[at]++
		}
		if errors.Is(err, gpu.ErrUnsupported) {
			err = nil
		}
	default:
		p.refused("a copy beyond", r.a.CopyFrom(rawBytes, r.b, 0, 4), gpu.ErrInvalid)
		r.check(p)
	}
	p.ok(r.dev, err)
	return fmt.Sprintf("buffer %d on %s", how, r.dev.name)
}

func (r *raw) check(p *player) {
	got := make([]byte, rawBytes)
	for i, b := range []*gpu.Buffer{r.a, r.b} {
		if err := b.Read(p.ctx, gpu.Transfer{Host: gpu.HostBytes(got), Width: rawBytes, Count: 1}); p.ok(r.dev, err) {
			if !bytes.Equal(got, [][]byte{r.ma, r.mb}[i]) {
				p.fail("buffer %d on %s has other bytes", i, r.dev.name)
			}
		}
	}
}

func (r *raw) close(p *player) {
	p.must(errors.Join(r.b.Close(), r.k.Close(), r.a.Close(), r.a.Close()))
}

// sparse is a sparse matrix of whole numbers.
type sparse struct {
	dev        *device
	s          *matrix.Sparse[float32]
	format     matrix.Format
	rows, cols int
	v          []int64
	host       []float32 // the caller's, if wrapped
}

func newSparse(p *player) object {
	s := &sparse{dev: p.some(false), format: matrix.Format(p.intn(3)), rows: 1 + p.intn(30), cols: 1 + p.intn(30)}
	s.v = make([]int64, s.rows*s.cols)
	for i := range s.v {
		if p.chance(4) {
			s.v[i] = int64(p.intn(9)) - 4
		}
	}
	d, err := matrix.FromSlice(s.dev.Device, s.rows, s.cols, float32s.slice(s.v))
	if !p.ok(s.dev, err) {
		return nil
	}
	s.s, err = matrix.SparseFromDense(p.ctx, d, s.format)
	p.must(d.Close())
	if !p.ok(s.dev, err) {
		return nil
	}
	if p.chance(3) {
		s.wrap(p)
	}
	return s
}

// wrap replaces the matrix by one of the caller's slices.
func (s *sparse) wrap(p *player) {
	values, indices, pointers, err := s.s.Read(p.ctx)
	if !p.ok(s.dev, err) {
		return
	}
	w, err := matrix.WrapSparse(s.dev.Device, s.format, s.rows, s.cols, values, indices, pointers)
	if p.ok(s.dev, err) {
		p.must(s.s.Close())
		s.s, s.host = w, values
	}
}

func (s *sparse) uses(dev *device) bool { return s.dev == dev }

func (s *sparse) act(p *player) string {
	how := p.intn(6)
	p.note("sparse %d, %v %dx%d on %s", how, s.format, s.rows, s.cols, s.dev.name)
	switch how {
	case 0:
		s.product(p)
	case 1:
		c, err := s.s.Clone()
		if p.ok(s.dev, err) {
			p.must(s.s.Take(c))
			s.host = nil
		}
	case 2:
		if s.format == matrix.CSC {
			start := p.intn(s.cols)
			n := p.intn(s.cols - start + 1)
			v := s.s.ColumnSlice(start, n)
			(&sparse{dev: s.dev, s: v, rows: s.rows, cols: n, v: s.columns(start, n)}).check(p)
			p.must(v.Close())
		}
	case 3:
		v := s.s.Values()
		if p.ok(s.dev, v.Assign(matrix.Neg(v))) {
			for i := range s.v {
				s.v[i] = -s.v[i]
			}
		}
		p.must(v.Close())
		if s.host != nil && p.chance(2) {
			p.must(s.s.Sync(p.ctx))
		}
	case 4:
		err := s.s.Append(s.rows-1, s.cols-1, 3)
		switch {
		case err == nil:
			s.v[len(s.v)-1] = 3
		case s.host != nil:
			p.refused("append", err, matrix.ErrExternalResize)
		default:
			p.refused("append", err, matrix.ErrOrder, gpu.ErrUnsupported)
		}
	default:
		s.check(p)
	}
	return fmt.Sprintf("sparse %d, %v %dx%d on %s", how, s.format, s.rows, s.cols, s.dev.name)
}

func (s *sparse) columns(start, n int) []int64 {
	var v []int64
	for i := range s.rows {
		v = append(v, s.v[i*s.cols+start:][:n]...)
	}
	return v
}

func (s *sparse) product(p *player) {
	n := 1 + p.intn(8)
	v := make([]int64, s.cols*n)
	for i := range v {
		v[i] = int64(p.intn(7)) - 3
	}
	b, err := matrix.FromSlice(s.dev.Device, s.cols, n, float32s.slice(v))
	if !p.ok(s.dev, err) {
		return
	}
	c := must[*matrix.Dense[float32]](p)(matrix.New[float32](s.dev.Device, 0, 0))
	if p.ok(s.dev, c.Mul(s.s, b)) {
		got, err := c.Read(p.ctx)
		for i := 0; p.ok(s.dev, err) && i < s.rows*n; i++ {
			want := int64(0)
			for l := range s.cols {
				want += s.v[i/n*s.cols+l] * v[l*n+i%n]
			}
			if g := float32s.from(got[i]); g != want {
				p.fail("element %d of the sparse product is %v, want %v", i, got[i], want)
			}
		}
	}
	p.must(errors.Join(b.Close(), c.Close()))
}

func (s *sparse) check(p *player) {
	d, err := s.s.ToDense()
	if !p.ok(s.dev, err) {
		return
	}
	got, err := d.Read(p.ctx)
	if p.ok(s.dev, err) {
		for i, g := range got {
			if float32s.from(g) != s.v[i] {
				p.fail("element %d of a sparse matrix %dx%d, %v, is %v, want %v", i, s.rows, s.cols, s.format, g, s.v[i])
			}
		}
	}
	p.must(d.Close())
}

func (s *sparse) close(p *player) { p.must(errors.Join(s.s.Close(), s.s.Close())) }
