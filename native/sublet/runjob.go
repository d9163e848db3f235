// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// job is a run whose files are open.
type job struct {
	*runTask
	source   string
	progress *progress
	arrays   []*runArray
	outs     []*output
	devices  []*gpu.Device
	cr       *cruncher.Cruncher
}

// runArray is an array of a run.
type runArray struct {
	arraySpec
	file   *os.File // nil: zeros
	npy    *npy.Reader
	memory []byte
	*cruncher.Any
}

// crunch does a task of sublet run and reports on it.
func (a *app) crunch(ctx context.Context, t *runTask) error {
	j := &job{runTask: t, progress: newProgress(a.err)}
	defer j.close()
	for _, o := range t.outputs {
		a.claim(o.path)
	}
	if err := j.open(a); err != nil {
		return err
	}
	var err error
	s := a.selection(ctx)
	if t.devices != nil {
		s = s.At(t.devices...)
	}
	if j.devices, err = s.Open(ctx); err != nil {
		return err
	}
	if j.cr, err = cruncher.New(ctx, j.devices, j.source); err != nil {
		return err
	}
	for _, r := range j.arrays {
		if err := r.load(j.devices); err != nil {
			return err
		}
	}
	v := newTally(a, j)
	if err := j.compute(ctx, v); err != nil {
		return err
	}
	if err := j.save(ctx); err != nil {
		return err
	}
	j.progress.stop()
	return v.print()
}

// open opens the files. What is wrong with them is found before a device is opened.
func (j *job) open(a *app) error {
	source, parsed, err := readSource(j.wgsl)
	if err != nil {
		return err
	}
	if j.source = source; j.entry == "" {
		kernels := parsed.Kernels()
		if len(kernels) != 1 {
			return usagef("%s has several kernels: name some with --entry: %s", j.wgsl, strings.Join(kernels, ", "))
		}
		j.entry = kernels[0]
	}
	j.progress.enter("reading", 0)
	for _, spec := range j.runTask.arrays {
		r := &runArray{arraySpec: spec}
		j.arrays = append(j.arrays, r)
		if err := r.open(j.progress); err != nil {
			return err
		}
	}
	for _, o := range j.outputs {
		out, err := a.createOutput(o.path)
		if err != nil {
			return err
		}
		j.outs = append(j.outs, out)
	}
	return nil
}

func (r *runArray) open(p *progress) (err error) {
	if r.path == "" {
		return nil
	}
	if r.file, r.npy, err = openNpy(r.path, p); err != nil {
		return err
	}
	h := r.npy.Header()
	if !slices.Contains(elemTypes, h.Type) {
		advice := ""
		if len(h.Shape) <= 2 && h.Type.Code != dtype.Complex64.Code {
			advice = "; sublet eval A -i A=" + r.path + " --cast -o OUT.npy converts to float32 and reports the largest relative change"
		}
		return fault.Fail(r.path, errType, "the file is ", h.Type.String(), "; those are ", elemWords, advice)
	}
	r.typ, r.shape = h.Type, h.Shape
	return nil
}

// load reads the elements, or makes zeros that the devices together could hold.
func (r *runArray) load(devices []*gpu.Device) error {
	n, ok := r.elements()
	size := n * r.typ.Size()
	if r.file == nil {
		room := uint64(0)
		for _, d := range devices {
			room += d.Info().Limits.MaxBufferSize
		}
		if !ok || uint64(size) > room {
			return fault.Fail("array "+r.name, gpu.ErrLimit, fmt.Sprintf("%v of %v; the devices hold %d bytes", r.shape, r.typ, room))
		}
		r.memory = make([]byte, size)
	} else if err := r.read(size); err != nil {
		return inFile(r.path, err)
	}
	var err error
	if r.Any, err = cruncher.WrapHost(r.name, r.typ, gpu.HostBytes(r.memory), nil); err != nil {
		return err
	}
	return r.set(r.Any)
}

func (r *runArray) read(size int) error {
	var b bytes.Buffer
	if st, err := r.file.Stat(); err == nil && st.Mode().IsRegular() {
		b.Grow(size + bytes.MinRead) // the header was checked against the file
	}
	if _, err := b.ReadFrom(r.npy); err != nil {
		return err
	}
	r.memory = b.Bytes()
	return nil
}

// compute makes the calls.
func (j *job) compute(ctx context.Context, v *tally) error {
	total := int64(j.calls)
	if total == 1 {
		total = -1 // nobody knows how far one is
	}
	if v.watch == nil {
		j.progress.enter("computing", total)
	} else {
		j.progress.stop()
	}
	var ps []cruncher.Param
	for _, r := range j.arrays {
		ps = append(ps, r.Any)
	}
	ps = append(ps, j.scalars...)
	start := time.Now()
	for range j.calls {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := j.cr.Compute(ctx, 1, j.entry, j.rang, ps...)
		if errors.Is(err, gpu.ErrCompile) || errors.Is(err, kernel.ErrKernel) {
			return inFile(j.wgsl, err)
		}
		if err != nil {
			return err
		}
		v.add(j.cr.Last())
		j.progress.add(1)
	}
	v.seconds = time.Since(start).Seconds()
	return nil
}

// save writes the outputs. None gets its name before all are written.
func (j *job) save(ctx context.Context) error {
	if len(j.outs) == 0 {
		return nil
	}
	j.progress.enter("writing", 0)
	for i, o := range j.outputs {
		r := j.array(o.name)
		if err := j.cr.Fetch(ctx, r.Any); err != nil { // what no flag brought back
			return err
		}
		j.progress.expect(int64(len(r.memory)))
		if err := r.write(j.outs[i], j.progress); err != nil {
			return inFile(o.path, err)
		}
	}
	for _, out := range j.outs {
		if err := out.commit(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) array(name string) *runArray {
	for _, r := range j.arrays {
		if r.name == name {
			return r
		}
	}
	return nil // the parser wants the name to be there
}

// write writes the array as it is in memory: in the order of the file that it came from.
func (r *runArray) write(out *output, p *progress) error {
	h := npy.Header{Type: r.typ, Shape: r.shape}
	if r.npy != nil {
		h.Fortran = r.npy.Header().Fortran
	}
	w, err := npy.NewWriter(p.writer(out), h)
	if err != nil {
		return err
	}
	if _, err := w.Write(r.memory); err != nil {
		return err
	}
	return w.Close()
}

// close gives everything back. What matters was committed by then.
func (j *job) close() {
	j.progress.stop()
	_ = j.cr.Close()
	for _, r := range j.arrays {
		_ = r.Close()
		if r.file != nil {
			_ = r.file.Close()
		}
	}
	for _, d := range j.devices {
		_ = d.Close()
	}
	for _, out := range j.outs {
		out.discard()
	}
}
