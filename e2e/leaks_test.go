// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// TestWebForgottenStreams forgets files that were saved in part. Their goroutines, and the matrices of which they hold shares,
// must go with them.
func TestWebForgottenStreams(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		globalThis.gpu = await init({device: 'webgpu'});
		globalThis.before = gpu.stats().buffers;
		const files = []; // the collector may come at any time
		for (let i = 0; i < 5; i++) {
			const m = gpu.zeros(1024, 600), file = await gpu.saveParams([['m', m]], {type: 'stream'});
			m.close();
			files.push(file);
			if (i % 2 === 0) await file.getReader().read(); // the first of three pieces
		}
		const m = gpu.ones(1024, 600), file = await gpu.saveParams([['m', m]], {type: 'stream'});
		m.close();
		globalThis.reader = file.getReader();
		globalThis.bytes = (await reader.read()).value.length;
		if (gpu.stats().buffers !== before + files.length + 1) throw new Error(gpu.stats().buffers + ' buffers, ' + before + ' before');
		return true;
	})`)
	if !collects(p, "(gpu.flush(), gpu.stats().buffers <= before + 1)") {
		t.Errorf("%d buffers are left of what nobody reads", chrome.Eval[int](p, "gpu.stats().buffers - before"))
	}
	for range 5 { // the one that somebody does read stays
		p.CollectGarbage()
	}
	chrome.Eval[bool](p, `(async () => {
		for (let r = await reader.read(); !r.done; r = await reader.read()) bytes += r.value.length;
		if (bytes < 4 * 1024 * 600) throw new Error(bytes + ' bytes');
		await gpu.sync();
		if (gpu.stats().buffers !== before) throw new Error(gpu.stats().buffers + ' buffers at the end');
		gpu.close();
		globalThis.reader = undefined;
		return true;
	})()`)
}

// TestWebReopenedCrunchers loses devices that had crunchers. A program whose crunchers are all closed must go, and one with
// a cruncher that is open stays.
func TestWebReopenedCrunchers(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		globalThis.gpu = await init({device: 'webgpu'});
		const wgsl = 'fn f(i: u32) { a[i] = a[i] + 1u; }';
		const lose = async () => { gpu.device.destroy(); await gpu.lost; await gpu.reopen(); };
		const other = await (await navigator.gpu.requestAdapter()).requestDevice();
		const open = async (devices) => {
			const cr = await gpu.cruncher(wgsl, {devices}), memory = new Uint32Array(64), a = cr.array('a', memory);
			await cr.compute(1, 'f', {global: 64}, a);
			return {cr, a, memory};
		};
		globalThis.kept = await open(['own', other]);
		await lose();
		for (let i = 0; i < 3; i++) {
			const {cr, a} = await open('own');
			a.close();
			if (i !== 1) cr.close(); // before the loss
			await lose();
			cr.close(); // after it
		}
		return true;
	})`)
	// The Gpu's own program, and that of the cruncher that is open.
	if !collects(p, "leaks.programs().length === 2") {
		t.Errorf("%d of 5 programs are kept", chrome.Eval[int](p, "leaks.programs().length"))
	}
	chrome.Eval[bool](p, `(async () => {
		await kept.cr.compute(1, 'f', {global: 64}, kept.a); // on the other device
		if (kept.memory.join() !== Array(64).fill(2).join()) throw new Error('the elements are ' + kept.memory);
		kept.cr.close();
		kept.a.close();
		return true;
	})()`)
	if !collects(p, "leaks.programs().length === 1") {
		t.Error("the program of a cruncher that was closed is kept")
	}
	chrome.Eval[bool](p, "(gpu.close(), true)")
}

// TestWebDeviceOutlivesMany makes many a Gpu and cruncher on one device of the page's. Nobody but the first may wait for the
// promise of its loss, which keeps whoever does, and all that live must hear of it.
func TestWebDeviceOutlivesMany(t *testing.T) {
	p := openWeb(t, "")
	chrome.Eval[bool](p, `import('/dist/index.mjs').then(async ({init}) => {
		const device = await (await navigator.gpu.requestAdapter()).requestDevice(), {lost} = device;
		let waiting = 0;
		Object.defineProperty(device, 'lost', {get: () => ({then: (...f) => (waiting++, lost.then(...f))})});
		const wgsl = 'fn f(i: u32) { a[i] = a[i] + 1u; }', alive = [];
		for (let i = 0; i < 8; i++) {
			const gpu = await init({device});
			if ((await gpu.full(1, 1, 1).add(1).read())[0] !== 2) throw new Error('nothing was computed');
			if (i % 4 === 3) alive.push(gpu);
			else gpu.close();
		}
		for (let i = 0; i < 4; i++) (await alive[0].cruncher(wgsl, {devices: [device]})).close();
		if (waiting !== 2) throw new Error(waiting + ' wait for the loss');
		device.destroy();
		for (const gpu of alive) {
			const {reason} = await gpu.lost;
			const error = await gpu.zeros(1, 1).read().catch(({code}) => code);
			if (reason !== 'destroyed' || error !== 'ErrDeviceLost') throw new Error(reason + ', ' + error);
			gpu.close();
		}
		const error = await init({device}).catch(({code}) => code);
		if (error !== 'ErrDeviceLost') throw new Error('on a device that was lost before: ' + error);
		return true;
	})`)
}
