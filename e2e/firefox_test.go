// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// firefoxPage runs the tests that web/test/simd.test.mjs has Node run.
const firefoxPage = `<!doctype html><meta charset="utf-8"><title>npm package</title><link rel="icon" href="data:,"><script type="module">
const outcome = {};
const send = (value) => fetch('/outcome', {method: 'POST', body: JSON.stringify(value)});
try {
	const {init} = await import('/dist/index.mjs'), gpu = await init();
	outcome['driver ' + gpu.info.driver] = gpu.info.driver === 'simd' ? '' : 'without WebGPU';
	gpu.close();
	for (const module of ['everywhere', 'expressions', 'tensors', 'nn', 'sparse', 'contract', 'params', 'cruncher-calls', 'cruncher-arrays', 'cruncher-failures']) {
		const {tests} = await import('/tests/' + module + '.mjs');
		for (const [name, run] of Object.entries(tests)) {
			if (run.both) outcome[module + ' ' + name] = await run('simd').then(() => '', (error) => String(error) + error?.stack);
		}
	}
	const {tests} = await import('/tests/threads.mjs');
	for (const [name, run] of Object.entries(tests)) outcome['threads ' + name] = await run().then(() => '', (error) => String(error) + error?.stack);
} catch (error) {
	outcome.page = String(error) + error?.stack;
}
send(outcome);
</script>`

// TestFirefox runs the tests of pages that need no WebGPU with the packed package in Firefox, which has no WebGPU here: the page says itself
// how they went.
func TestFirefox(t *testing.T) {
	if !devtest.Long() {
		return // Firefox is not among what make test wants
	}
	outcome := make(chan map[string]string, 1)
	mux := http.NewServeMux()
	packed := filepath.Join(fixture{folder: "importmap"}.unpack(t, pack(t)), "node_modules", "sublet", "dist")
	mux.Handle("/", webHandler(t))
	mux.Handle("/dist/", http.StripPrefix("/dist/", http.FileServer(http.Dir(packed))))
	mux.Handle("/firefox", chrome.Files{"/firefox": firefoxPage})
	mux.HandleFunc("/outcome", func(_ http.ResponseWriter, r *http.Request) {
		var o map[string]string
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			o = map[string]string{"page": err.Error()}
		}
		outcome <- o
	})
	url := chrome.Serve(t, mux)
	ctx, cancel := context.WithTimeout(t.Context(), webTimeout)
	defer cancel()
	chrome.Firefox(t, ctx, url+"/firefox")
	select {
	case o := <-outcome:
		for name, failure := range o {
			if failure != "" {
				t.Errorf("%s: %s", name, failure)
			}
		}
		if len(o) < 50 {
			t.Errorf("%d tests ran", len(o))
		}
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
}

// TestFirefoxPackages runs the tests that pages have of the layers above the drivers, and the drivers' conformance suite, on the device
// that needs no WebGPU.
func TestFirefoxPackages(t *testing.T) {
	if !devtest.Long() {
		return // see TestFirefox
	}
	simd := map[string]string{"SUBLET_TEST_DRIVERS": "simd"}
	for dir, tests := range map[string]string{
		"./gpu/simd": "", "./gpu": "", "./buffer": "", "./buffer/ndarray": "", "./matrix": "", "./matrix/graph": "",
		"./buffer/cruncher": crunchersInPages, "./matrix/graph/pipelines": pipelinesInPages,
	} {
		t.Run(dir, func(t *testing.T) {
			o := chrome.Options{Args: []string{"-test.run=" + cmp.Or(tests, "^Test")}, Env: simd, Timeout: 15 * time.Minute}
			chrome.Build(t, dir).RunFirefox(t, o)
		})
	}
}
