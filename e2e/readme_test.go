// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/e2e/chrome"
)

var jsBlock = regexp.MustCompile("(?s)```js\n(.*?)```")

// readme is the JavaScript of a document that goes on from its first import. What it logs is kept.
func readme(t *testing.T, path string) (script string, logged []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range jsBlock.FindAllStringSubmatch(string(text), -1) {
		if script != "" && strings.Contains(m[1], "await init(") {
			continue // another way to begin
		}
		script += m[1]
	}
	for _, m := range regexp.MustCompile(`console\.log\(.*// \w+Array \[(.*)\]`).FindAllStringSubmatch(script, -1) {
		logged = append(logged, strings.ReplaceAll(m[1], " ", ""))
	}
	return "globalThis.logged = []; console.log = (x) => logged.push(String(x));\n" + script + "\nglobalThis.done = true;", logged
}

// weights is the file that the documents load.
func weights(t *testing.T) []byte {
	t.Helper()
	var f bytes.Buffer
	w, err := params.NewWriter(&f, []file.Header{{Name: "fc1_weight", Type: dtype.Float32, Shape: []int64{2, 3}}}, params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for i := range 6 {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)))
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Bytes()
}

// What the documents show as JavaScript runs as it stands, and logs what they say.
func TestReadme(t *testing.T) {
	b := chrome.Start(t)
	for _, path := range []string{"README.md", filepath.Join("web", "README.md")} {
		t.Run(path, func(t *testing.T) {
			script, want := readme(t, filepath.Join("..", path))
			if len(want) == 0 {
				t.Fatal("it logs nothing")
			}
			mux := http.NewServeMux()
			mux.Handle("/", chrome.Files{"/script.mjs": script, "/": `<!doctype html><html lang="en"><title>readme</title>
<link rel="icon" href="data:,"><script type="importmap">{"imports": {"sublet": "/dist/index.mjs"}}</script>
<script>onerror = onunhandledrejection = (e) => { globalThis.wrong = String(e.reason?.stack ?? e.message ?? e); };</script>
<script type="module" src="/script.mjs"></script></html>`})
			mux.Handle("/dist/", http.StripPrefix("/dist/", http.FileServer(http.Dir(dist))))
			file := weights(t)
			mux.HandleFunc("/model.params", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file) })
			p := b.Open(t, chrome.Serve(t, mux)+"/")
			await(t, p, "!!(globalThis.done || globalThis.wrong)")
			if wrong := chrome.Eval[string](p, "globalThis.wrong ?? ''"); wrong != "" {
				t.Fatal(wrong)
			}
			if got := chrome.Eval[[]string](p, "logged"); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
				t.Errorf("it logs %q, and says %q", got, want)
			}
		})
	}
}
