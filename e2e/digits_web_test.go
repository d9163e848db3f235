// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// digitsReference computes in float64, from the pixels of the canvas and the file of the network, how likely each digit is.
const digitsReference = `(async () => {
	const {init} = await import('./index.mjs'), gpu = await init({device: 'simd'}), params = await gpu.loadParams(fetch('digits.params'));
	const w = {};
	for (const [name, param] of params) w[name] = await param.read();
	gpu.close();
	const {width, height, data} = document.getElementById('drawing').getContext('2d').getImageData(0, 0, 280, 280);
	const ink = (i, j) => data[4 * (i * width + j) + 3] / 255;
	const sums = [height, width].map((n) => new Float64Array(n));
	for (let i = 0; i < height; i++) for (let j = 0; j < width; j++) [sums[0][i], sums[1][j]] = [sums[0][i] + ink(i, j), sums[1][j] + ink(i, j)];
	const extent = (s) => s.findLastIndex((v) => v > 0.1) - s.findIndex((v) => v > 0.1) + 1;
	const scale = Math.max(...sums.map(extent)) / 20;
	const [middleY, middleX] = sums.map((s) => s.reduce((a, v, i) => a + v * (i + 0.5), 0) / s.reduce((a, v) => a + v, 0));
	const overlap = (middle, row, i) => {
		const from = middle + (row - 14) * scale;
		return Math.max(Math.min(from + scale, i + 1) - Math.max(from, i), 0) / scale;
	};
	const image = new Float64Array(784);
	for (let y = 0; y < 28; y++) for (let i = 0; i < height; i++) {
		const wy = overlap(middleY, y, i);
		if (wy > 0) for (let x = 0; x < 28; x++) for (let j = 0; j < width; j++) image[y * 28 + x] += wy * overlap(middleX, x, j) * ink(i, j);
	}
	const found = [];
	for (let c = 0; c < 16; c++) for (let y = 0; y < 8; y++) for (let x = 0; x < 8; x++) {
		let sum = w.conv_bias[c];
		for (let k = 0; k < 49; k++) sum += w.conv_weight[49 * c + k] * image[28 * (3 * y + Math.floor(k / 7)) + 3 * x + k % 7];
		found.push(Math.max(sum, 0));
	}
	const layer = (x, weights, bias) => [...bias].map((b, j) => x.reduce((sum, v, i) => sum + v * weights[i * bias.length + j], b));
	const logits = layer(layer(found, w.hidden_weight, w.hidden_bias).map((v) => Math.max(v, 0)), w.output_weight, w.output_bias);
	const e = logits.map((v) => Math.exp(v - Math.max(...logits))), all = e.reduce((a, b) => a + b);
	return e.map((v) => 100 * v / all);
})()`

// digitsPage is the page of the digits, and where its canvas is.
type digitsPage struct {
	*chrome.Page
	left, top, side float64
}

func openDigits(t *testing.T, width, height int64) digitsPage {
	t.Helper()
	p := digitsPage{Page: openDemo(t, "/digits.html", width, height)}
	p.settled(t)
	box := chrome.Eval[[]float64](p.Page, "(() => { const b = document.getElementById('drawing').getBoundingClientRect(); return [b.left, b.top, b.width]; })()")
	p.left, p.top, p.side = box[0], box[1], box[2]
	return p
}

// settled waits until the page has answered.
func (p digitsPage) settled(t *testing.T) {
	t.Helper()
	await(t, p.Page, "document.body.dataset.busy === 'false'")
	if why := chrome.Eval[string](p.Page, "document.getElementById('error').textContent"); why != "" {
		t.Fatal(why)
	}
}

// at is a point of the canvas, in hundredths of its size.
func (p digitsPage) at(x, y float64) chrome.Point {
	return chrome.Point{X: p.left + x*p.side/100, Y: p.top + y*p.side/100}
}

// oval is a line around the middle.
func (p digitsPage) oval() (points []chrome.Point) {
	for i := range 25 {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / 24)
		points = append(points, p.at(50+22*sin, 50-34*cos))
	}
	return points
}

// answer is the digit that the page reads, and its bars in percent.
func (p digitsPage) answer(t *testing.T) (digit string, bars []float64) {
	t.Helper()
	p.settled(t)
	for _, text := range chrome.Eval[[]string](p.Page, "[...document.querySelectorAll('#bars em')].map((e) => e.textContent)") {
		v, err := strconv.ParseFloat(strings.TrimSuffix(text, " %"), 64)
		if err != nil {
			t.Fatal(err)
		}
		bars = append(bars, v)
	}
	digit = chrome.Eval[string](p.Page, "document.getElementById('digit').textContent")
	if best := chrome.Eval[string](p.Page, "document.querySelector('#bars .best b')?.textContent"); best != digit {
		t.Errorf("it reads %s, and the longest bar is that of %s", digit, best)
	}
	return digit, bars
}

// TestDigits draws digits with the mouse and with a finger, and compares the bars with the network in float64.
func TestDigits(t *testing.T) {
	p := openDigits(t, 1280, 1180)
	if digit, _ := p.answer(t); digit != "3" {
		t.Errorf("the 3 that the page begins with is read as %s", digit)
	}
	p.Screenshot("digits")
	reads := func(want string) {
		t.Helper()
		digit, bars := p.answer(t)
		exact := chrome.Eval[[]float64](p.Page, digitsReference)
		for i, v := range bars {
			if math.Abs(v-exact[i]) > 0.15 { // a digit after the point is shown
				t.Errorf("%v %% for %d, in float64 %v", v, i, exact[i])
			}
		}
		if digit != want || slices.Max(bars) < 80 {
			t.Errorf("a %s is read as %s: %v", want, digit, bars)
		}
	}
	p.Drag(p.at(53, 14), p.at(52, 30), p.at(51, 50), p.at(50, 70), p.at(49, 88)) // wipes the 3
	reads("1")
	p.Dark()
	p.Screenshot("digits-dark")
	chrome.Eval[bool](p.Page, "(document.getElementById('clear').click(), true)")
	await(t, p.Page, "document.getElementById('sure').textContent === 'Draw a digit.'")
	if shown := chrome.Eval[string](p.Page, "document.getElementById('digit').textContent"); shown != "\u2013" {
		t.Errorf("an empty canvas is read as %q", shown)
	}
	p.Touch(p.oval()...)
	reads("0")
	if up := chrome.Eval[string](p.Page, "document.getElementById('fact-up').textContent"); up == "\u2013" || up == "0 B" {
		t.Errorf("%s went to the device", up)
	}

	// Without a pointer: the digits that the page draws itself.
	right := 0
	for digit := range 10 {
		chrome.Eval[bool](p.Page, "(dispatchEvent(new KeyboardEvent('keydown', {key: '"+strconv.Itoa(digit)+"'})), true)")
		if got, _ := p.answer(t); got == strconv.Itoa(digit) {
			right++
		} else {
			t.Logf("the page's %d is read as %s", digit, got)
		}
	}
	if right < 9 {
		t.Errorf("%d of the page's own ten digits are read right", right)
	}
}

// TestDigitsReport compares what the page tells of the network with its file.
func TestDigitsReport(t *testing.T) {
	p := openDigits(t, 390, 2300)
	accuracy := chrome.Eval[string](p.Page, "document.getElementById('accuracy').textContent")
	if v, err := strconv.ParseFloat(strings.TrimSuffix(accuracy, " %"), 64); err != nil || v < 97 {
		t.Errorf("it reads %s right", accuracy)
	}
	if !chrome.Eval[bool](p.Page, `fetch('digits.json').then((r) => r.json()).then(({confusion, held, losses}) => {
		const cells = [...document.querySelectorAll('#confusion [title]')].map((td) => Number(td.textContent.replace('\u00b7', '0')));
		const points = document.querySelector('#loss polyline').getAttribute('points').split(' ');
		return cells.join() === confusion.flat().join() && cells.reduce((a, b) => a + b) === held && points.length === losses.length;
	})`) {
		t.Error("the confusion matrix or the curve is not that of the file")
	}
	if wide := chrome.Eval[float64](p.Page, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("the page is %v pixels wide on a phone", wide)
	}
	p.Screenshot("digits-phone")
}
