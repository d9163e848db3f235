// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func command(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(args, &out, &err)
	return status, out.String(), err.String()
}

// must wants success and nothing on standard error.
func must(t *testing.T, args ...string) string {
	t.Helper()
	status, stdout, stderr := command(args...)
	if status != 0 || stderr != "" {
		t.Fatalf("pipelines %q: status %d, %q", args, status, stderr)
	}
	return stdout
}

// has fails unless the text has a match of every pattern.
func has(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("no %s in\n%s", p, text)
		}
	}
}

// tasks are the names in a trace, and how often each is there.
func tasks(t *testing.T, path string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct{ Ph, Name, Cat string }
	}
	if err := json.Unmarshal(b, &trace); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, e := range trace.TraceEvents {
		if e.Ph == "X" && e.Cat != "bind" {
			names[e.Name]++
		}
	}
	return names
}

// The scene on two devices: the report, the files, and the edges as images.
func TestEdges(t *testing.T) {
	dir := t.TempDir()
	trace, dot, out := filepath.Join(dir, "t.json"), filepath.Join(dir, "g.dot"), filepath.Join(dir, "sub", "edges")
	text := must(t, "edges", "--frames", "5", "--size", "40x30", "--devices", "2", "--trace", trace, "--dot", dot, "--out", out)
	has(t, text, `^5 frames of 40x30 in [\d.]+ s: [\d.]+ frames/s$`, `^Sobel +5 .*device \d: \d`, `^Measure +5 .*host$`,
		`^device 1: \S`, `^host +5 +[\d.]+ +[\d.]+$`, `overlap [\d.]+$`, `^moved \S+ KiB up and `, `ui\.perfetto\.dev`)
	if names := tasks(t, trace); len(names) != 8 || names["BlurAcross"] != 5 {
		t.Errorf("%v", names)
	}
	if b, err := os.ReadFile(dot); err != nil || !strings.HasPrefix(string(b), "digraph") {
		t.Errorf("%.20s, %v", b, err)
	}
	for i := range 5 {
		m := decoded(t, filepath.Join(out, fmt.Sprintf("edges-%04d.png", i)))
		if m.Bounds() != image.Rect(0, 0, 40, 30) {
			t.Errorf("%v", m.Bounds())
		}
		if r, _, _, _ := m.At(20, 2).RGBA(); r > 0x1000 { // the background fades, it has no edges
			t.Errorf("level %x in the background", r)
		}
	}
}

func decoded(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// It learns, and says how much, for each epoch.
func TestTrain(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "t.json")
	text := must(t, "train", "--data", "clusters", "--epochs", "3", "--hidden", "8", "--trace", trace, "--mode", "fifo")
	has(t, text, `^epoch 1: loss `, `^epoch 3: loss 0\.\d+, 9\d\.\d+ % right of those learnt, (9\d|100)\.\d+ % of those kept back$`,
		`^162 steps of 50 examples `, `^UpdateW2 +162 `, `^Read +162 .*host$`)
	if names := tasks(t, trace); len(names) != 14 || names["BackpropHidden"] != 162 {
		t.Errorf("%v", names)
	}
	has(t, must(t, "train", "--data", "spirals", "--epochs", "1", "--driver", "cpu", "--queued"), `^epoch 1: loss `)
}

// What cannot work is said in one line.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "broken.tgz"), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"edges --size 640", "--size 640: invalid argument: want WxH"},
		{"edges --size 640x480x3", "want WxH"},
		{"edges --size -1x5", "want WxH"},
		{"edges --size 99999x99999", "frames of 99999x99999"},
		{"edges --frames 0", "--frames 0: invalid argument"},
		{"edges --sigma 99", "blur"},
		{"edges --driver cpu", "nothing fits"},
		{"edges --driver none", "nothing fits"},
		{"edges --adapter no-such-adapter", "no adapter"},
		{"edges --devices 0", "--devices 0"},
		{"edges --in-flight 65", "65 frames in flight"},
		{"edges --mode best", "want one of data-aware"},
		{"edges --threshold 11", "a threshold of 11"},
		{"edges --frames 1 --size 8x8 --trace " + filepath.Join(dir, "none", "t.json"), "no such file"},
		{"edges more", "unknown command"},
		{"train --epochs 0", "--epochs 0"},
		{"train --batch 0", "--batch 0"},
		{"train --hidden 0", "--hidden 0"},
		{"train --batch 5000", "batches of 5000"},
		{"train --rate -1", "rate"},
		{"train --data " + filepath.Join(dir, "none"), "no such file"},
		{"train --data " + filepath.Join(dir, "broken.tgz"), "SHA-256"},
		{"dance", "unknown command"},
	} {
		status, _, stderr := command(strings.Fields(c.args)...)
		if status != 1 || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "pipelines: ") {
			t.Errorf("%s: status %d, %q, want %q", c.args, status, stderr, c.want)
		}
	}
}
