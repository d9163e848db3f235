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
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// profiled is where `make profile` puts programs whose functions tell when they are called, and the functions' names.
var profiled = filepath.Join("..", ".cache", "profile")

// TestUsual does what most pages do first, and wants all functions of Go that run to be in the first part of the program. With -update it
// notes which functions these are.
func TestUsual(t *testing.T) {
	vendor := func(name string) string {
		return `(GPUAdapter.prototype.__defineGetter__('info', () => ({vendor: '` + name + `'})), {})`
	}
	webgpu := []string{`{device: 'webgpu'}`, `{device: await navigator.gpu.requestAdapter().then((adapter) => adapter.requestDevice())}`, vendor("nvidia")}
	if *update || devtest.Long() { // kernels for hardware are slow on SwiftShader
		webgpu = append(webgpu, vendor("amd"), vendor("intel"), vendor("apple"), vendor("qualcomm"))
	}
	browser := chrome.Start(t)
	for program, pages := range map[string][]string{
		"sublet":      webgpu,
		"sublet-simd": {`{device: 'simd', threads: 1}`, `{device: 'simd', threads: 2}`},
	} {
		t.Run(program, func(t *testing.T) {
			mux := webHandler(t)
			if *update {
				files := http.StripPrefix("/dist/", http.FileServer(http.Dir(profiled)))
				mux.Handle("/dist/"+program+".wasm", files)
				mux.Handle("/dist/"+program+"-rest.wasm", files)
			}
			url := chrome.Serve(t, mux) + "/"
			called := map[int]bool{}
			for _, options := range pages {
				list := chrome.Eval[[]int](browser.Open(t, url), `import('/tests/usual.mjs').then(async ({usual}) => usual(`+options+`, `+strconv.FormatBool(*update)+`))`)
				if len(list) > 0 && !*update {
					t.Errorf("with %s functions %d of the table are not in the first part of %s: make profile wasm", options, list, program)
				}
				for _, f := range list {
					called[f] = true
				}
			}
			if *update {
				note(t, program, called)
			}
		})
	}
}

// note writes the names of the functions that were called. Those of the runtime stay that earlier profiles have: which of them are called depends
// on when the collector runs.
func note(t *testing.T, program string, called map[int]bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(profiled, program+".txt"))
	if err != nil {
		t.Fatalf("%v; make profile makes it", err)
	}
	names := strings.Split(string(text), "\n")
	path := filepath.Join("..", "wasm", "sublet", program+".txt")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for f, name := range names {
		if called[f] || strings.HasPrefix(name, "runtime.") && strings.Contains("\n"+string(before), "\n"+name+"\n") {
			list = append(list, name+"\n")
		}
	}
	slices.Sort(list)
	if err := os.WriteFile(path, []byte(strings.Join(list, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
