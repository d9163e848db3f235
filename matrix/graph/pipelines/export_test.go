// SPDX-License-Identifier: Apache-2.0

package pipelines

import "slices"

// Deal returns the examples of the first steps of a training.
func Deal(examples, batch, steps int, seed uint64) [][]uint32 {
	deal, out := dealer(examples, seed), [][]uint32{}
	for range steps {
		out = append(out, slices.Clone(deal(batch)))
	}
	return out
}

// First returns the weights that a training begins with.
func (t *Train) First() [][]float32 { return t.c.Weights }
