// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// TestDecide has a variant used where it is clearly faster in the lower quartile, right, and its first call no later.
func TestDecide(t *testing.T) {
	usual := Timing{Variant: "a in 1", First: 1000, Runs: []int64{100, 100, 100, 100, 900, 100}}
	runs := func(ns int64) []int64 { return []int64{ns, ns, ns, ns, ns, ns} }
	for name, c := range map[string]struct {
		others       []Timing
		best, sooner string
	}{
		"alone":             {nil, "", ""},
		"a little":          {[]Timing{{Variant: "b", First: 1000, Runs: runs(96)}}, "", ""},
		"lucky once":        {[]Timing{{Variant: "b", First: 1000, Runs: []int64{10, 120, 120, 120, 120, 120}}}, "", ""},
		"lucky at first":    {[]Timing{{Variant: "b", First: 1000, Runs: []int64{50, 50, 50, 100, 100, 100}}}, "", ""},
		"clearly":           {[]Timing{{Variant: "b", First: 1050, Runs: []int64{90, 90, 90, 5000, 90, 90}}, {Variant: "c", First: 1000, Runs: runs(94)}}, "b", ""},
		"wrong":             {[]Timing{{Variant: "b", First: 1000, Runs: runs(9), Wrong: true}}, "", ""},
		"fewer rounds":      {[]Timing{{Variant: "b", First: 1000, Runs: runs(9)[:5]}}, "", ""},
		"first unknown":     {[]Timing{{Variant: "b", Runs: runs(9)}}, "", ""},
		"first later":       {[]Timing{{Variant: "b", First: 1060, Runs: runs(9)}, {Variant: "c", First: 900, Runs: runs(50)}}, "c", ""},
		"other parts":       {[]Timing{{Variant: "b in 2", First: 1060, Runs: runs(9)}}, "", ""},
		"in the background": {[]Timing{{Variant: "b in 1", First: 9000, Runs: runs(9)}}, "b in 1", "a in 1"},
		"not timed":         {[]Timing{{Variant: "b", First: 1}}, "", ""},
	} {
		choice := Choice{Usual: "a in 1", Timings: append(c.others, usual)}
		if best, sooner := choice.decide(); best != c.best || sooner != c.sooner {
			t.Errorf("%s: %q, %q", name, best, sooner)
		}
		choice.Timings = c.others
		if best, _ := choice.decide(); best != "" {
			t.Errorf("%s, without the usual variant: %q", name, best)
		}
	}
}
