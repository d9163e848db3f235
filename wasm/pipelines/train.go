// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"syscall/js"

	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

// The picture of what the network decides has side by side points, from -edge to edge in both directions.
const (
	side = 120
	edge = 2.4
)

// points is how many examples there are.
const points = 900

// train trains the network until it has done its steps or the page stops it. Options are data, hidden, batch, rate, steps, saveEvery,
// inFlight, devices, mode and sync. hooks.data gets the examples, as numbers that they fill with x, y and class one after the other;
// hooks.step the number, the loss and the share of errors of each step; hooks.picture a byte for each point of the picture, its
// class, and the share of all examples that are not found.
func (p *page) train(o, hooks js.Value) error {
	ctx := context.Background()
	devices, opts, err := p.setup(ctx, o)
	if err != nil {
		return err
	}
	data, err := pipelines.Points(o.Get("data").String(), points, 1)
	if err != nil {
		return err
	}
	t, err := pipelines.NewTrain(devices, pipelines.TrainConfig{
		Data: data, Hidden: integer(o, "hidden"), Batch: integer(o, "batch"), Rate: number(o, "rate"), Seed: 1,
		SaveEvery: integer(o, "saveEvery"), InFlight: integer(o, "inFlight"),
	}, opts...)
	if err != nil {
		return err
	}
	list := make([]any, 0, 3*len(data.Labels))
	for i, l := range data.Labels {
		list = append(list, data.Features[2*i], data.Features[2*i+1], l)
	}
	grid := make([]float32, 0, 2*side*side)
	for i := range side * side {
		at := func(k int) float32 { return edge * (2*float32(k)/(side-1) - 1) }
		grid = append(grid, at(i%side), at(i/side))
	}
	step, picture := hooks.Get("step"), hooks.Get("picture")
	return p.run(t.Graph, func() error {
		if _, err := invoke(hooks.Get("data"), list, edge, data.Classes); err != nil {
			return err
		}
		return t.Run(ctx, integer(o, "steps"), func(s pipelines.Step) (bool, error) {
			_, err := invoke(step, s.Number, s.Loss, s.Errors)
			if err == nil && s.Weights != nil {
				err = paint(picture, s.Weights, grid, data)
			}
			return !p.stopped, err
		})
	})
}

// paint gives the page what the network decides at each point of the picture.
func paint(picture js.Value, w *pipelines.Weights, grid []float32, data *pipelines.Data) error {
	classes, err := w.Predict(grid)
	if err != nil {
		return err
	}
	wrong, err := w.Errors(data)
	if err != nil {
		return err
	}
	array := js.Global().Get("Uint8Array").New(len(classes))
	js.CopyBytesToJS(array, classes)
	_, err = invoke(picture, array, side, wrong)
	return err
}
