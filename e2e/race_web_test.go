// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// raceReport is the JSON of the page's.
type raceReport struct {
	Race  string
	Peers map[string]struct{ Name, Why string }
	Items []struct {
		ID                     string
		Flop, Bytes, Tolerance float64
		Results                map[string]struct {
			Ms, Off, Gflops, Gbs float64
			All                  []float64
			Why                  string
		}
	}
}

func readRace(t *testing.T, p *chrome.Page) (r raceReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(chrome.Eval[string](p, "document.getElementById('json').textContent")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// complete fails unless every peer was timed in every item, with results that were right and a bar that is as long as its time.
func (r raceReport) complete(t *testing.T, p *chrome.Page, backend string) {
	t.Helper()
	if name := r.Peers["tfjs"].Name; !strings.HasSuffix(name, "backend "+backend) {
		t.Errorf("TensorFlow.js is %q, %q", name, r.Peers["tfjs"].Why)
	}
	for _, item := range r.Items {
		longest := 0.
		for _, peer := range []string{"sublet", "tfjs", "plain"} {
			longest = max(longest, item.Results[peer].Ms)
		}
		for _, peer := range []string{"sublet", "tfjs", "plain"} {
			result := item.Results[peer]
			if result.Why != "" || len(result.All) == 0 || !(result.Ms > 0) || !(result.Off <= item.Tolerance) {
				t.Errorf("%s, %s: %+v", item.ID, peer, result)
				continue
			}
			if want := item.Flop / result.Ms / 1e6; math.Abs(result.Gflops-want) > 1e-6*want {
				t.Errorf("%s, %s: %v GFLOP/s of %v operations in %v ms", item.ID, peer, result.Gflops, item.Flop, result.Ms)
			}
			width := chrome.Eval[float64](p, "parseFloat(document.querySelector('[data-item="+item.ID+"] [data-peer="+peer+"] i').style.width)")
			if want := max(100*result.Ms/longest, 0.4); math.Abs(width-want) > 0.01 {
				t.Errorf("%s, %s: a bar of %v %%, want %v", item.ID, peer, width, want)
			}
		}
	}
}

// raceEnds waits for the end of a race.
func raceEnds(t *testing.T, p *chrome.Page) {
	t.Helper()
	await(t, p, "document.body.dataset.busy === 'false'")
	if why := chrome.Eval[string](p, "document.getElementById('error').textContent"); why != "" {
		t.Fatal(why)
	}
}

// TestRace waits for the race that the page begins with, and stops and starts others.
func TestRace(t *testing.T) {
	p := openDemo(t, "/race.html", 1280, 1700)
	raceEnds(t, p)
	short := readRace(t, p)
	if len(short.Items) != 7 || short.Race != "short" {
		t.Errorf("%d items in the %s race", len(short.Items), short.Race)
	}
	short.complete(t, p, "webgpu")
	if said := chrome.Eval[string](p, "document.getElementById('said').textContent"); !strings.HasPrefix(said, "Done: Sublet was ") {
		t.Errorf("in the end it says %q", said)
	}
	if points := chrome.Eval[int](p, "document.querySelectorAll('#roofline circle').length"); points != 3*5 {
		t.Errorf("%d points in the roofline, want those of five items", points)
	}
	p.Screenshot("race")
	chrome.Eval[bool](p, "(document.getElementById('copy').click(), true)")
	await(t, p, "document.getElementById('copy').textContent !== 'Copy'")
	if says := chrome.Eval[string](p, "document.getElementById('copy').textContent"); says == "Selected: Ctrl+C copies" { // no permission
		if text := chrome.Eval[string](p, "getSelection().toString()"); !strings.Contains(text, `"race": "short"`) {
			t.Errorf("selected is %q", text)
		}
	} else if says != "Copied" {
		t.Errorf("the button says %q", says)
	}

	// The full race, stopped in its middle; then another one.
	chrome.Eval[bool](p, "(dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true})), true)")
	await(t, p, "document.querySelectorAll('#items li').length === 9 && document.body.dataset.busy === 'true'")
	if !devtest.Long() {
		chrome.Eval[bool](p, "(document.getElementById('stop').click(), true)")
		raceEnds(t, p)
		if said := chrome.Eval[string](p, "document.getElementById('said').textContent"); said != "Stopped." {
			t.Errorf("after a stop it says %q", said)
		}
		chrome.Eval[bool](p, "(document.getElementById('short').click(), true)")
		await(t, p, "document.querySelector('[data-item=matmul256] [data-peer=sublet] span').textContent !== '\u2013'") // another worker
		chrome.Eval[bool](p, "(document.getElementById('stop').click(), true)")
	} else {
		for range 5 { // minutes
			if chrome.Eval[bool](p, "new Promise((done) => setTimeout(() => done(document.body.dataset.busy === 'false'), 55000))") {
				break
			}
		}
		readRace(t, p).complete(t, p, "webgpu")
	}
	raceEnds(t, p)
	p.Dark()
	p.Screenshot("race-dark")
}

// BenchmarkRace runs the full race, which takes minutes, and reports what each of its peers takes for each item: see make bench-web.
func BenchmarkRace(b *testing.B) {
	p := chrome.Start(b).OpenFor(b, 20*time.Minute, chrome.Serve(b, http.FileServer(http.Dir(dist)))+"/race.html?device=webgpu")
	chrome.Eval[bool](p, "(document.getElementById('stop').click(), document.getElementById('full').click(), true)")
	for chrome.Eval[bool](p, "new Promise((done) => setTimeout(() => done(document.body.dataset.busy === 'true'), 5000))") {
	}
	var r raceReport
	if err := json.Unmarshal([]byte(chrome.Eval[string](p, "document.getElementById('json').textContent")), &r); err != nil {
		b.Fatal(err)
	}
	peers := [][2]string{{"sublet", "Sublet"}, {"tfjs", "TensorFlow.js"}, {"plain", "plain JavaScript"}}
	for _, peer := range peers {
		fmt.Printf("note: %s: %s%s.\n", peer[1], r.Peers[peer[0]].Name, r.Peers[peer[0]].Why)
	}
	for _, item := range r.Items {
		for _, peer := range peers {
			if ms := item.Results[peer[0]].Ms; ms > 0 {
				b.Run(item.ID+"/"+peer[1], func(b *testing.B) { b.ReportMetric(ms*1e6, "ns/op") })
			}
		}
	}
}

// TestRaceOnPhone runs without a GPU, where TensorFlow.js takes its backend of WebAssembly.
func TestRaceOnPhone(t *testing.T) {
	p := openDemoOn(t, "/race.html?device=simd", "the CPU", 390, 2600)
	raceEnds(t, p)
	readRace(t, p).complete(t, p, "wasm")
	if wide := chrome.Eval[float64](p, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("the page is %v pixels wide on a phone", wide)
	}
	p.Screenshot("race-phone")
}

// TestPagesWithoutFiles opens pages of whose files some are missing: they say so, and do what they can.
func TestPagesWithoutFiles(t *testing.T) {
	files := http.FileServer(http.Dir(dist))
	url := chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/tfjs/") || r.URL.Path == "/digits.params" {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	}))
	p := chrome.Start(t).OpenFor(t, webTimeout, url+"/digits.html?device=simd")
	await(t, p, "document.getElementById('error')?.hidden === false")
	if why := chrome.Eval[string](p, "document.getElementById('error').textContent"); !strings.Contains(why, "digits.params: 404") || !strings.Contains(why, "make digits") {
		t.Errorf("without its network the page says %q", why)
	}
	p.Go(url + "/race.html?device=simd")
	await(t, p, "document.body?.dataset.ready === 'true'")
	raceEnds(t, p)
	r := readRace(t, p)
	if why := r.Peers["tfjs"].Why; why == "" {
		t.Error("TensorFlow.js takes part without its files")
	}
	for _, item := range r.Items {
		if item.Results["sublet"].Ms == 0 || item.Results["plain"].Ms == 0 || item.Results["tfjs"].Ms != 0 {
			t.Errorf("%s: %+v", item.ID, item.Results)
		}
	}
}
