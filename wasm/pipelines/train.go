// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// The picture of what the network decides has side by side points, from -edge to edge in both directions.
const (
	side = 120
	edge = 2.4
)

// points is how many examples there are.
const points = 900

// train trains the network until it has done its steps or the page stops it. The function shown gets the examples, numbers that
// are x, y and class one after the other; the function step the number, the loss and the share of errors of each step; the function
// picture a byte for each point of the picture, its class, and the share of all examples that are not found.
func (s *server) train(r *page.Reader) page.Work {
	set := s.setup(r)
	name, c := r.Text(), pipelines.TrainConfig{Hidden: r.Int(), Batch: r.Int(), Rate: r.Float(), Seed: 1, InFlight: set.inFlight}
	steps := r.Int()
	c.SaveEvery = r.Int()
	shown, step, picture := r.Object(), r.Object(), r.Object()
	return func(ctx context.Context) (any, error) {
		data := page.Must(samples.Points(name, points, 1))
		c.Features, c.Labels, c.Classes = data.Features, data.Labels, data.Classes
		t := page.Must(pipelines.NewTrain(s.open(ctx, set.devices), c, set.config))
		list := []any{}
		for i, l := range data.Labels {
			list = append(list, data.Features[2*i], data.Features[2*i+1], l)
		}
		var grid []float32
		for i := range side * side {
			at := func(k int) float32 { return edge * (2*float32(k)/(side-1) - 1) }
			grid = append(grid, at(i%side), at(i/side))
		}
		return s.run(t.Graph, func() error {
			if _, err := call(shown, list, edge, data.Classes); err != nil {
				return err
			}
			return t.Run(ctx, steps, func(now pipelines.Step) (bool, error) {
				_, err := call(step, now.Number, now.Loss, now.Errors)
				if err == nil && now.Weights != nil {
					err = paint(picture, now.Weights, grid, data)
				}
				return !s.stopped, err
			})
		})
	}
}

// paint gives the page what the network decides at each point of the picture.
func paint(picture any, w [][]float32, grid []float32, data *samples.Data) error {
	return page.Guard(func() {
		classes, wrong := samples.Predict(w, grid), data.Errors(w)
		array := js.Global().Get("Uint8Array").New(len(classes))
		js.CopyBytesToJS(array, classes)
		page.Must(call(picture, array, side, wrong))
	})
}
