// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"syscall/js"

	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

// edges runs the pipeline of images until the page stops it. Options are width, height, sigma, gain, inFlight, devices, mode and
// sync. hooks.frame, if it is a function, returns frame n as bytes, or nothing if there are no more; without it they are of a
// moving scene. hooks.show gets what came of each. Arrays serve again for later frames.
func (p *page) edges(o, hooks js.Value) error {
	ctx := context.Background()
	devices, opts, err := p.setup(ctx, o)
	if err != nil {
		return err
	}
	c := pipelines.EdgesConfig{
		Width: integer(o, "width"), Height: integer(o, "height"), Sigma: number(o, "sigma"), Gain: number(o, "gain"),
		InFlight: integer(o, "inFlight"),
	}
	e, err := pipelines.NewEdges(devices, c, opts...)
	if err != nil {
		return err
	}
	b := newBoard(4*c.Width*c.Height, c.InFlight)
	frame, show := hooks.Get("frame"), hooks.Get("show")
	next := func(n int, pixels []byte) (bool, error) {
		input := b.inputs[n%len(b.inputs)]
		if frame.Type() != js.TypeFunction {
			pipelines.Scene(pixels, c.Width, c.Height, n)
			js.CopyBytesToJS(input, pixels)
			return !p.stopped, nil
		}
		v, err := invoke(frame, n)
		if err != nil || !v.Truthy() {
			return false, err
		}
		return true, protect(func() error {
			js.CopyBytesToGo(pixels, v)
			js.CopyBytesToJS(input, pixels)
			return nil
		})
	}
	return p.run(e.Graph, func() error {
		return e.Run(ctx, next, func(f *pipelines.EdgesFrame) (bool, error) {
			_, err := invoke(show, b.fill(f))
			return !p.stopped, err
		})
	})
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
		w := b.counts[4*i:]
		w[0], w[1], w[2], w[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	}
	js.CopyBytesToJS(b.histogram, b.counts[:])
	return map[string]any{
		"number": f.Number, "input": b.inputs[f.Number%len(b.inputs)], "blurred": b.blurred, "edges": b.edges,
		"histogram": b.histogram, "mean": f.Mean, "threshold": f.Threshold, "share": f.Share,
	}
}
