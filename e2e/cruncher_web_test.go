// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// TestWebCruncher runs the tests of gpu.cruncher in a page.
func TestWebCruncher(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, "cruncher")
}

// TestWebCruncherForgotten forgets to close arrays and crunchers. The garbage collector must find them, and not while a call
// uses them.
func TestWebCruncherForgotten(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		const device = await (await navigator.gpu.requestAdapter()).requestDevice();
		globalThis.gpu = await init({device});
		globalThis.released = 0;
		globalThis.memories = [];
		const wgsl = 'fn f(i: u32) { a[i] = a[i] + 1u; }';
		for (let i = 0; i < 20; i++) {
			const cr = await gpu.cruncher(wgsl), memory = new Uint32Array(1000);
			const a = cr.array('a', memory, {release: () => { released++; }});
			memories.push(new WeakRef(memory));
			await cr.compute(1, 'f', {global: 1000}, a);
			if (memory[999] !== 1) throw new Error('nothing was computed');
		}
		const {compute} = Object.getPrototypeOf(await gpu.cruncher(wgsl));
		globalThis.results = [];
		globalThis.begin = async () => {
			const cr = await gpu.cruncher(wgsl), memory = new Uint32Array(1 << 20);
			results.push(compute.call(cr, 1, 'f', {global: 1 << 20}, cr.array('a', memory)).then(() => memory[5]));
		};
		return true;
	})`)
	for range 10 {
		chrome.Eval[bool](p, "begin().then(() => true)")
		p.CollectGarbage()
	}
	if ones := chrome.Eval[string](p, "Promise.all(results).then(String)"); ones != "1,1,1,1,1,1,1,1,1,1" {
		t.Errorf("calls whose arrays nobody holds yield %s", ones)
	}
	for range 50 {
		p.CollectGarbage()
		if chrome.Eval[bool](p, "new Promise((done) => setTimeout(done, 50)).then(() => released === 20 && memories.every((m) => m.deref() === undefined))") {
			return
		}
	}
	t.Errorf("%d of 20 arrays were collected", chrome.Eval[int](p, "released"))
}

// TestWebCruncherGivesMemoryBack closes a Gpu with a cruncher, which the page holds on to.
func TestWebCruncherGivesMemoryBack(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		const {instantiate} = WebAssembly;
		globalThis.memory = [];
		WebAssembly.instantiate = async (...args) => {
			const instance = await instantiate(...args);
			memory.push(new WeakRef(instance.exports.mem));
			return instance;
		};
		const gpu = await init();
		globalThis.cr = await gpu.cruncher('fn f(i: u32) { a[i] = a[i] + 1u; }');
		globalThis.a = cr.array('a', new Uint32Array(10));
		await cr.compute(1, 'f', {global: 10}, a);
		gpu.close();
		return true;
	})`)
	for range 50 {
		p.CollectGarbage()
		if chrome.Eval[bool](p, `new Promise((done) => setTimeout(done, 50)).then(() => memory.length === 2 && memory.every((m) => m.deref() === undefined))`) {
			return
		}
	}
	t.Error("the programs' memory was not collected")
}

// TestCruncherDemo uses the cruncher's page.
func TestCruncherDemo(t *testing.T) {
	url := chrome.Serve(t, http.FileServer(http.Dir(dist)))
	p := chrome.Start(t).Open(t, url+"/cruncher.html")
	p.Resize(1100, 1120)
	await(t, p, "document.body?.dataset.ready === 'true'")
	click := func() { chrome.Eval[bool](p, "document.getElementById('run').click(), true") }
	bars := func(n string) string { return "document.querySelectorAll('#chart g').length >= " + n }
	click()
	await(t, p, bars("24"))
	if got := chrome.Eval[int](p, "document.querySelectorAll('#legend li').length"); got != 2 {
		t.Errorf("%d devices in the legend, want 2: the only adapter, twice", got)
	}
	if got := chrome.Eval[bool](p, `[...document.querySelectorAll('#chart g')].every((g) => {
		const [a, b, busy] = [...g.querySelectorAll('rect')].map((r) => Number(r.getAttribute('height')));
		return Math.abs(a + b - 160) < 0.01 && busy > 0 && busy <= 48 && /^call \d+: .* %, .* %; efficiency/.test(g.textContent);
	})`); !got {
		t.Error("bars that do not show all of a call")
	}
	click()
	await(t, p, "document.getElementById('run').textContent === 'Run' && !document.getElementById('run').disabled")
	p.Screenshot("cruncher")
	if said := chrome.Eval[string](p, "document.getElementById('said').textContent"); !strings.HasPrefix(said, "Shares of the devices in ") {
		t.Errorf("after the end it says %q", said)
	}
	const colours = `new Set(new Uint32Array(document.getElementById('picture').getContext('2d').getImageData(0, 0, 384, 256).data.buffer)).size`
	if got := chrome.Eval[int](p, colours); got < 50 {
		t.Errorf("%d colours in the picture", got)
	}

	// Another kernel while it runs, on three devices, and one with a mistake.
	edit := func(wgsl string) {
		chrome.Eval[bool](p, `(document.getElementById('kernel').value = `+strconv.Quote(wgsl)+`, document.getElementById('kernel').dispatchEvent(new Event('input')), true)`)
	}
	chrome.Eval[bool](p, `(document.getElementById('devices').selectedIndex = 2, document.getElementById('devices').dispatchEvent(new Event('change')), true)`)
	click()
	await(t, p, bars("3"))
	edit("fn red(i: u32) { pixels[i] = 0xff0000ffu; }")
	await(t, p, "document.getElementById('picture').getContext('2d').getImageData(9, 9, 1, 1).data.join() === '255,0,0,255'")
	if got := chrome.Eval[int](p, "document.querySelectorAll('#legend li').length"); got != 3 {
		t.Errorf("%d devices in the legend, want 3", got)
	}
	edit("fn wrong(i: u32) {\n  pixels[i] = nothing;\n}")
	await(t, p, "!document.getElementById('error').hidden")
	if got := chrome.Eval[string](p, "document.getElementById('error').textContent"); !strings.HasPrefix(got, "ErrCompile ") || !strings.Contains(got, "line 2") {
		t.Errorf("a mistake is reported as %q", got)
	}
	p.Dark()
	p.Screenshot("cruncher-dark")
}
