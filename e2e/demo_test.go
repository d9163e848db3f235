// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// openDemo opens one of the pages that `make web` serves, on WebGPU, and waits until it is ready.
func openDemo(t *testing.T, path string, width, height int64) *chrome.Page {
	t.Helper()
	return openDemoOn(t, path+"?device=webgpu", "swiftshader", width, height)
}

// openDemoOn opens a page that is to name an adapter.
func openDemoOn(t *testing.T, path, adapter string, width, height int64) *chrome.Page {
	t.Helper()
	url := chrome.Serve(t, http.FileServer(http.Dir(dist)))
	p := chrome.Start(t).OpenFor(t, webTimeout, url+path)
	p.RequireWebGPU()
	p.Resize(width, height)
	await(t, p, "document.body?.dataset.ready === 'true'")
	if name := chrome.Eval[string](p, "document.getElementById('adapter-name').textContent"); !strings.Contains(name, adapter) {
		t.Errorf("the page names the adapter %q", name)
	}
	return p
}
