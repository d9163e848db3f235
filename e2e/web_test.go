// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// dist is the npm package as `make web-build` puts it together.
var dist = filepath.Join("..", "web", "dist")

// page runs the tests of the modules in testdata by name. A test that fails returns why.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>npm package</title><link rel="icon" href="data:,">
<script type="module" src="/page.mjs"></script></html>`

// testScript is what a page and a worker have in common. Most tests that both kinds of device pass run on WebGPU alone, unless tests are long:
// web/test/simd.test.mjs has them on the other in Node.
const testScript = `
export const load = (module) => import('/tests/' + module + '.mjs').then(({tests}) => tests);
export const run = (module, name, device = module === 'everywhere' ? 'both' : 'webgpu') =>
  load(module).then((tests) => tests[name](device)).then(() => '', (error) => error?.stack ?? String(error));`

const pageScript = `
import * as leaks from '/tests/leaks.mjs';
import {load, run} from '/test.mjs';
globalThis.leaks = leaks;
globalThis.names = (module) => load(module).then(Object.keys);
globalThis.run = run;
globalThis.inWorker = (...test) => new Promise((done) => {
  const worker = new Worker('/worker.mjs', {type: 'module'});
  worker.onmessage = (event) => { worker.terminate(); done(event.data); };
  worker.onerror = (event) => { worker.terminate(); done('worker: ' + event.message); };
  worker.postMessage(test);
});
document.body.dataset.ready = 'true';`

const workerScript = `
import {run} from '/test.mjs';
onmessage = ({data: test}) => run(...test).then((failure) => postMessage(failure));
`

// webTimeout is how long the tests of a page may take together: SwiftShader shares the machine with other tests.
const webTimeout = 10 * time.Minute

// openWeb opens a page that has loaded the npm package, under a Content-Security-Policy if there is one.
func openWeb(t *testing.T, policy string) *chrome.Page {
	t.Helper()
	return openWebFor(t, policy, webTimeout)
}

func openWebFor(t *testing.T, policy string, timeout time.Duration) *chrome.Page {
	t.Helper()
	p := openPage(t, chrome.Start(t), policy, timeout)
	left := keeps(p)
	t.Cleanup(func() { left(t) })
	return p
}

// openPage is openWebFor for a page that may keep what it has.
func openPage(t *testing.T, browser *chrome.Browser, policy string, timeout time.Duration) *chrome.Page {
	t.Helper()
	mux := webHandler(t)
	url := chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		mux.ServeHTTP(w, r)
	}))
	p := browser.OpenFor(t, timeout, url+"/")
	await(t, p, "document.body?.dataset.ready === 'true'")
	return p
}

// webHandler serves the npm package and its tests.
func webHandler(t *testing.T) *http.ServeMux {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dist, "index.mjs")); err != nil {
		t.Fatalf("%v; make web-build builds it", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", chrome.Files{"/": page, "/test.mjs": testScript, "/page.mjs": pageScript, "/worker.mjs": workerScript})
	mux.Handle("/dist/", http.StripPrefix("/dist/", http.FileServer(http.Dir(dist))))
	mux.Handle("/tests/", http.StripPrefix("/tests/", http.FileServer(http.Dir("testdata"))))
	mux.Handle("/params/", http.StripPrefix("/params/", http.FileServer(http.Dir(filepath.Join("..", "buffer", "file", "params", "testdata")))))
	mux.Handle("/npy/", http.StripPrefix("/npy/", http.FileServer(http.Dir(filepath.Join("..", "buffer", "file", "npy", "testdata")))))
	return mux
}

// keeps notes what a page keeps, and returns a function that fails a test if the page keeps more when garbage is collected.
func keeps(p *chrome.Page) (left func(t *testing.T)) {
	before := chrome.Eval[string](p, "JSON.stringify(leaks.held())")
	return func(t *testing.T) {
		t.Helper()
		if more := "leaks.more(" + before + ")"; !t.Failed() && !collects(p, more+" === ''") {
			t.Errorf("the page keeps %s", chrome.Eval[string](p, more))
		}
	}
}

// await waits until a condition of JavaScript holds.
func await(t *testing.T, p *chrome.Page, condition string) {
	t.Helper()
	const script = `new Promise((done, failed) => {
		const end = Date.now() + 60000;
		const look = () => (CONDITION) ? done(true) : Date.now() > end ? failed(new Error('not in a minute: ' + MESSAGE)) : setTimeout(look, 20);
		look();
	})`
	chrome.Eval[bool](p, strings.NewReplacer("CONDITION", condition, "MESSAGE", strconv.Quote(condition)).Replace(script))
}

// runWeb runs the tests of modules in testdata.
func runWeb(t *testing.T, p *chrome.Page, modules ...string) {
	t.Helper()
	for _, module := range modules {
		runModule(t, p, module, "run")
	}
}

// runOnWebGPU runs modules of tests in a page with WebGPU.
func runOnWebGPU(t *testing.T, modules ...string) {
	t.Helper()
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, modules...)
}

// runModule runs the tests of a module in testdata with a function of the page's.
func runModule(t *testing.T, p *chrome.Page, module, run string) {
	t.Helper()
	names := chrome.Eval[[]string](p, "names('"+module+"')")
	if len(names) == 0 {
		t.Errorf("no tests in %s.mjs", module)
	}
	runTests(t, p, module, run, names...)
}

// runTests runs some of them.
func runTests(t *testing.T, p *chrome.Page, module, run string, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			defer keeps(p)(t)
			call := run + "('" + module + "', '" + name + "'"
			if devtest.Long() {
				call += ", 'both'"
			}
			if failure := chrome.Eval[string](p, call+")"); failure != "" {
				t.Error(failure)
			}
		})
	}
}

// TestWeb runs the tests of the npm package in a page.
func TestWeb(t *testing.T) {
	runOnWebGPU(t, "everywhere", "expressions", "tensors", "nn", "memory", "failures", "misuse", "debug", "overhead", "repeats", "reused")
}

// TestWebContract runs those of the memory contract and of sparse matrices, on WebGPU and on the CPU's program.
func TestWebContract(t *testing.T) { runOnWebGPU(t, "contract", "sparse") }

// TestWebPictures draws on canvases and reads pictures, on WebGPU and on the CPU's program.
func TestWebPictures(t *testing.T) {
	p := openPage(t, chrome.StartOwn(t, chrome.Drawing...), "", webTimeout)
	p.RequireWebGPU()
	runWeb(t, p, "pictures")
}

// TestWebParams runs those of files of arrays, on WebGPU and on the CPU's program.
func TestWebParams(t *testing.T) { runOnWebGPU(t, "params") }

// TestWebObjects runs those of what closes objects: scopes, reports of leaks, many rounds.
func TestWebObjects(t *testing.T) { runOnWebGPU(t, "objects") }

// TestWebRecordings runs those of assignments that are planned once and computed often, on WebGPU and on the CPU's program.
func TestWebRecordings(t *testing.T) { runOnWebGPU(t, "recordings") }

// TestWebGraphs runs those of task graphs, on WebGPU and on the CPU's program.
func TestWebGraphs(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, "graphs")
	if devtest.Long() {
		runWeb(t, p, "graph-rules")
		return
	}
	runTests(t, p, "graph-rules", "run", "signals", "gates", "writing") // web/test/simd.test.mjs runs all of them
}

// TestWebFiles runs those of files of NumPy, safetensors and the Matrix Market.
func TestWebFiles(t *testing.T) { runOnWebGPU(t, "files") }

// TestWebTransfer runs those of matrices that a page and its worker have one after the other, or both.
func TestWebTransfer(t *testing.T) { runOnWebGPU(t, "transfer") }

// TestWebUnderPolicy runs some of them under a policy that allows no scripts but the page's own files.
func TestWebUnderPolicy(t *testing.T) {
	runWeb(t, openWeb(t, strict), "everywhere")
}

// TestWebInWorker runs some of them in a module worker.
func TestWebInWorker(t *testing.T) {
	runModule(t, openWeb(t, ""), "everywhere", "inWorker")
}

// TestWebCollectsForgottenMatrices forgets to close matrices. The garbage collector must find them.
func TestWebCollectsForgottenMatrices(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		globalThis.gpu = await init({device: 'webgpu'});
		globalThis.before = gpu.stats().liveBytes;
		const kept = [], file = await gpu.saveParams([['a', {data: new Float32Array(1000), shape: [10, 100]}]]);
		for (let i = 0; i < 10; i++) kept.push((await gpu.loadParams(file)).get('a').matrix());
		for (let i = 0; i < 200; i++) {
			const s = gpu.sparse(2, 2, {format: 'csc', values: [1], indices: [1], offsets: [0, 1, 1]});
			kept.push(
				gpu.zeros(100, 100).add(1).eval(), gpu.zeros(1, 1).memory.setValue(gpu.zeros(100, 100)).memory.alias().T,
				gpu.zeros(1, 1).memory.resize(2, 2).memory.take(gpu.zeros(3, 3)), s.columnSlice(0, 1).toDense(), s.values(),
			);
		}
		const adam = gpu.nn.adam(), p = gpu.zeros(100, 100);
		adam.step(p, p.add(1));
		kept.push(adam, gpu.tensor(new Float32Array(8), [2, 2, 2]).permute(2, 0, 1).eval(), gpu.nn.quantise(p), gpu.nn.batchNorm().train(p, p.row(0), p.row(1)));
		await gpu.sync();
		if (gpu.stats().liveBytes < before + 200 * 40000 || kept.length < 1000) throw new Error('nothing to collect');
		return true;
	})`)
	p.CollectGarbage()
	await(t, p, "(gpu.flush(), gpu.stats().liveBytes === before)")
	chrome.Eval[bool](p, "(gpu.close(), true)")
}

// collects collects garbage until a condition of JavaScript holds.
func collects(p *chrome.Page, condition string) bool {
	for range 50 {
		p.CollectGarbage()
		if chrome.Eval[bool](p, "new Promise((done) => setTimeout(done, 50)).then(() => "+condition+")") {
			return true
		}
	}
	return false
}

// TestWebGivesMemoryBack closes a device. Nothing may keep the memory of its program: not our helper, and not the
// caller's own GPUDevice, which lives on.
func TestWebGivesMemoryBack(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		globalThis.device = await (await navigator.gpu.requestAdapter()).requestDevice();
		const gpu = await init({device});
		const [two] = await gpu.full(1, 1, 1).add(1).read();
		gpu.close();
		return two === 2;
	})`)
	if !collects(p, "leaks.started() === 1 && leaks.programs().length === 0") {
		t.Error("the program's memory was not collected")
	}
}
