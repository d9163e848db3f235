// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"encoding/binary"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// edges runs the pipeline of images until the page stops it. The function frame returns frame n as bytes, or nothing if there are
// no more; without it they are of a moving scene. The function show gets what came of each. Arrays serve again for later frames.
func (s *server) edges(r *page.Reader) page.Work {
	set := s.setup(r)
	c := pipelines.EdgesConfig{Width: r.Int(), Height: r.Int(), Sigma: r.Float(), Gain: r.Float(), InFlight: set.inFlight}
	frame, show := js.ValueOf(r.Object()), r.Object()
	return func(ctx context.Context) (any, error) {
		e := page.Must(pipelines.NewEdges(s.open(ctx, set.devices), c, set.config))
		b := newBoard(4*c.Width*c.Height, c.InFlight)
		next := func(n int, pixels []byte) (bool, error) {
			if frame.Type() == js.TypeFunction {
				v, err := call(frame, n)
				if err == nil && v.Truthy() {
					err = page.Guard(func() { s.Load(v, 0, pixels) })
				}
				if err != nil || !v.Truthy() {
					return false, err
				}
			} else {
				samples.Scene(pixels, c.Width, c.Height, n)
			}
			js.CopyBytesToJS(b.inputs[n%len(b.inputs)], pixels)
			return !s.stopped, nil
		}
		return s.run(e.Graph, func() error {
			return e.Run(ctx, next, func(f *pipelines.EdgesFrame) (bool, error) {
				_, err := call(show, b.fill(f))
				return !s.stopped, err
			})
		})
	}
}

// board is what the page is shown: arrays for the images, those of frames that are on their way included.
type board struct {
	inputs         []js.Value
	blurred, edges js.Value
	histogram      js.Value
	counts         [4 * 256]byte
}

func newBoard(size, inFlight int) *board {
	pixels := func() js.Value { return js.Global().Get("Uint8ClampedArray").New(size) }
	b := &board{blurred: pixels(), edges: pixels()}
	for range max(inFlight, 1) + 1 {
		b.inputs = append(b.inputs, pixels())
	}
	b.histogram = js.Global().Get("Uint8Array").New(len(b.counts))
	return b
}

func (b *board) fill(f *pipelines.EdgesFrame) map[string]any {
	js.CopyBytesToJS(b.blurred, f.Blurred)
	js.CopyBytesToJS(b.edges, f.Edges)
	for i, n := range f.Histogram {
		binary.LittleEndian.PutUint32(b.counts[4*i:], n)
	}
	js.CopyBytesToJS(b.histogram, b.counts[:])
	return page.Object(
		"number", f.Number, "input", b.inputs[f.Number%len(b.inputs)], "blurred", b.blurred, "edges", b.edges,
		"histogram", b.histogram, "mean", f.Mean, "threshold", f.Threshold, "share", f.Share,
	)
}
