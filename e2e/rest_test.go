// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// restScript computes what is not in the first part of the program, before the rest has come of itself.
const restScript = `(async () => {
	const idle = requestIdleCallback;
	globalThis.requestIdleCallback = () => 0;
	const {init} = await import('/dist/index.mjs'), gpu = await init({device: 'simd', threads: THREADS});
	const said = [], say = (what) => said.push(String(what));
	const bytes = new Float32Array([1, 2, 3, 4]), a = gpu.matrix(2, 2, bytes), cold = (m) => m.cumsum().read().then(say, ({code, message}) => say(code + ' ' + message));
	DO;
	gpu.close();
	return said.join('; ');
})()`

// TestRest needs the rest of a program before it is there.
func TestRest(t *testing.T) {
	browser := chrome.Start(t)
	for name, c := range map[string]struct {
		answers []string // of the server to requests for the rest, the last one to all others; "" is the rest
		do      string
		want    []string
		asked   int32
	}{
		"it comes late": {
			[]string{""},
			`const first = cold(a); bytes[0] = 9; const b = gpu.matrix(2, 2, bytes); await Promise.all([first, cold(b), b.add(a).read().then(say)])`,
			[]string{"1,3,3,7", "9,11,3,7", "10,4,6,8"},
			1,
		},
		"an answer at once": {
			[]string{""},
			`const first = cold(a); say(gpu.stats().buffers > 0); await first`,
			[]string{"true; 1,3,3,7"},
			0, // as often as the browser likes
		},
		"it comes of itself": {
			[]string{""},
			`globalThis.requestIdleCallback = idle; await a.read(); for (const end = Date.now() + 60000; performance.getEntriesByType('resource').every(({name}) => !/-rest/.test(name)) && Date.now() < end;) await new Promise((done) => setTimeout(done, 20)); await cold(a)`,
			[]string{"1,3,3,7"},
			1,
		},
		"it is missing": {
			[]string{"404", ""},
			`await cold(a); await cold(a); await cold(a)`,
			[]string{"ErrInvalid sublet: init: ", "/dist/sublet-simd-rest.wasm: 404 Not Found", "; 1,3,3,7; 1,3,3,7"},
			2,
		},
		"it is a page": {
			[]string{"html"},
			`await cold(a); await cold(a)`,
			[]string{"/dist/sublet-simd-rest.wasm: 200 OK, text/html", "are HTML"},
			0, // closing may ask once more
		},
		"it is another program's": {
			[]string{"other", ""},
			`await cold(a); await cold(a)`,
			[]string{"ErrInvalid sublet: init: the rest of the program is not that of this build", "; 1,3,3,7"},
			2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			files := failing(t)
			p := browser.Open(t, chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "-rest.wasm") {
					files.ServeHTTP(w, r)
					return
				}
				n := int(asked.Add(1)) - 1
				switch c.answers[min(n, len(c.answers)-1)] {
				case "404":
					r.URL.Path = "/missing"
				case "html":
					r.URL.Path = "/html.wasm"
				case "other":
					r.URL.Path = "/dist/sublet-rest.wasm"
				default:
					time.Sleep(100 * time.Millisecond)
				}
				files.ServeHTTP(w, r)
			})))
			for _, threads := range []string{"1", "2"} {
				asked.Store(0)
				said := chrome.Eval[string](p, strings.NewReplacer("THREADS", threads, "DO", c.do).Replace(restScript))
				for _, want := range c.want {
					if !strings.Contains(said, want) {
						t.Errorf("%s threads: %q lacks %q", threads, said, want)
					}
				}
				if n := asked.Load(); c.asked > 0 && n != c.asked {
					t.Errorf("%s threads: the rest was asked for %d times, not %d", threads, n, c.asked)
				}
			}
		})
	}
}
