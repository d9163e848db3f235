// SPDX-License-Identifier: Apache-2.0

package tune_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/tune"
)

// Times what a program does most, keeps the answers for later runs and uses them in this one.
func ExampleRun() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	r, err := tune.Run(ctx, dev, tune.Options{Work: []tune.Work{{Family: "softmax", Rows: 777, Cols: 333}}})
	if err == nil {
		err = tune.Save(r, dev.Info())
	}
	if err == nil {
		err = r.Apply(dev)
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range r.Choices {
		fmt.Println(c.Shape, c.Usual, c.Best, c.Quartile(c.Usual))
	}
}

// Uses what was found out before from the first expression on.
func ExampleUse() {
	dev, err := gpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	if err := tune.Use(dev); err != nil {
		log.Println(err) // computed as usual
	}
}

func ExampleParseWork() {
	w, err := tune.ParseWork("product:300x500x700:nt")
	fmt.Println(w.Rows, w.Inner, w.Cols, w.Layout, err)
	// Output: 300 500 700 2 <nil>
}
