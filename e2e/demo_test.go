// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"net/http"
	"strconv"
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

// TestDemosWithoutGPU runs what each page shows first, by what it finds itself: SwiftShader is passed over.
func TestDemosWithoutGPU(t *testing.T) {
	for path, done := range map[string]string{
		"/cruncher.html":  "document.querySelectorAll('#chart g').length >= 24",
		"/pipelines.html": "Number(document.getElementById('fact-count').textContent) >= 20",
	} {
		p := openDemoOn(t, path, "the CPU", 1100, 860)
		chrome.Eval[bool](p, "(document.getElementById('run').click(), true)")
		await(t, p, "("+done+") || !document.getElementById('error').hidden")
		if why := chrome.Eval[string](p, "document.getElementById('error').textContent"); why != "" {
			t.Errorf("%s: %s", path, why)
		}
	}
}

// TestCruncherDemo uses the cruncher's page.
func TestCruncherDemo(t *testing.T) {
	p := openDemo(t, "/cruncher.html", 1100, 1120)
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
