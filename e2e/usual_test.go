// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// profiled is where `make profile` puts programs whose functions tell when they are called, and the functions' names.
var profiled = filepath.Join("..", ".cache", "profile")

// TestUsual does what most pages do first, and wants all functions of Go that run to be in the first part of the program. With -update it
// notes which functions these are.
func TestUsual(t *testing.T) {
	for device, program := range map[string]string{"webgpu": "sublet", "simd": "sublet-simd"} {
		t.Run(device, func(t *testing.T) {
			mux := webHandler(t)
			if *update {
				files := http.StripPrefix("/dist/", http.FileServer(http.Dir(profiled)))
				mux.Handle("/dist/"+program+".wasm", files)
				mux.Handle("/dist/"+program+"-rest.wasm", files)
			}
			p := chrome.Start(t).Open(t, chrome.Serve(t, mux)+"/")
			p.RequireWebGPU()
			called := chrome.Eval[[]int](p, `import('/tests/usual.mjs').then(({usual}) => usual('`+device+`', `+strconv.FormatBool(*update)+`))`)
			switch {
			case *update:
				note(t, program, called)
			case len(called) > 0:
				t.Errorf("functions %d of the table are not in the first part of %s: make profile wasm", called, program)
			}
		})
	}
}

// note writes the names of the functions that were called.
func note(t *testing.T, program string, called []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(profiled, program+".txt"))
	if err != nil {
		t.Fatalf("%v; make profile makes it", err)
	}
	names := strings.Split(string(text), "\n")
	var list []string
	for _, f := range called {
		list = append(list, names[f]+"\n")
	}
	slices.Sort(list)
	if err := os.WriteFile(filepath.Join("..", "wasm", "sublet", program+".txt"), []byte(strings.Join(list, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
