// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// recording is assignments that the page runs as often as it likes.
type recording struct {
	*matrix.Program
	steps    []matrix.Step
	operands []*entry    // what it reads
	targets  []*entry    // what it writes to
	own      []*anyDense // views of those, and values that steps compute for later ones
}

// Close closes the program and what it has of its own.
func (r *recording) Close() error {
	err := r.Program.Close()
	for _, m := range r.own {
		_ = m.Close() // see program.release
	}
	r.own = nil
	return err
}

// keep adds a matrix that is closed with the recording.
func (r *recording) keep(m *anyDense, err error) *anyDense {
	r.own = append(r.own, page.Must(m, err))
	return m
}

// evaluate adds a step that computes a value into a matrix of its own.
func (r *recording) evaluate(b *Bridge, x anyExpr) *anyDense {
	rows, cols := x.Dims()
	m := r.keep(matrix.New[matrix.Any](b.dev, rows, cols, matrix.Options{Type: x.DType()}))
	r.steps = append(r.steps, matrix.Into(m, x))
	return m
}

// record plans assignments, which are commands like those of [page.CmdAssign], without computing anything.
func (b *Bridge) record(a []uint32) {
	r := &recording{}
	b.put(a[1], &entry{value: r})
	b.program.rec = r
	defer func() { b.program.rec = nil }()
	for words := a[2:]; len(words) > 0; {
		n := int(words[0] >> 8)
		if n < 2 || n > len(words) || page.Command(words[0]) != page.CmdAssign {
			page.Invalid("a recording of what is no assignment")
		}
		r.step(b, words[1:n])
		words = words[n:]
	}
	steps := r.steps
	r.steps = nil
	b.Queue(a[0], func(ctx context.Context) (_ any, err error) {
		r.Program, err = matrix.NewProgram(ctx, steps...)
		return nil, err
	})
}

// step adds an assignment.
func (r *recording) step(b *Bridge, a []uint32) {
	p := &b.program
	e := b.entries[b.firstLeaf(a[1:])]
	m, x := b.target(a[0], a[1:])
	r.steps = append(r.steps, matrix.Into(m, x.On(b.dev)))
	if !slices.Contains(r.targets, e) {
		r.targets = append(r.targets, e)
	}
	r.own, p.temps = append(r.own, p.temps...), p.temps[:0]
	p.release()
}

// replay runs a recording. Its error is that of everything that it writes to. It computes nothing from what is not what it should be, which
// nobody knows yet.
func (b *Bridge) replay(a []uint32) {
	r := as[*recording](b.entry(a[0]))
	err := page.Guard(func() {
		for _, e := range r.operands {
			e.check()
		}
		page.Check(r.Run(context.Background()))
	})
	var f *page.Failure
	if err != nil {
		f = b.Note(err)
	}
	for _, e := range r.targets {
		e.err = f
	}
	if f != nil {
		page.Check(f)
	}
}
