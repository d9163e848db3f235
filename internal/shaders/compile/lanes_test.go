// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"bytes"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
	"os"
	"slices"
	"strconv"
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

// TestLanesRandom compares what random kernels compute one invocation after another with what four at a time do.
func TestLanesRandom(t *testing.T) {
	first, count := uint64(1), uint64(300)
	if v, err := strconv.ParseUint(os.Getenv("LANES_SEED"), 10, 64); err == nil {
		first, count = v, 1
	}
	if v, err := strconv.ParseUint(os.Getenv("LANES_COUNT"), 10, 64); err == nil {
		count = v
	}
	refused, same := 0, 0
	for seed := first; seed < first+count; seed++ {
		size := []struct {
			text string
			n    int
		}{{"4", 4}, {"8", 8}, {"6", 6}, {"5, 2", 10}, {"8, 2", 16}, {"3", 3}, {"4, 2, 2", 16}}[seed%7]
		text := kernel(seed, size.text, size.n)
		prog, err := front.Parse(text, "main")
		if err != nil {
			refused++
			if os.Getenv("LANES_SEED") != "" {
				t.Log(err, text)
			}
			continue
		}
		if lanes.Widen(prog) == nil {
			same++
			continue
		}
		var got [2][]byte
		for i, mode := range []compile.Lanes{compile.LanesNever, compile.LanesAlways} {
			mod, err := compile.Compile(text, "main", compile.Options{Guard: true, Wazero: true, Lanes: mode})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got[i] = make([]byte, 2*size.n*32)
			for k := range got[i] {
				got[i][k] = byte(k * 7)
			}
			in := floats(someFloats...)
			for range 40 {
				in = append(in, floats(float32(len(in))*0.37)...)
			}
			compiletest.Run(t, mod, [3]uint32{2, 1, 1}, nil, [][]byte{in, got[i]})
		}
		if !bytes.Equal(got[0], got[1]) {
			for k := range len(got[0]) / 4 {
				if a, b := word(got[0], k), word(got[1], k); a != b {
					t.Errorf("seed %d: word %d of invocation %d is %#x, want %#x", seed, k%8, k/8, b, a)
					break
				}
			}
			if os.Getenv("LANES_SEED") != "" {
				t.Log(text)
			}
		}
	}
	t.Logf("%d of %d refused, %d stay as they are", refused, count, same)
}
