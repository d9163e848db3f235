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
)

// TestHello runs a Go user's own program in a page that has Go's wasm_exec.js beside it and no other file.
func TestHello(t *testing.T) {
	wasm := filepath.Join(t.TempDir(), "hello.wasm")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", wasm, "../native/hello")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", chrome.Files{"/": `<!doctype html><script src="wasm_exec.js"></script><script>
		const lines = [], log = console.log;
		console.log = (...x) => { lines.push(x.join(' ')); log(...x); };
		const go = new Go();
		const done = WebAssembly.instantiateStreaming(fetch("hello.wasm"), go.importObject)
			.then(({instance}) => go.run(instance)).then(() => lines.join('\n'), String);
	</script>`})
	mux.HandleFunc("/wasm_exec.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js"))
	})
	mux.HandleFunc("/hello.wasm", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		http.ServeFile(w, r, wasm)
	})
	page := chrome.Start(t).Open(t, chrome.Serve(t, mux))
	page.RequireWebGPU()
	out := chrome.Eval[string](page, "done")
	if !strings.HasPrefix(out, "[14 32 32 77] on ") || strings.Contains(out, "Go on") {
		t.Errorf("the program printed %q", out)
	}
}
