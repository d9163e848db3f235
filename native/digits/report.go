// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/sublet-gpu/sublet/internal/samples"
)

// report is what is known of a trained network, as the page of the digits reads it.
type report struct {
	Learnt    int                   `json:"learnt"`    // examples
	Held      int                   `json:"held"`      // examples that it was tried on
	Accuracy  float64               `json:"accuracy"`  // share of those held back that are found
	Confusion [classes][classes]int `json:"confusion"` // rows are what an image shows, columns what the network says
	Epochs    int                   `json:"epochs"`
	Seconds   float64               `json:"seconds"` // that the training took
	Adapter   string                `json:"adapter"`
	Losses    []float64             `json:"losses"` // means over equal parts of the training
}

// try counts what the network makes of examples.
func (r *report) try(ctx context.Context, n network, d *samples.Data) error {
	found, err := n.predict(ctx, d.Features)
	if err != nil {
		return err
	}
	right := 0
	for i, digit := range found {
		r.Confusion[d.Labels[i]][digit]++
		if int(d.Labels[i]) == int(digit) {
			right++
		}
	}
	r.Held, r.Accuracy = len(found), float64(right)/float64(max(len(found), 1))
	return nil
}

func (r *report) write(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// print shows the report to a reader.
func (r *report) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%.2f %% of %d digits that were held back, after %d epochs of %d in %.1f s on %s\n\n", 100*r.Accuracy, r.Held, r.Epochs, r.Learnt, r.Seconds, r.Adapter)
	b.WriteString("shown  read as")
	for digit := range classes {
		fmt.Fprintf(&b, "%5d", digit)
	}
	for digit, row := range r.Confusion {
		fmt.Fprintf(&b, "\n%5d         ", digit)
		for _, n := range row {
			fmt.Fprintf(&b, "%5d", n)
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// means are of equal parts of a list, which may be shorter than as many.
func means(losses []float64, parts int) []float64 {
	parts = min(parts, len(losses))
	out := make([]float64, parts)
	for i := range out {
		part := losses[i*len(losses)/parts : (i+1)*len(losses)/parts]
		for _, v := range part {
			out[i] += v / float64(len(part))
		}
	}
	return out
}
