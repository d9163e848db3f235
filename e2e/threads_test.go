// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// TestWebThreads computes on the CPU with several threads, in an isolated page and in a worker of it. The policy allows no scripts but the
// package's own files.
func TestWebThreads(t *testing.T) {
	p := openWeb(t, strict)
	t.Run("page", func(t *testing.T) { runModule(t, p, "threads", "run") })
	t.Run("worker", func(t *testing.T) { runModule(t, p, "threads", "inWorker") })
}

// TestWebNotIsolated computes in a page that has no shared memory.
func TestWebNotIsolated(t *testing.T) {
	mux := webHandler(t)
	url := chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del("Cross-Origin-Opener-Policy")
		w.Header().Del("Cross-Origin-Embedder-Policy")
		mux.ServeHTTP(w, r)
	}))
	p := chrome.Start(t).OpenFor(t, webTimeout, url+"/")
	await(t, p, "document.body?.dataset.ready === 'true'")
	threads := chrome.Eval[string](p, `import('/dist/index.mjs').then(async ({init}) => {
		const gpu = await init({device: 'simd', threads: 2}), a = gpu.ones(512, 512), sums = [];
		for (let i = 0; i < 3; i++) sums.push(...await a.matmul(a).sum().read());
		const said = [crossOriginIsolated, gpu.info.threads, ...sums].join();
		gpu.close();
		return said;
	})`)
	if threads != "false,1,134217728,134217728,134217728" {
		t.Error(threads)
	}
	if failure := chrome.Eval[string](p, "run('everywhere', 'example', 'simd')"); failure != "" {
		t.Error(failure)
	}
}
