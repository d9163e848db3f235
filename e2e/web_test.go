// SPDX-License-Identifier: Apache-2.0

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
)

// dist is the npm package as `make web-build` puts it together.
var dist = filepath.Join("..", "web", "dist")

// page runs the tests of testdata/web.mjs, contract.mjs, params.mjs and cruncher.mjs by name. A test that fails returns why.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>npm package</title><link rel="icon" href="data:,">
<script type="module" src="/page.mjs"></script></html>`

const pageScript = `
import * as base from '/web.mjs';
import {contract} from '/contract.mjs';
import {cruncher} from '/cruncher.mjs';
import {params} from '/params.mjs';
const web = {...base, contract, cruncher, params};
globalThis.names = (group) => Object.keys(web[group]);
globalThis.run = (group, name) => web[group][name]().then(() => '', (error) => error?.stack ?? String(error));
globalThis.inWorker = (name) => new Promise((done) => {
  const worker = new Worker('/worker.mjs', {type: 'module'});
  worker.onmessage = (event) => { worker.terminate(); done(event.data); };
  worker.onerror = (event) => { worker.terminate(); done('worker: ' + event.message); };
  worker.postMessage(name);
});
document.body.dataset.ready = 'true';`

const workerScript = `
import * as web from '/web.mjs';
onmessage = ({data: name}) => web.everywhere[name]().then(() => postMessage(''), (error) => postMessage(error?.stack ?? String(error)));
`

// webTimeout is how long the tests of a page may take together: SwiftShader shares the machine with other tests.
const webTimeout = 10 * time.Minute

// openWeb opens a page that has loaded the npm package, under a Content-Security-Policy if there is one.
func openWeb(t *testing.T, policy string) *chrome.Page {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dist, "index.mjs")); err != nil {
		t.Fatalf("%v; make web-build builds it", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", chrome.Files{"/": page, "/page.mjs": pageScript, "/worker.mjs": workerScript})
	mux.Handle("/dist/", http.StripPrefix("/dist/", http.FileServer(http.Dir(dist))))
	for _, file := range []string{"/web.mjs", "/contract.mjs", "/cruncher.mjs", "/params.mjs"} {
		mux.Handle(file, http.FileServer(http.Dir("testdata")))
	}
	mux.Handle("/params/", http.StripPrefix("/params/", http.FileServer(http.Dir(filepath.Join("..", "buffer", "file", "params", "testdata")))))
	url := chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		mux.ServeHTTP(w, r)
	}))
	p := chrome.Start(t).OpenFor(t, webTimeout, url+"/")
	await(t, p, "document.body?.dataset.ready === 'true'")
	return p
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

func runWeb(t *testing.T, p *chrome.Page, group string) {
	t.Helper()
	for _, name := range chrome.Eval[[]string](p, "names('"+group+"')") {
		t.Run(name, func(t *testing.T) {
			if failure := chrome.Eval[string](p, "run('"+group+"', '"+name+"')"); failure != "" {
				t.Error(failure)
			}
		})
	}
}

// TestWeb runs the tests of the npm package in a page.
func TestWeb(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, "tests")
}

// TestWebContract runs those of the memory contract and of sparse matrices, on WebGPU and on the CPU's program.
func TestWebContract(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, "contract")
}

// TestWebParams runs those of files of arrays, on WebGPU and on the CPU's program.
func TestWebParams(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, "params")
}

// TestWebUnderPolicy runs some of them under a policy that allows no scripts but the page's own files.
func TestWebUnderPolicy(t *testing.T) {
	runWeb(t, openWeb(t, strict), "everywhere")
}

// TestWebInWorker runs some of them in a module worker.
func TestWebInWorker(t *testing.T) {
	p := openWeb(t, "")
	for _, name := range chrome.Eval[[]string](p, "names('everywhere')") {
		t.Run(name, func(t *testing.T) {
			if failure := chrome.Eval[string](p, "inWorker('"+name+"')"); failure != "" {
				t.Error(failure)
			}
		})
	}
}

// TestWebCollectsForgottenMatrices forgets to close matrices. The garbage collector must find them.
func TestWebCollectsForgottenMatrices(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		globalThis.gpu = await init();
		globalThis.before = gpu.stats().liveBytes;
		const kept = [], file = await gpu.saveParams([['a', {data: new Float32Array(1000), shape: [10, 100]}]]);
		for (let i = 0; i < 10; i++) kept.push((await gpu.loadParams(file)).get('a').matrix());
		for (let i = 0; i < 100; i++) {
			const s = gpu.sparse(2, 2, {format: 'csc', values: [1], indices: [1], offsets: [0, 1, 1]});
			kept.push(
				gpu.zeros(100, 100).add(1).eval(), gpu.zeros(1, 1).setValue(gpu.zeros(100, 100)).alias().T,
				gpu.zeros(1, 1).resize(2, 2).take(gpu.zeros(3, 3)), s.columnSlice(0, 1).toDense(), s.values(),
			);
		}
		await gpu.sync();
		if (gpu.stats().liveBytes < before + 100 * 40000 || kept.length < 500) throw new Error('nothing to collect');
		return true;
	})`)
	p.CollectGarbage()
	await(t, p, "(gpu.flush(), gpu.stats().liveBytes === before)")
}

// TestWebGivesMemoryBack closes a device. Nothing may keep the memory of its program: not our helper, and not the
// caller's own GPUDevice, which lives on.
func TestWebGivesMemoryBack(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		const {instantiate} = WebAssembly;
		WebAssembly.instantiate = async (...args) => {
			const instance = await instantiate(...args);
			globalThis.memory = new WeakRef(instance.exports.mem);
			return instance;
		};
		globalThis.device = await (await navigator.gpu.requestAdapter()).requestDevice();
		const gpu = await init({device});
		const [two] = await gpu.full(1, 1, 1).add(1).read();
		gpu.close();
		return two === 2;
	})`)
	const collected = `new Promise((done) => setTimeout(done, 50)).then(() => memory.deref() === undefined)`
	for range 50 {
		p.CollectGarbage()
		if chrome.Eval[bool](p, collected) {
			return
		}
	}
	t.Error("the program's memory was not collected")
}

// TestDemo uses the page that `make web` serves.
func TestDemo(t *testing.T) {
	url := chrome.Serve(t, http.FileServer(http.Dir(dist)))
	p := chrome.Start(t).Open(t, url+"/")
	p.Resize(1100, 860)
	await(t, p, "document.body?.dataset.ready === 'true'")
	if name := chrome.Eval[string](p, "document.getElementById('adapter-name').textContent"); !strings.Contains(name, "swiftshader") {
		t.Errorf("the page names the adapter %q", name)
	}
	multiply := func() {
		t.Helper()
		chrome.Eval[bool](p, "document.getElementById('multiply').click(), true")
		await(t, p, "!document.getElementById('multiply').disabled")
	}
	cells := func() string {
		t.Helper()
		return chrome.Eval[string](p, "[...document.querySelectorAll('#table td')].map((td) => td.textContent).join(' ')")
	}
	multiply()
	if got := cells(); got != "4 5 10 11" {
		t.Errorf("the product is shown as %q", got)
	}
	p.Screenshot("demo")

	// A .npy file, big-endian and stored by columns, dropped on B; A typed.
	chrome.Eval[bool](p, `(async () => {
		const head = "{'descr': '>f8', 'fortran_order': True, 'shape': (3, 2), }".padEnd(117) + '\n';
		const bytes = new Uint8Array(128 + 48), view = new DataView(bytes.buffer);
		bytes.set([0x93, 78, 85, 77, 80, 89, 1, 0, 118, 0]);
		bytes.set(new TextEncoder().encode(head), 10);
		[1, 2, 3, 4, 5, 6].forEach((v, i) => view.setFloat64(128 + 8 * i, v));
		const files = new DataTransfer();
		files.items.add(new File([bytes], 'b.npy'));
		document.getElementById('card-b').dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));
		const a = document.getElementById('text-a');
		a.value = 'x,y,z\n1,0,0\n0,1,0\n';
		a.dispatchEvent(new Event('input'));
		return true;
	})()`)
	await(t, p, "document.getElementById('from-b').textContent.startsWith('b.npy')")
	multiply()
	if got := cells(); got != "1 4 2 5" {
		t.Errorf("the product with the file is shown as %q", got)
	}

	chrome.Eval[bool](p, `(document.getElementById('text-a').value = '1 2', document.getElementById('text-a').dispatchEvent(new Event('input')), true)`)
	multiply()
	if got := chrome.Eval[string](p, "document.getElementById('error').textContent"); !strings.HasPrefix(got, "ErrShape ") {
		t.Errorf("a product that does not fit is reported as %q", got)
	}

	chrome.Eval[bool](p, `(document.getElementById('random-a').click(), document.getElementById('random-b').click(), true)`)
	multiply()
	if got := chrome.Eval[string](p, "document.getElementById('shape-c').textContent"); got != "512 × 512" {
		t.Errorf("the product of random matrices has the shape %q", got)
	}
	p.Dark()
	p.Screenshot("demo-dark")
}
