// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"math"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

const (
	// moving is true once so many pictures were drawn after the moment that was marked.
	moving = "sublet.frames > globalThis.marked + 2"
	mark   = "(globalThis.marked = sublet.frames, true)"
	// lit counts the pixels that particles have brightened.
	lit = `(() => {
		const canvas = document.getElementById('picture'), {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
		let n = 0;
		for (let i = 0; i < data.length; i += 4) n += data[i + 2] > 40 ? 1 : 0;
		return n;
	})()`
)

// TestFirstPage has the particles move by the code of the page and by that of a visitor, in a GPU buffer of the page and in an array.
func TestFirstPage(t *testing.T) {
	for name, open := range map[string]func() *chrome.Page{
		"WebGPU": func() *chrome.Page { return openDemo(t, "/", 1280, 860) },
		"CPU":    func() *chrome.Page { return openDemoOn(t, "/", "the CPU", 1280, 860) },
	} {
		t.Run(name, func(t *testing.T) {
			p := open()
			chrome.Eval[bool](p, mark)
			await(t, p, moving)
			said := chrome.Eval[string](p, "document.getElementById('place').textContent")
			if on := chrome.Eval[bool](p, "sublet.buffer instanceof GPUBuffer"); on != (name == "WebGPU") || strings.Contains(said, "no WebGPU") == on {
				t.Errorf("in a GPU buffer: %v, and the page says %q", on, said)
			}
			chrome.Eval[bool](p, "(document.getElementById('play').click(), true)")
			await(t, p, "document.body.dataset.playing === 'false'")
			if moved := chrome.Eval[string](p, "document.getElementById('fact-moved').textContent"); name == "WebGPU" && moved != "0 B" {
				t.Errorf("the particles moved %s between GPU and page", moved)
			}
			if n := chrome.Eval[int](p, lit); n < 2000 {
				t.Errorf("%d pixels are lit", n)
			}
			firstStep(t, p)
			firstMistakes(t, p)
		})
	}
}

// firstStep types a step, runs it once, and compares all particles with what float64 yields.
func firstStep(t *testing.T, p *chrome.Page) {
	t.Helper()
	p.Type("code", "const pull2 = x.square().add(y.square()).add(0.5);\nvx.assign(vx.mul(0.5).sub(x.div(pull2)));\ny.assign(y.add(vy.mul(dt)).add(vx.exp()));")
	chrome.Eval[bool](p, mark)
	p.Submit("code")
	await(t, p, "sublet.frames > globalThis.marked") // what was typed is shown at once, without time passing
	worst := chrome.Eval[float64](p, `(async () => {
		const before = await sublet.state.read(), {n} = sublet, frames = sublet.frames;
		document.getElementById('step').click();
		while (sublet.frames === frames) await new Promise((done) => setTimeout(done, 10));
		const after = await sublet.state.read();
		let worst = 0;
		for (let i = 0; i < n; i++) {
			const [x, y, vx, vy] = [0, 1, 2, 3].map((row) => before[row * n + i]);
			const faster = vx * 0.5 - x / (x * x + y * y + 0.5);
			const want = [x, y + vy / 60 + Math.exp(faster), faster, vy];
			want.forEach((value, row) => { worst = Math.max(worst, Math.abs(after[row * n + i] - value) / (1 + Math.abs(value))); });
		}
		return n === 20000 ? worst : NaN;
	})()`)
	if !(worst < 1e-6) || math.IsNaN(worst) {
		t.Errorf("the step is off by %v", worst)
	}
}

// firstMistakes types code that cannot run. What is wrong is said, and the particles go on by the last code that worked.
func firstMistakes(t *testing.T, p *chrome.Page) {
	t.Helper()
	for _, c := range []struct{ code, want string }{
		{"", "The code is empty"},
		{"x.assign(", "This is not JavaScript"},
		{"x.assign(wind);", "wind is not defined"},
		{"x.assign(y.matmul(x));", "ErrShape "},
		{"x.assign(fn('fn bad(a: f32) -> f32 { return nothing; }')(y));", "ErrCompile "},
	} {
		p.Type("code", c.code)
		p.Submit("code")
		await(t, p, "!document.getElementById('error').hidden && document.getElementById('error').textContent.includes('"+strings.TrimSpace(c.want)+"')")
		if chrome.Eval[string](p, "document.getElementById('code').getAttribute('aria-invalid')") != "true" {
			t.Errorf("%q is not marked", c.code)
		}
	}
	chrome.Eval[bool](p, "(document.getElementById('play').click(), "+mark+")")
	await(t, p, moving)
	chrome.Eval[bool](p, "(document.querySelector('[data-example=attractor]').click(), true)")
	await(t, p, "document.getElementById('error').hidden && sublet.frames > 2")
	// A hidden page stands still: at most the picture under way is finished.
	chrome.Eval[bool](p, `(Object.defineProperty(document, 'hidden', {configurable: true, get: () => true}), document.dispatchEvent(new Event('visibilitychange')), true)`)
	if still := chrome.Eval[bool](p, `(async () => {
		const frames = async () => { for (let i = 0; i < 6; i++) await new Promise(requestAnimationFrame); await sublet.queued(); return sublet.frames; };
		for (let i = 0, before = -1; i < 20; i++, before = globalThis.last) if ((globalThis.last = await frames()) === before) return true;
		return false;
	})()`); !still {
		t.Error("the hidden page goes on")
	}
	chrome.Eval[bool](p, `(delete document.hidden, document.dispatchEvent(new Event('visibilitychange')), `+mark+`)`)
	await(t, p, moving)
}

// TestFirstPageStill opens the page of a user who wants no motion: it shows a picture that does not move until it is told to.
func TestFirstPageStill(t *testing.T) {
	p := openDemoOn(t, "/playground.html", "the CPU", 1280, 860)
	p.Prefer("prefers-reduced-motion", "reduce")
	p.Go(chrome.Eval[string](p, "location.origin") + "/")
	await(t, p, "document.body?.dataset.ready === 'true'")
	if got := chrome.Eval[string](p, "document.getElementById('play').textContent + ' ' + document.body.dataset.playing"); got != "Play false" {
		t.Errorf("the page starts with %q", got)
	}
	if n := chrome.Eval[int](p, lit); n < 2000 {
		t.Errorf("%d pixels are lit", n)
	}
	chrome.Eval[bool](p, "(document.getElementById('play').click(), "+mark+")")
	await(t, p, moving)
}
