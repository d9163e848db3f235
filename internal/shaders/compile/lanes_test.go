// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"
)

func TestLanesPrograms(t *testing.T) {
	for kind, list := range map[string][]program{"u32": programs, "f32": realPrograms} {
		for _, p := range list {
			t.Run(p.name, func(t *testing.T) {
				prog, err := front.Parse(p.text(kind), "main")
				if err != nil {
					t.Fatal(err)
				}
				if lanes.Widen(prog) == nil {
					t.Log("stays as it is")
				}
				for _, o := range []compile.Options{{}, {Guard: true, Wazero: true}} {
					o.Lanes = compile.LanesAlways
					r := make([]byte, 16)
					run(t, o, p.text(kind), nil, words(1, 2, 3, 4, 5, 6, 7, 8), r)
					got := []uint32{word(r, 0), word(r, 1), word(r, 2), word(r, 3)}
					if !slices.Equal(got, p.want) {
						t.Errorf("got %v %v, want %v", got, [4]float64{float(r, 0), float(r, 1), float(r, 2), float(r, 3)}, p.want)
					}
				}
			})
		}
	}
}
