// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// blank is a page that loads nothing by itself.
const blank = `<!doctype html><html lang="en"><meta charset="utf-8"><title>npm package</title><link rel="icon" href="data:,"></html>`

// failing answers as servers do that have no program, and otherwise serves the package.
func failing(t *testing.T) http.Handler {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(dist, "sublet-simd.wasm"))
	if err != nil {
		t.Fatalf("%v; make web-build builds it", err)
	}
	answer := func(kind string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(body) // a browser that went away is no error
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/", chrome.Files{"/": blank})
	mux.Handle("/dist/", http.StripPrefix("/dist/", http.FileServer(http.Dir(dist))))
	mux.Handle("/html.wasm", answer("text/html", []byte(" <!doctype html>")))
	mux.Handle("/lie.wasm", answer("application/wasm", []byte("<!doctype html>")))
	mux.Handle("/typeless.wasm", answer("application/octet-stream", program))
	mux.Handle("/short.wasm", answer("application/wasm", program[:1000]))
	mux.Handle("/short.bin", answer("application/octet-stream", program[:1000]))
	mux.HandleFunc("/cut.wasm", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		w.Header().Set("Content-Length", strconv.Itoa(len(program)))
		_, _ = w.Write(program[:100000])
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/nobody.wasm", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	return mux
}

// loadError is an expression of JavaScript: the error of init with the options, whose path is relative to the page.
func loadError(options string) string {
	return `import('/dist/index.mjs').then(({init}) => init(` + options + `)).then((gpu) => (gpu.close(), 'none'), ({name, code, message}) => name + ' ' + code + ' ' + message)`
}

// TestWebLoadErrors serves something else than the program: the error says what, and where.
func TestWebLoadErrors(t *testing.T) {
	browser, url := chrome.Start(t), chrome.Serve(t, failing(t))
	p := browser.Open(t, url)
	for path, want := range map[string][]string{
		"/missing.wasm":  {"404 Not Found", "text/plain"},
		"/html.wasm":     {"200 OK", "text/html", "are HTML", "README"},
		"/lie.wasm":      {"200 OK", "application/wasm", "15 bytes", "3c 21 64 6f"},
		"/short.wasm":    {"200 OK", "application/wasm", "1000 bytes", "end"},
		"/short.bin":     {"200 OK", "application/octet-stream", "1000 bytes", "end"},
		"/cut.wasm":      {"200 OK", "application/wasm", " bytes"},
		"/nobody.wasm":   {"Failed to fetch", "no server answers"},
		"/typeless.wasm": nil,
	} {
		for _, threads := range []string{"1", "2"} {
			said := chrome.Eval[string](p, loadError(`{device: 'simd', threads: `+threads+`, simdWasm: '`+path+`'}`))
			if want == nil {
				if said != "none" {
					t.Errorf("%s: %s", path, said)
				}
				continue
			}
			for _, part := range append(want, "SubletError ErrInvalid sublet: init: ", path) {
				if !strings.Contains(said, part) {
					t.Errorf("%s, %s threads: %q lacks %q", path, threads, said, part)
				}
			}
		}
	}
}

// TestWebLoadErrorsOfPolicies loads it in pages whose policy forbids that, and a part that is missing.
func TestWebLoadErrorsOfPolicies(t *testing.T) {
	browser := chrome.Start(t)
	for policy, want := range map[string]string{
		"connect-src 'none'": "forbids it by connect-src",
		"script-src 'self'":  "must allow 'wasm-unsafe-eval' in script-src",
		"":                   "/dist/parts/kernels.mjs: 404 Not Found, text/plain",
	} {
		files := failing(t)
		p := browser.Open(t, chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if policy == "" && strings.HasPrefix(r.URL.Path, "/dist/parts/") {
				w.Header().Del("Content-Type")
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Security-Policy", policy)
			files.ServeHTTP(w, r)
		})))
		said := chrome.Eval[string](p, loadError(`{device: 'simd', threads: 2}`))
		if !strings.HasPrefix(said, "SubletError ErrInvalid sublet: init: ") || !strings.Contains(said, want) {
			t.Errorf("policy %q: %q lacks %q", policy, said, want)
		}
	}
}

// preload is what the package's README recommends, as a script; it waits until the program has come.
const preload = `const links = ['<link rel="modulepreload" href="/dist/index.mjs">', '<link rel="preload" href="/dist/sublet.wasm" as="fetch" type="application/wasm" crossorigin>'];
	document.head.append(document.createRange().createContextualFragment(links.join('')));
	await new Promise((done) => { document.head.lastChild.onload = done; })`

// TestWebRequests counts what a page asks for until it has its first product: nothing that it does not use.
func TestWebRequests(t *testing.T) {
	browser, files := chrome.Start(t), failing(t)
	for name, c := range map[string]struct {
		page, options string
		want          []string
		says          string // what is requested of WebGPU, or the error's code
	}{
		"WebGPU, preloaded":         {preload, "{device: 'webgpu'}", []string{"index.mjs", "sublet.wasm"}, "2 adapters, 2 devices"},
		"WebGPU":                    {"", "{device: 'webgpu'}", []string{"index.mjs", "sublet.wasm"}, "2 adapters, 2 devices"},
		"a GPUDevice":               {"", "{device: await navigator.gpu.requestAdapter().then((adapter) => adapter.requestDevice())}", []string{"index.mjs", "sublet.wasm"}, "1 adapters, 1 devices"},
		"a GPU":                     {"GPUAdapter.prototype.__defineGetter__('info', () => ({vendor: 'nvidia'}))", "{}", []string{"index.mjs", "sublet.wasm"}, "2 adapters, 2 devices"},
		"SwiftShader":               {"", "{threads: 1}", []string{"index.mjs", "parts/kernels.mjs", "sublet-simd.wasm"}, "2 adapters, 0 devices"},
		"no WebGPU":                 {"Object.defineProperty(navigator, 'gpu', {value: undefined})", "{threads: 2}", []string{"index.mjs", "parts/crew.mjs", "parts/kernels.mjs", "sublet-simd.wasm", "thread.mjs"}, "0 adapters, 0 devices"},
		"WebGPU that is missing":    {"Object.defineProperty(navigator, 'gpu', {value: undefined})", "{device: 'webgpu'}", []string{"index.mjs"}, "ErrNoAdapter"},
		"no adapter":                {"navigator.gpu.requestAdapter = async () => null", "{device: 'webgpu'}", []string{"index.mjs"}, "ErrNoAdapter"},
		"options that are mistaken": {"", "{device: 'none'}", []string{"index.mjs"}, "ErrInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			p := browser.Open(t, chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				// When the rest of a program comes, TestRest and TestUsual look at.
				if path, ok := strings.CutPrefix(r.URL.Path, "/dist/"); ok && !strings.HasSuffix(path, "-rest.wasm") {
					mu.Lock()
					if path != "thread.mjs" || !slices.Contains(asked, path) { // each program has workers of its own
						asked = append(asked, path)
					}
					mu.Unlock()
				}
				files.ServeHTTP(w, r)
			})))
			said := chrome.Eval[string](p, `(async () => {
				let adapters = 0, devices = 0;
				const {requestAdapter} = GPU.prototype, {requestDevice} = GPUAdapter.prototype;
				GPU.prototype.requestAdapter = function (...wish) { adapters++; return requestAdapter.apply(this, wish); };
				GPUAdapter.prototype.requestDevice = function (...wish) { devices++; return requestDevice.apply(this, wish); };
				`+c.page+`;
				const {init} = await import('/dist/index.mjs'), options = `+c.options+`;
				for (let i = 0; i < 2; i++) { // a second one asks for nothing
					const gpu = await init(options), ones = gpu.ones(512, 512), sum = await ones.matmul(ones).sum().value();
					gpu.close();
					if (sum !== 512 ** 3) return String(sum);
				}
				return adapters + ' adapters, ' + devices + ' devices';
			})().catch(({code}) => code)`)
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(asked)
			if !slices.Equal(asked, c.want) {
				t.Errorf("it asked for %q, not %q", asked, c.want)
			}
			if said != c.says {
				t.Errorf("%s, not %s", said, c.says)
			}
		})
	}
}
