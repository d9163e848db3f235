// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// playground is the page of formulas, used as a person does.
type playground struct {
	*testing.T
	*chrome.Page
}

func (p playground) text(id string) string {
	p.Helper()
	return chrome.Eval[string](p.Page, "document.getElementById('"+id+"').textContent")
}

func (p playground) click(selector string) {
	p.Helper()
	chrome.Eval[bool](p.Page, "(document.querySelector("+strconv.Quote(selector)+").click(), true)")
}

// run types a formula, presses Ctrl+Enter and waits for the result or the error.
func (p playground) run(formula string) {
	p.Helper()
	p.Type("formula", formula)
	p.Submit("formula")
	await(p.T, p.Page, "document.getElementById('run').textContent === 'Run'")
}

// want runs a formula and compares all numbers that are shown with float64 ones.
func (p playground) want(formula string, want ...float64) {
	p.Helper()
	p.run(formula)
	if why := p.text("error"); why != "" && !chrome.Eval[bool](p.Page, "document.getElementById('error').hidden") {
		p.Errorf("%s: %s", formula, why)
	}
	p.click("[data-view=numbers]")
	got := chrome.Eval[[]float64](p.Page, "[...document.querySelectorAll('#table tr + tr td')].map((td) => Number(td.textContent))")
	if len(got) != len(want) {
		p.Errorf("%s: %v, want %v", formula, got, want)
		return
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5*(1+math.Abs(want[i])) {
			p.Errorf("%s: %v, want %v", formula, got, want)
			return
		}
	}
}

// refused runs a formula and compares what is said below it.
func (p playground) refused(formula, want string) {
	p.Helper()
	p.run(formula)
	if got := p.text("error"); !strings.HasPrefix(got, want) || chrome.Eval[bool](p.Page, "document.getElementById('error').hidden") {
		p.Errorf("%q is answered by %q", formula, got)
	}
}

// drop drops a file, which JavaScript makes, on the card of an operand, and waits until its name is shown.
func (p playground) drop(operand, name, parts string) {
	p.Helper()
	p.dropOn("#card-"+operand, operand, name, parts)
}

// dropOn drops a file somewhere, and waits until its name is shown by an operand.
func (p playground) dropOn(selector, operand, name, parts string) {
	p.Helper()
	chrome.Eval[bool](p.Page, `(async () => {
		const files = new DataTransfer();
		files.items.add(new File(`+parts+`, '`+name+`', {type: '`+map[bool]string{true: "image/png"}[strings.HasSuffix(name, ".png")]+`'}));
		document.querySelector('`+selector+`').dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));
		return true;
	})()`)
	await(p.T, p.Page, "(document.getElementById('from-"+operand+"').textContent + document.getElementById('error-"+operand+"').textContent).startsWith('"+name+"')")
}

// TestPlayground types and drops matrices, and evaluates formulas of them.
func TestPlayground(t *testing.T) {
	p := playground{t, openDemo(t, "/playground.html", 1280, 900)}
	if got := chrome.Eval[string](p.Page, "[...document.querySelectorAll('#table tr + tr td')].map((td) => td.textContent).join(' ')"); got != "5 6 11 12" {
		t.Errorf("the page begins with %q", got)
	}
	p.want("T(A) * A", 17, 22, 27, 22, 29, 36, 27, 36, 45)
	p.want("softmax(A)[0]", .0900305732, .2447284711, .6652409558)
	if got := p.text("program"); got != "const A = gpu.wrap(a, ...);\nconst values = await A.softmax().slice([0, 1], [0, 3]).read();" {
		t.Errorf("in a program that would be %q", got)
	}

	// The address holds all of it, for others to see.
	p.Type("text-C", "5")
	p.want("C - A[1]", 1, 0, -1)
	address := chrome.Eval[string](p.Page, "location.href")
	p.Go("about:blank")
	p.Go(address)
	await(t, p.Page, "document.body?.dataset.ready === 'true'")
	if got := chrome.Eval[string](p.Page, "[...document.querySelectorAll('#table tr + tr td')].map((td) => td.textContent).join(' ')"); got != "1 0 -1" {
		t.Errorf("%s shows %q", address, got)
	}

	// A .npy file, big-endian and stored by columns, on B; A typed.
	p.drop("B", "b.npy", `(() => {
		const head = "{'descr': '>f8', 'fortran_order': True, 'shape': (3, 2), }".padEnd(117) + '\n';
		const bytes = new Uint8Array(128 + 48), view = new DataView(bytes.buffer);
		bytes.set([0x93, 78, 85, 77, 80, 89, 1, 0, 118, 0]);
		bytes.set(new TextEncoder().encode(head), 10);
		[1, 2, 3, 4, 5, 6].forEach((v, i) => view.setFloat64(128 + 8 * i, v));
		return [bytes];
	})()`)
	p.Type("text-A", "x,y,z\n1,0,0\n0,1,0\n")
	p.want("A * B", 1, 4, 2, 5)
	p.Type("text-C", "") // nothing else is empty, so it gets what misses the cards
	p.dropOn("h1", "C", "c.csv", "['1; 2.5\\n-3; 1e-2\\n']")
	p.want("C / 2", .5, 1.25, -1.5, .005)
	p.drop("C", "two.safetensors", `(() => {
		const head = JSON.stringify({first: {dtype: 'F32', shape: [1, 2], data_offsets: [0, 8]}, second: {dtype: 'I32', shape: [2, 1], data_offsets: [8, 16]}});
		const bytes = new Uint8Array(8 + head.length + 16), view = new DataView(bytes.buffer);
		view.setBigUint64(0, BigInt(head.length), true);
		bytes.set(new TextEncoder().encode(head), 8);
		[1.5, 2.5].forEach((v, i) => view.setFloat32(8 + head.length + 4 * i, v, true));
		[-7, 9].forEach((v, i) => view.setInt32(16 + head.length + 4 * i, v, true));
		return [bytes];
	})()`)
	p.want("C", 1.5, 2.5)
	chrome.Eval[bool](p.Page, `(() => {
		const choice = document.querySelector('#which-C select');
		choice.selectedIndex = 1;
		return choice.dispatchEvent(new Event('change'));
	})()`)
	p.want("C - 1", -8, 8)
	playgroundMistakes(p)
	playgroundViews(p)
}

// playgroundMistakes wants each mistake answered beside its field.
func playgroundMistakes(p playground) {
	p.Helper()
	p.Type("text-A", "")
	p.refused("A + 1", "A is empty")
	if got := p.text("error-A"); got != "A is empty" {
		p.Errorf("beside A: %q", got)
	}
	p.Type("text-A", "1 2\n3 four")
	if got := p.text("error-A"); got != `"four" in row 2 is no number` {
		p.Errorf("beside A: %q", got)
	}
	p.refused("A + 1", `"four" in row 2 is no number`)
	p.Type("text-A", "1 2\n3 4")
	if got := p.text("error-A") + p.text("shape-A"); got != "2 × 2" {
		p.Errorf("beside A: %q", got)
	}
	p.refused("", "The formula is empty")
	p.refused("A *", "Something is missing")
	p.refused("sofmax(A)", "There is no function sofmax: did you mean softmax?")
	p.refused("A * B", "ErrShape ")
	p.refused("A + complex(A, A)", "The result is complex")
	p.Type("size-A", "many")
	p.click("#random-A")
	if got := p.text("error-A"); !strings.HasPrefix(got, `"many" is no size`) {
		p.Errorf("beside A: %q", got)
	}
	p.drop("A", "cut.npy", "['nothing']")
	if got := p.text("error-A"); got != `cut.npy: byte 0: it does not start with \x93NUMPY` {
		p.Errorf("beside A: %q", got)
	}
	p.want("A + 0", 1, 2, 3, 4) // what was there before
}

// playgroundViews shows a picture in all ways, and saves results.
func playgroundViews(p playground) {
	p.Helper()
	p.drop("A", "ramp.png", `await (async () => {
		const canvas = new OffscreenCanvas(64, 32), paper = canvas.getContext('2d'), image = paper.createImageData(64, 32);
		for (let i = 0; i < 64 * 32; i++) image.data.set([4 * (i % 64), 4 * (i % 64), 4 * (i % 64), 255], 4 * i);
		paper.putImageData(image, 0, 0);
		return [await canvas.convertToBlob()];
	})()`)
	p.want("A[5, 10:13] * 255", 40, 44, 48)
	p.click("[data-view=heat]")
	colours := "new Set(new Uint32Array(document.getElementById('canvas').getContext('2d').getImageData(0, 0, 64, 32).data.buffer)).size"
	p.run("1 - A")
	if n := chrome.Eval[int](p.Page, colours); n < 50 {
		p.Errorf("%d colours in the heat map", n)
	}
	p.click("[data-view=grey]")
	const dark = "[...document.getElementById('canvas').getContext('2d').getImageData(60, 5, 1, 1).data].join(' ')"
	if got := chrome.Eval[string](p.Page, dark); got != "15 15 15 255" {
		p.Errorf("the picture has %q at a place where the one that was dropped has 240", got)
	}
	chrome.Eval[bool](p.Page, `(() => {
		const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect();
		return canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width * 60.5 / 64, clientY: box.top + box.height * 5.5 / 32}));
	})()`)
	if got := p.text("under"); got != "[5, 60] is 0.0588235" {
		p.Errorf("below the pointer: %q", got)
	}
	p.run("A[0:0]") // of which there is nothing to see, in any way
	p.click("[data-view=grey]")
	if got := p.text("shape"); got != "0 × 64 float32" {
		p.Errorf("an empty result: %q", got)
	}
	p.want("int32(A[0:2, 1:3] * 255)", 4, 8, 4, 8)
	const saved = `new Promise((done) => {
		const {createObjectURL} = URL;
		URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => done(KIND)); URL.createObjectURL = createObjectURL; return createObjectURL(blob); };
		document.getElementById('ID').click();
	})`
	csv := chrome.Eval[string](p.Page, strings.NewReplacer("KIND", "new TextDecoder().decode(bytes)", "ID", "save-csv").Replace(saved))
	npy := chrome.Eval[[]float64](p.Page, strings.NewReplacer("KIND", "[...new Float32Array(bytes.slice(-16))]", "ID", "save-npy").Replace(saved))
	if csv != "4,8\n4,8\n" || len(npy) != 4 || npy[1] != 8 {
		p.Errorf("saved: %q and %v", csv, npy)
	}
	p.Type("size-B", "300x200")
	p.click("#random-B")
	p.run("B * T(B) / 200")
	if got := p.text("shape") + ", " + p.text("kernels"); got != "300 × 300 float32, 1 kernel" {
		p.Errorf("the product of random matrices: %q", got)
	}
	if second, wgsl := p.text("fact-second"), p.text("wgsl"); !strings.HasSuffix(second, "s") || !strings.Contains(wgsl, "@compute") || !strings.Contains(p.text("plan"), "product/") {
		p.Errorf("the second run took %q, the plan is %q", second, p.text("plan"))
	}
	p.Screenshot("playground-product")
}
