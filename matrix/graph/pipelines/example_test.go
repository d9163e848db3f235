// SPDX-License-Identifier: Apache-2.0

package pipelines_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

func Example() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	const width, height = 64, 48
	e, err := pipelines.NewEdges([]*gpu.Device{dev}, pipelines.EdgesConfig{Width: width, Height: height}, graph.Config{Trace: 1000})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = e.Graph.Teardown() }()
	err = e.Run(ctx, func(n int, frame []byte) (bool, error) {
		for i := range frame { // a square on black
			if x, y := i/4%width, i/4/width; x/16 == 1 && y/16 == 1 {
				frame[i] = 255
			}
		}
		return n < 3, nil
	}, func(f *pipelines.EdgesFrame) (bool, error) {
		fmt.Println("frame", f.Number, f.Share > 0)
		return true, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range e.Graph.Stats().Tasks[:2] {
		fmt.Println(t.Name, t.Dispatches)
	}
	// Output:
	// frame 0 true
	// frame 1 true
	// frame 2 true
	// Brightness 3
	// BlurAcross 3
}
