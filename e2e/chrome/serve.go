// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
)

// Serve serves h on the loopback interface until t ends and returns its address, without a slash at the end. The pages
// are cross-origin isolated, so they have SharedArrayBuffer and a fine clock.
func Serve(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(isolate(h))
	t.Cleanup(func() {
		s.CloseClientConnections() // a browser that still runs keeps them open
		s.Close()
	})
	return s.URL
}

func isolate(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Embedder-Policy", "require-corp")
		head.Set("Cache-Control", "no-store")
		if kind, ok := kinds[path.Ext(r.URL.Path)]; ok {
			head.Set("Content-Type", kind)
		}
		h.ServeHTTP(w, r)
	})
}

// kinds are the media types that browsers insist on. Package mime takes them from the machine, where they may be wrong.
var kinds = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".map":  "application/json",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".wasm": "application/wasm",
}

// Files is a handler that serves texts by their path, for example "/page.html".
type Files map[string]string

// ServeHTTP implements [http.Handler].
func (f Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(text)) // a browser that went away is no error
}
