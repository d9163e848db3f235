// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// arithmetic is what an adapter does with float32 in functions of the user's that IEEE 754 does not allow and WGSL does. The sums
// and differences of package matrix are written so that only the first one can be told by them.
type arithmetic struct {
	FlushesSubnormals bool `json:"flushes_subnormals"` // results below 2^-126 become 0
	Reassociates      bool `json:"reassociates"`       // (x + y) - x becomes y
	Fuses             bool `json:"fuses"`              // x * y - z is rounded once
}

// probe computes what tells whether an adapter does so.
func probe(ctx context.Context, ad *gpu.Adapter) (a arithmetic, err error) {
	dev, err := ad.Open(ctx)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	value := func(of func(x ...matrix.Operand[float32]) *matrix.Expr[float32], x ...float32) float32 {
		args := make([]matrix.Operand[float32], len(x))
		for i, v := range x {
			m, failed := matrix.FromSlice(dev, 1, 1, []float32{v})
			if err = errors.Join(err, failed); failed == nil {
				defer func() { err = errors.Join(err, m.Close()) }()
			}
			args[i] = m
		}
		if err != nil {
			return 0
		}
		v, failed := of(args...).Value(ctx)
		if errors.Is(failed, gpu.ErrUnsupported) { // the oracle runs no functions of the user's, and computes step by step
			return 0
		}
		err = errors.Join(err, failed)
		return v
	}
	function := func(body string) func(x ...matrix.Operand[float32]) *matrix.Expr[float32] {
		f := matrix.NewFunc("fn probe(x: f32, y: f32, z: f32) -> f32 { return " + body + "; }")
		return func(x ...matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.Apply(f, x...) }
	}
	const least = 0x1p-126
	half := value(func(x ...matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.MulElem(x[0], x[1]) }, least, .5)
	a.FlushesSubnormals = math.Float32bits(half) == 0
	a.Reassociates = value(function("(x + y) - x"), 1, 0x1p-30, 0) != 0
	a.Fuses = value(function("x * y - z"), 1+0x1p-12, 1+0x1p-12, 1+0x1p-11) != 0
	return a, err
}

func (a *arithmetic) String() string {
	if a == nil {
		return "unknown"
	}
	var list []string
	for what, on := range map[string]bool{"flushes subnormals": a.FlushesSubnormals, "reassociates": a.Reassociates, "fuses": a.Fuses} {
		if on {
			list = append(list, what)
		}
	}
	slices.Sort(list)
	return cmp.Or(strings.Join(list, ", "), "IEEE 754")
}
