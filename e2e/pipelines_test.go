// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// TestPipelines uses the page of the task graphs: both run on two devices, what they compute is shown, and the timeline has every task.
func TestPipelines(t *testing.T) {
	p := openDemo(t, "/pipelines.html", 1200, 1220)
	set := func(id, value string) {
		t.Helper()
		chrome.Eval[bool](p, "(document.getElementById('"+id+"').value = '"+value+"', true)")
	}
	text := func(id string) string {
		t.Helper()
		return chrome.Eval[string](p, "document.getElementById('"+id+"').textContent")
	}
	// run runs a pipeline until a condition holds, and stops it.
	run := func(until string) {
		t.Helper()
		chrome.Eval[bool](p, "(document.getElementById('run').click(), true)")
		await(t, p, "("+until+") || !document.getElementById('error').hidden")
		chrome.Eval[bool](p, "(document.body.dataset.running === 'true' && document.getElementById('run').click(), true)")
		await(t, p, "document.body.dataset.running === 'false'")
		if why := text("error"); why != "" {
			t.Fatal(why)
		}
	}
	until := func(condition string) {
		t.Helper()
		await(t, p, "("+condition+") || !document.getElementById('error').hidden")
		if why := text("error"); why != "" {
			t.Fatal(why)
		}
	}
	count := "Number(document.getElementById('fact-count').textContent)"
	const grey = `(() => { // the share of pixels that are not black
		const c = document.getElementById('edges'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 0; i < d.length; i += 4) n += d[i] > 64 ? 1 : 0;
		return 4 * n / d.length;
	})()`

	// The page runs when it opens, until the timeline is full.
	until("document.body.dataset.running === 'false' && " + count + " >= 40")
	if said := text("devices-said"); !strings.Contains(said, "device 0 is google swiftshader") || !strings.Contains(said, "device 1 is the CPU, by WebAssembly") {
		t.Errorf("of the devices it says %q", said)
	}
	if bars := chrome.Eval[string](p, "document.getElementById('span').textContent"); bars == "" {
		t.Error("the timeline is empty")
	}
	p.Screenshot("pipelines")
	set("size", "256x192")
	run(count + " >= 20")
	if share := chrome.Eval[float64](p, grey); share < 0.005 || share > 0.5 {
		t.Errorf("%v of the picture are edges", share)
	}
	pipelineTasks(t, p, []string{"Brightness", "BlurAcross", "BlurDown", "Sobel", "PaintBlur", "PaintEdges", "Histogram", "Measure"})
	p.Screenshot("pipelines-edges")

	// A picture of the user's, white on the left and black on the right, on all of whose frames there is one edge.
	chrome.Eval[bool](p, `(async () => {
		const c = new OffscreenCanvas(100, 75), g = c.getContext('2d');
		g.fillRect(0, 0, 100, 75);
		g.fillStyle = '#fff';
		g.fillRect(0, 0, 50, 75);
		const files = new DataTransfer(), input = document.getElementById('image');
		files.items.add(new File([await c.convertToBlob()], 'half.png', {type: 'image/png'}));
		input.files = files.files;
		input.dispatchEvent(new Event('change'));
		return true;
	})()`)
	await(t, p, "document.getElementById('image-name').textContent === 'half.png'")
	run(count + " >= 6")
	row := chrome.Eval[[]int](p, `[...document.getElementById('edges').getContext('2d').getImageData(0, 96, 256, 1).data].filter((_, i) => i % 4 === 0)`)
	if bright := slices.Max(row); bright < 128 || row[2] != 0 || row[253] != 0 || len(row) != 256 {
		t.Errorf("the edges of half a picture: %v", row)
	}

	chrome.Eval[bool](p, "(document.getElementById('choose-train').click(), true)")
	run(count + " >= 150")
	if right := text("fact-two"); !strings.HasSuffix(right, " %") || text("label-two") != "examples found" {
		t.Errorf("%s: %s", text("label-two"), right)
	}
	if loss := chrome.Eval[float64](p, "Number(document.getElementById('fact-one').textContent)"); !(loss > 0 && loss < 1) { // it begins at 1.1
		t.Errorf("the loss is %v", loss)
	}
	pipelineTasks(t, p, []string{
		"Read", "ForwardHidden", "ForwardOutput", "ForwardLoss", "BackpropLoss", "BackpropHidden", "BackpropOutputW", "BackpropOutputB",
		"BackpropHiddenW", "BackpropHiddenB", "UpdateW1", "Updateb1", "UpdateW2", "Updateb2",
	})
	p.Dark()
	chrome.Eval[bool](p, "(document.getElementById('timeline').focus(), true)")
	p.Screenshot("pipelines-train-dark")
}

// TestPipelinesAlone opens the page where the CPU is all that there is.
func TestPipelinesAlone(t *testing.T) {
	p := openDemoOn(t, "/pipelines.html", "the CPU", 390, 2600)
	await(t, p, "document.body.dataset.running === 'false' && Number(document.getElementById('fact-count').textContent) >= 40 || !document.getElementById('error').hidden")
	if why := chrome.Eval[string](p, "document.getElementById('error').textContent"); why != "" {
		t.Fatal(why)
	}
	if said := chrome.Eval[string](p, "document.getElementById('devices-said').textContent"); !strings.HasPrefix(said, "Here there is one device, the CPU") {
		t.Errorf("of its only device it says %q", said)
	}
	p.Screenshot("pipelines-phone")
}

// pipelineTasks fails unless the table, the legend, the saved trace and the graph have the tasks, and the timeline has pixels of the colour of
// each that is in view.
func pipelineTasks(t *testing.T, p *chrome.Page, want []string) {
	t.Helper()
	rows := chrome.Eval[[]string](p, "[...document.querySelectorAll('#tasks tbody td:first-child')].map((td) => td.textContent)")
	legend := chrome.Eval[[]string](p, "[...document.querySelectorAll('#legend span')].map((e) => e.textContent)")
	if !slices.Equal(rows, want) || !slices.Equal(legend, want) {
		t.Errorf("%v, %v, want %v", rows, legend, want)
	}
	saved := chrome.Eval[string](p, `new Promise((done) => {
		const {createObjectURL} = URL;
		URL.createObjectURL = (blob) => { blob.text().then(done); URL.createObjectURL = createObjectURL; return createObjectURL(blob); };
		document.getElementById('save').click();
	})`)
	var trace struct {
		TraceEvents []struct {
			Ph, Name string
			Tid      int
			Args     struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(saved), &trace); err != nil {
		t.Fatal(err)
	}
	names, worked, devices := map[string]bool{}, map[int]bool{}, 0
	for _, e := range trace.TraceEvents {
		names[e.Name] = true
		if e.Ph == "X" {
			worked[e.Tid] = true
		}
		if e.Name == "thread_name" {
			devices++
		}
	}
	dot := chrome.Eval[string](p, "document.getElementById('dot').textContent")
	for _, name := range want {
		if !names[name] || !strings.Contains(dot, name) {
			t.Errorf("no %s in the trace or in\n%s", name, dot)
		}
	}
	if devices != 3 || len(worked) < 2 { // the second device may have had nothing to do
		t.Errorf("%d devices, %v worked", devices, worked)
	}
	// Seen from nearer and from farther, the row of each device that worked has bars.
	drawn := chrome.Eval[[]int](p, `(async () => {
		const canvas = document.getElementById('timeline'), out = document.getElementById('zoom-out'), most = [0, 0, 0];
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		for (let zoom = 0; zoom < 15; zoom++, out.click(), await frame(), await frame()) {
			const scale = canvas.width / canvas.clientWidth, c = canvas.getContext('2d', {willReadFrequently: true});
			for (let row = 0; row < 3; row++) {
				const d = c.getImageData(155 * scale, (26 + 46 * row + 18) * scale, canvas.width - 155 * scale, 1).data;
				let n = 0;
				for (let i = 0; i < d.length; i += 4) n += d[i + 3] > 60 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60 ? 1 : 0;
				most[row] = Math.max(most[row], n);
			}
		}
		for (let zoom = 0; zoom < 15; zoom++) document.getElementById('zoom-in').click();
		return most;
	})()`)
	for row, n := range drawn {
		if n == 0 && worked[row] {
			t.Errorf("nothing is drawn in row %d: %v", row, drawn)
		}
	}
}
