// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// arrayScene is what tests lose devices and memory in: arrays that are loaded, saved, viewed and copied between two devices.
type arrayScene struct {
	t          testing.TB
	one, other *gpu.Device
	mine       []float32
	wrapped    *ndarray.Array
	own, far   *ndarray.Array
	file       []byte
}

func newArrayScene(t testing.TB, devices []*gpu.Device) *devtest.Scene {
	s := &arrayScene{t: t, one: devices[0], other: devices[1], mine: make([]float32, 12)}
	s.wrapped = devtest.Must[*ndarray.Array](t)(ndarray.Wrap(s.one, s.mine, []int{3, 4}, ndarray.Placement{}))
	devtest.Check(t, s.reset())
	data := func(a **ndarray.Array) func() ([]float32, error) {
		return func() ([]float32, error) { return ndarray.Data[float32](t.Context(), *a) }
	}
	scene := &devtest.Scene{
		Reset: s.reset, Close: s.close, Hosts: [][]float32{s.mine},
		Values: []func() ([]float32, error){data(&s.wrapped), data(&s.own), data(&s.far)},
	}
	step := func(name string, do func() error) {
		scene.Steps = append(scene.Steps, devtest.Step{Name: name, Do: func() ([]float32, error) { return nil, do() }})
	}
	ctx := t.Context()
	step("save", s.save)
	step("load", func() error { return s.load(&s.own, s.one, ndarray.LoadOptions{}) })
	step("load in pieces", func() error { return s.load(&s.own, s.one, ndarray.ByPieces()) })
	step("load on the other device", func() error { return s.load(&s.far, s.other, ndarray.LoadOptions{}) })
	step("assign", func() error { return s.wrapped.CopyFrom(ctx, s.far) })
	step("fill", func() error { return s.far.Fill(ctx, 6) })
	step("turned", func() error {
		v, err := s.own.Transpose()
		if err != nil {
			return err
		}
		w, err := s.far.Transpose()
		if err == nil {
			err = w.CopyFrom(ctx, v)
			_ = w.Close() // a batch that it hands over may be refused
		}
		_ = v.Close()
		return err
	})
	step("sync", func() error { return s.wrapped.Sync(ctx) })
	step("bytes", func() error { return s.own.CopyFromBytes(ctx, bytes.Repeat([]byte{0, 0, 128, 63}, 12)) })
	step("to the other device", func() error {
		c, err := s.own.CopyToDevice(ctx, s.other)
		if err != nil {
			return err
		}
		_ = s.far.Close()
		s.far = c
		return nil
	})
	step("clone", func() error {
		c, err := s.far.Clone()
		if err != nil {
			return err
		}
		if err := c.Fill(ctx, 3); err != nil {
			return errors.Join(err, c.Close())
		}
		_ = s.far.Close()
		s.far = c
		return nil
	})
	step("one row", func() error {
		row, err := s.wrapped.Index(1)
		if err != nil {
			return err
		}
		err = row.Fill(ctx, 9)
		_ = row.Close()
		return err
	})
	step("sync once more", func() error { return s.wrapped.Sync(ctx) })
	step("save again", s.save)
	return scene
}

// save saves what is wrapped and what is on the other device.
func (s *arrayScene) save() error {
	var out bytes.Buffer
	err := ndarray.SaveParams(s.t.Context(), &out, ndarray.Params{{Name: "x", Array: s.wrapped}, {Name: "y", Array: s.far}}, params.Options{})
	if err == nil {
		s.file = out.Bytes()
	}
	return err
}

// load replaces an array by the first one of the file.
func (s *arrayScene) load(to **ndarray.Array, dev *gpu.Device, opts ndarray.LoadOptions) error {
	p, err := ndarray.LoadParams(s.t.Context(), dev, bytes.NewReader(s.file), opts)
	if err != nil {
		return err
	}
	a, err := p.Get("x")
	if err == nil {
		a, err = a.Share()
	}
	_ = p.Close()
	if err == nil {
		_ = (*to).Close()
		*to = a
	}
	return err
}

func (s *arrayScene) reset() error {
	var errs [2]error
	for i := range s.mine {
		s.mine[i] = float32(i)
	}
	err := errors.Join(s.own.Close(), s.far.Close(), s.wrapped.Touch())
	s.own, errs[0] = ndarray.FromSlice(s.one, s.mine, 3, 4)
	s.far, errs[1] = ndarray.FromSlice(s.other, s.mine, 3, 4)
	return errors.Join(err, errs[0], errs[1])
}

func (s *arrayScene) close() error {
	return errors.Join(s.own.Close(), s.far.Close(), s.wrapped.Close())
}

// TestEveryFault has everything go wrong at every call of the drivers of two devices that arrays need.
func TestEveryFault(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 30, 60)
	s := devtest.Script{Devices: 2, New: newArrayScene}
	s.EveryFault(t, 60, devtest.Lose, devtest.LoseAfter, devtest.NoMemory, devtest.Refuse)
}

// TestEveryAllocation has every k-th call fail that may take memory.
func TestEveryAllocation(t *testing.T) {
	devtest.AtLeast(t, devtest.NoMemory, 60, 800)
	devtest.Script{Devices: 2, New: newArrayScene}.EveryAllocation(t, devtest.Times(2))
}
