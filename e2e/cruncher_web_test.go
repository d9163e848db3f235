// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestWebCruncher runs the tests of gpu.cruncher in a page.
func TestWebCruncher(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, "cruncher-calls", "cruncher-arrays", "cruncher-failures", "cruncher-devices")
	if devtest.Long() {
		runWeb(t, p, "cruncher-tasks", "cruncher-pipelines")
		return
	}
	runTests(t, p, "cruncher-tasks", "run", "pool") // web/test/simd.test.mjs runs all of them
	runTests(t, p, "cruncher-pipelines", "run", "several", "device")
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
	if !collects(p, "released === 20 && memories.every((m) => m.deref() === undefined)") {
		t.Errorf("%d of 20 arrays were collected", chrome.Eval[int](p, "released"))
	}
	chrome.Eval[bool](p, "(gpu.close(), true)")
}

// TestWebCruncherGivesMemoryBack closes a Gpu with a cruncher, which the page holds on to.
func TestWebCruncherGivesMemoryBack(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		const gpu = await init({device: 'webgpu'});
		globalThis.cr = await gpu.cruncher('fn f(i: u32) { a[i] = a[i] + 1u; }');
		globalThis.a = cr.array('a', new Uint32Array(10));
		await cr.compute(1, 'f', {global: 10}, a);
		gpu.close();
		return true;
	})`)
	if !collects(p, "leaks.started() === 2 && leaks.programs().length === 0") {
		t.Error("the programs' memory was not collected")
	}
	chrome.Eval[bool](p, "(globalThis.cr = globalThis.a = undefined, true)")
}
