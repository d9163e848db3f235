// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestMulDevices multiplies on one adapter twice, and on those of all drivers.
func TestMulDevices(t *testing.T) {
	const n = 60
	v, want := make([]float32, n*n), make([]float32, n*n)
	for i := range v {
		v[i] = float32(i%7 - 3)
	}
	for i := range want {
		for k := range n {
			want[i] += v[i/n*n+k] * v[k*n+i%n]
		}
	}
	in, out := floats(t, n, n, v...), filepath.Join(t.TempDir(), "out.npy")
	for devices, driver := range map[string]string{"0,0": devtest.Native(), "all": ""} {
		var r result
		if err := json.Unmarshal([]byte(must(t, "mul", in, in, "-o", out, "--devices", devices, "--driver", driver, "--json")), &r); err != nil {
			t.Fatal(err)
		}
		rows := 0
		for i, s := range r.Shares {
			if rows += s.Count; s.Device != i || r.Devices[i].Index != i || driver != "" && r.Devices[i].Driver != driver {
				t.Errorf("%s: share %+v of %+v", devices, s, r.Devices[i])
			}
		}
		if rows != n || len(r.Shares) < 2 || r.Rows != n || r.Dispatches < 2 {
			t.Errorf("%s: %+v", devices, r)
		}
		if _, got := read[float32](t, out); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", devices, got[:4], want[:4])
		}
	}
	text := must(t, "mul", in, in, "-o", out, "--devices", "0,0", "--driver", "simd")
	if !strings.HasPrefix(text, "DEVICE  ADAPTER") || strings.Count(text, "\n") != 4 {
		t.Errorf("printed %q", text)
	}
	for args, want := range map[string]string{
		"--devices x": "want all, or up to 1024 numbers", "--devices 9": "no adapter: 9", "--devices 0 --driver cpu": "no adapter",
	} {
		if o := sublet(append([]string{"mul", in, in, "-o", out}, strings.Fields(args)...)...); o.status != 1 || !strings.Contains(o.stderr, want) {
			t.Errorf("%s: %+v, want %q", args, o, want)
		}
	}
}
