// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// walker is what the test has the page do.
const walker = `(() => {
	globalThis.wasmBytes = () => leaks.programs().reduce((sum, {buffer}) => sum + buffer.byteLength, 0);
	globalThis.begin = async () => {
		const {init} = await import('/dist/index.mjs');
		globalThis.gpu = await init({device: 'webgpu'});
		await gpu.full(1, 1, 1).add(1).read();
		globalThis.before = {...gpu.stats()};
	};
	globalThis.walk = async (seed, steps) => {
		const {Walk} = await import('/tests/soak.mjs'), w = new Walk(gpu, seed);
		await w.run(steps);
		await w.end();
		globalThis.lent = w.memories;
	};
	return true;
})()`

// TestWebSoak walks at random over the npm package, many times in one page. After each walk nothing may be left of it, and after some
// of them the programs need hardly more memory. SUBLET_SOAK_SEED and SUBLET_SOAK_TIME are those of package soak.
func TestWebSoak(t *testing.T) {
	const steps, warm, room = 120, 3, 4 << 20
	first, walks, end, timeout := uint64(1), devtest.Times(3), time.Time{}, webTimeout
	if devtest.Long() {
		timeout *= 3
	}
	if s := os.Getenv("SUBLET_SOAK_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		devtest.Check(t, err)
		first, walks = seed, 1
	}
	if s := os.Getenv("SUBLET_SOAK_TIME"); s != "" {
		d, err := time.ParseDuration(s)
		devtest.Check(t, err)
		end, walks, timeout = time.Now().Add(d), 1<<30, webTimeout+d
	}
	p := openWebFor(t, "", timeout)
	chrome.Eval[bool](p, walker)
	chrome.Eval[bool](p, "begin().then(() => true)")
	base := 0
	for i := 0; i < walks && (end.IsZero() || time.Now().Before(end)); i++ {
		chrome.Eval[bool](p, fmt.Sprintf("walk(%d, %d).then(() => true)", first+uint64(i), steps))
		if !collects(p, "(gpu.flush(), gpu.stats().buffers <= before.buffers && gpu.stats().liveBytes <= before.liveBytes && lent.every((m) => m.deref() === undefined))") {
			t.Fatalf("seed %d: %s are left of %s; %s arrays", first+uint64(i), chrome.Eval[string](p, "JSON.stringify(gpu.stats())"),
				chrome.Eval[string](p, "JSON.stringify(before)"), chrome.Eval[string](p, "lent.filter((m) => m.deref()).length + ''"))
		}
		n := chrome.Eval[int](p, "wasmBytes()")
		t.Logf("seed %d: %d bytes of wasm memory, %s", first+uint64(i), n, chrome.Eval[string](p, "JSON.stringify(leaks.held())"))
		switch {
		case i == warm:
			base = n
		case i > warm && n > base+room: // which never shrinks
			t.Fatalf("seed %d: %d bytes of wasm memory, %d after %d walks", first+uint64(i), n, base, warm)
		}
		if i%4 == 2 { // what is wrapped comes back by itself; nothing is here
			chrome.Eval[bool](p, "(gpu.device.destroy(), gpu.lost).then(() => gpu.reopen()).then(() => true)")
		}
	}
	chrome.Eval[bool](p, "(gpu.close(), true)")
}
