// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/matrix/tune"
)

// tuneHere gives sublet tune a cache folder of the test's own.
func tuneHere(t *testing.T) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("SUBLET_TUNE", "")
	t.Setenv("SUBLET_DRIVER", "simd")
}

// stateOf is what sublet info says of the tuning.
func stateOf(t *testing.T) tuned {
	t.Helper()
	var got info
	if err := json.Unmarshal([]byte(must(t, "info", "--driver", "simd", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	return got.Adapters[0].Tuning
}

// TestTune times a few kernels, exports the timings, imports them elsewhere, and switches them off and on.
func TestTune(t *testing.T) {
	tuneHere(t)
	if s := stateOf(t); s.State != "none" || s.Choices != 0 {
		t.Errorf("before: %+v", s)
	}
	var got struct {
		tuned
		Adapter tune.Adapter
		Timed   []tune.Choice
	}
	if err := json.Unmarshal([]byte(must(t, "tune", "grid:9x9", "product:9x7x5", "--rounds", "1", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.State != "on" || got.Choices != 2 || got.Adapter.Driver != "simd" || len(got.Timed) != 2 || len(got.Timed[0].Timings) != 3 || got.Timed[1].Shape != "product:9x7x5" {
		t.Errorf("tuned %+v", got)
	}
	for _, v := range got.Timed[0].Timings {
		if v.Wrong || len(v.Runs) == 0 || v.Runs[0] <= 0 {
			t.Errorf("timed %+v", v)
		}
	}
	if _, err := os.Stat(got.File); err != nil {
		t.Error(err)
	}
	if text := must(t, "tune", "softmax:8x8", "grid:9x9", "--rounds", "1"); !strings.Contains(text, "grid:9x9  grid 64") || !strings.Contains(text, " choices, in ") {
		t.Errorf("printed %q", text)
	}
	file := filepath.Join(t.TempDir(), "timings.json")
	exported := must(t, "tune", "export")
	must(t, "tune", "export", "-o", file)
	if saved, err := os.ReadFile(file); err != nil || string(saved) != exported || !strings.HasPrefix(exported, `{"version":1,`) {
		t.Error(err, exported)
	}
	if text := must(t, "tune", "off"); !strings.Contains(text, ": off, ") || stateOf(t).State != "off" {
		t.Errorf("printed %q", text)
	}
	if text := must(t, "tune", "on", "--json"); !strings.Contains(text, `"state":"on"`) {
		t.Errorf("printed %q", text)
	}
	tuneHere(t) // another machine
	must(t, "tune", "import", file)
	if s := stateOf(t); s.State != "on" || s.Choices != 2 || must(t, "tune", "export") != exported {
		t.Errorf("imported %+v", s)
	}
	t.Setenv("SUBLET_TUNE", "OFF")
	if s := stateOf(t); s.State != "off" {
		t.Errorf("switched off: %+v", s)
	}
}

// TestTuneRefuses wants a broken file ignored with a warning, and replaced by the next timings, and what is no work refused.
func TestTuneRefuses(t *testing.T) {
	tuneHere(t)
	file := stateOf(t).File
	broken := filepath.Join(t.TempDir(), "broken.json")
	for _, path := range []string{file, broken} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"version":1,`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := sublet("eval", "A*A", "-i", "A="+floats(t, 2, 2, 1, 2, 3, 4))
	if o.status != 0 || !strings.Contains(o.stdout, "22") || strings.Count(o.stderr, "warning: tune: Read: ") != 1 {
		t.Errorf("%+v", o)
	}
	if s := stateOf(t); !strings.HasPrefix(s.State, "ignored: ") {
		t.Errorf("%+v", s)
	}
	fails(t, map[string]failing{
		"a broken file":    {"ErrInvalid", []string{"tune", "import", broken}},
		"no file":          {"ErrNotExist", []string{"tune", "import", broken + "x"}},
		"broken timings":   {"ErrInvalid", []string{"tune", "export"}},
		"no such family":   {"ErrUsage", []string{"tune", "abacus:3x3"}},
		"no such size":     {"ErrUsage", []string{"tune", "grid:3x-3"}},
		"too many rounds":  {"ErrInvalid", []string{"tune", "--rounds", "1000"}},
		"another adapter":  {"ErrUnsupported", []string{"tune", "--driver", "cpu"}},
		"import of nobody": {"ErrUsage", []string{"tune", "import"}},
	})
	must(t, "tune", "grid:9x9", "--rounds", "1")
	if s := stateOf(t); s.State != "on" {
		t.Errorf("%+v", s)
	}
}
