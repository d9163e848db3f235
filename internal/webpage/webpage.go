// SPDX-License-Identifier: Apache-2.0

// Package webpage serves the pages of this repository.
package webpage

import (
	"net/http"
	"path"
)

// kinds are the media types that browsers insist on. Package mime takes them from the machine, where they may be wrong.
var kinds = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".map":  "application/json",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".ts":   "text/plain; charset=utf-8",
	".wasm": "application/wasm",
}

// Handler serves h's files with their media types, and pages isolated from other origins, so that they have
// SharedArrayBuffer and a fine clock. Browsers keep nothing, so that the next build is seen at once.
func Handler(h http.Handler) http.Handler {
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
