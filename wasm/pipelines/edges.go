// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix"
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
		array := func(kind string, size int) js.Value { return js.Global().Get(kind).New(size) }
		pixels := func() js.Value { return array("Uint8ClampedArray", 4*c.Width*c.Height) }
		blurred, edges, histogram := pixels(), pixels(), array("Uint8Array", 4*256)
		inputs := []js.Value{pixels()}
		for range max(c.InFlight, 1) { // the page is shown frames that are on their way, too
			inputs = append(inputs, pixels())
		}
		next := func(n int, into []byte) (bool, error) {
			if frame.Type() == js.TypeFunction {
				v, err := call(frame, n)
				if err == nil && v.Truthy() {
					err = page.Guard(func() { s.Load(v, 0, into) })
				}
				if err != nil || !v.Truthy() {
					return false, err
				}
			} else {
				samples.Scene(into, c.Width, c.Height, n)
			}
			js.CopyBytesToJS(inputs[n%len(inputs)], into)
			return !s.stopped, nil
		}
		return s.run(e.Graph, func() error {
			return e.Run(ctx, next, func(f *pipelines.EdgesFrame) (bool, error) {
				js.CopyBytesToJS(blurred, f.Blurred)
				js.CopyBytesToJS(edges, f.Edges)
				js.CopyBytesToJS(histogram, matrix.Host(f.Histogram).Bytes)
				_, err := call(show, page.Object(
					"number", f.Number, "input", inputs[f.Number%len(inputs)], "blurred", blurred, "edges", edges,
					"histogram", histogram, "mean", f.Mean, "threshold", f.Threshold, "share", f.Share,
				))
				return !s.stopped, err
			})
		})
	}
}
