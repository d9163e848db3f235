// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestExamples runs those examples of the npm package in a page that need one: web/test/examples.test.mjs runs the others in Node. Long
// tests run all of them on WebGPU, too, and the one of TensorFlow.js.
func TestExamples(t *testing.T) {
	names, groups := []string{"image-filter", "particles", "worker"}, []string{"inPage"}
	if devtest.Long() {
		names, groups = nil, []string{"tests", "inPage", "withTensorFlow"}
	}
	stripped := t.TempDir()
	inExamples(t, append([]string{"build.mjs", stripped}, names...)...)
	mux := webHandler(t)
	mux.HandleFunc("/examples/", func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(filepath.Join(stripped, filepath.Base(r.URL.Path)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/javascript") // although its name ends in .ts
		_, _ = w.Write(text)
	})
	p := chrome.Start(t).OpenFor(t, webTimeout, chrome.Serve(t, mux)+"/")
	p.RequireWebGPU()
	for _, group := range groups {
		run := "import('/tests/examples.mjs').then(({" + group + ": tests}) => "
		for name := range strings.SplitSeq(chrome.Eval[string](p, run+"Object.keys(tests).join())"), ",") {
			t.Run(name, func(t *testing.T) {
				if failure := chrome.Eval[string](p, run+"tests."+name+"('webgpu')).then(() => '', (error) => error?.stack ?? String(error))"); failure != "" {
					t.Error(failure)
				}
			})
		}
	}
}

// inExamples runs a script of Node in the folder of the examples.
func inExamples(t *testing.T, args ...string) {
	t.Helper()
	script := exec.Command("node", args...)
	script.Dir = filepath.Join("..", "web", "examples")
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
