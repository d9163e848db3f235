// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sublet-gpu/sublet/internal/webpage"
)

// Serve serves h on the loopback interface until t ends and returns its address, without a slash at the end. The pages
// are cross-origin isolated, so they have SharedArrayBuffer and a fine clock.
func Serve(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(webpage.Handler(h))
	t.Cleanup(func() {
		s.CloseClientConnections() // a browser that still runs keeps them open
		s.Close()
	})
	return s.URL
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
