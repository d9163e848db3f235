// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// cruncherBars is a condition: the chart shows so many calls.
func cruncherBars(n int) string {
	return "document.querySelectorAll('#chart g').length >= " + strconv.Itoa(n)
}

// TestCruncherDemo uses the cruncher's page, which runs when it opens, on the adapter and on the CPU.
func TestCruncherDemo(t *testing.T) {
	p := openDemo(t, "/cruncher.html", 1280, 1200)
	click := func() { chrome.Eval[bool](p, "document.getElementById('run').click(), true") }
	legend := func() []string {
		return chrome.Eval[[]string](p, "[...document.querySelectorAll('#legend li')].map((li) => li.textContent)")
	}
	await(t, p, cruncherBars(24))
	if got := legend(); len(got) != 2 || !strings.Contains(got[0], "WebAssembly") || !strings.Contains(got[1], "swiftshader") {
		t.Errorf("the devices are %q, want the CPU and the adapter", got)
	}
	if said := chrome.Eval[string](p, "document.getElementById('adapters').textContent"); !strings.Contains(said, "one adapter, google swiftshader") {
		t.Errorf("of its devices it says %q", said)
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

	// The adapter alone, another kernel while it runs, one with a mistake, and none.
	chrome.Eval[bool](p, `(document.getElementById('devices').selectedIndex = 1, document.getElementById('devices').dispatchEvent(new Event('change')), true)`)
	p.Submit("kernel")
	await(t, p, "document.querySelectorAll('#legend li').length === 1") // what the calls before have shown is there until the first one is done
	await(t, p, cruncherBars(3))
	if got := legend(); len(got) != 1 || !strings.Contains(got[0], "swiftshader 100 %") {
		t.Errorf("the devices are %q, want the adapter", got)
	}
	p.Type("kernel", "fn red(i: u32) { pixels[i] = 0xff0000ffu; }")
	await(t, p, "document.getElementById('picture').getContext('2d').getImageData(9, 9, 1, 1).data.join() === '255,0,0,255'")
	fails := func(kernel, want, also string) {
		t.Helper()
		p.Type("kernel", kernel)
		if kernel == "" || chrome.Eval[string](p, "document.body.dataset.busy") == "false" {
			p.Submit("kernel")
		}
		await(t, p, "!document.getElementById('error').hidden")
		if got := chrome.Eval[string](p, "document.getElementById('error').textContent"); !strings.HasPrefix(got, want) || !strings.Contains(got, also) {
			t.Errorf("%q is answered by %q", kernel, got)
		}
	}
	fails("fn wrong(i: u32) {\n  pixels[i] = nothing;\n}", "ErrCompile ", "line 2")
	fails("", "The kernel is empty.", "fn black")
	p.Dark()
	p.Screenshot("cruncher-dark")
}

// TestCruncherDemoAlone opens the page where the CPU is all that there is, and divides that when asked to.
func TestCruncherDemoAlone(t *testing.T) {
	p := openDemoOn(t, "/cruncher.html", "the CPU", 390, 1900)
	await(t, p, cruncherBars(3))
	if said := chrome.Eval[string](p, "document.getElementById('adapters').textContent"); !strings.Contains(said, "nothing to divide") {
		t.Errorf("of its only device it says %q", said)
	}
	p.Screenshot("cruncher-phone")
	chrome.Eval[bool](p, `(document.getElementById('devices').selectedIndex = 1, document.getElementById('devices').dispatchEvent(new Event('change')), true)`)
	await(t, p, "document.querySelectorAll('#legend li').length === 2 && "+cruncherBars(6))
	if why := chrome.Eval[string](p, "document.getElementById('error').textContent"); why != "" {
		t.Error(why)
	}
}
