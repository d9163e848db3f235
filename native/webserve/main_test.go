// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/sublet-gpu/sublet/internal/webpage"
)

func TestHandler(t *testing.T) {
	files := fstest.MapFS{
		"index.html":  {Data: []byte("<!doctype html>")},
		"index.mjs":   {Data: []byte("export {}")},
		"sublet.wasm": {Data: []byte("\x00asm")},
	}
	s := httptest.NewServer(webpage.Handler(http.FileServerFS(files)))
	defer s.Close()
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/":            {http.StatusOK, "text/html; charset=utf-8"},
		"/index.mjs":   {http.StatusOK, "text/javascript; charset=utf-8"},
		"/sublet.wasm": {http.StatusOK, "application/wasm"},
		"/none":        {http.StatusNotFound, "text/plain; charset=utf-8"},
	} {
		r, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if kind := r.Header.Get("Content-Type"); r.StatusCode != want.status || kind != want.kind {
			t.Errorf("%s: %d %q, want %d %q", path, r.StatusCode, kind, want.status, want.kind)
		}
		if r.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" || r.Header.Get("Cross-Origin-Embedder-Policy") != "require-corp" {
			t.Errorf("%s: the page would not be isolated: %v", path, r.Header)
		}
	}
}

func TestServeWantsPages(t *testing.T) {
	if err := serve("127.0.0.1:0", t.TempDir()); err == nil {
		t.Error("an empty folder was served")
	}
}
