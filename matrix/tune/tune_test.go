// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
	"github.com/sublet-gpu/sublet/matrix/tune/timing"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// warnings keeps what a device warns of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (*warnings) Debug(string, ...any) {}

func (w *warnings) Warn(msg string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, fmt.Sprint(append([]any{msg}, args...)...))
}

// open opens a device, with a cache folder of the test's own.
func open(t *testing.T, opts ...gpu.Option) *gpu.Device {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("SUBLET_TUNE", "")
	return devtest.Open(t, "simd", opts...)
}

// inUse returns what the planner of a device knows.
func inUse(dev *gpu.Device) (tuned *kernels.Tuned) {
	exec.Of(dev).Tune(func(info *plan.Device) { tuned = info.Tuned })
	return tuned
}

// product computes an element of a product of ones.
func product(ctx context.Context, dev *gpu.Device) error {
	a, err := matrix.New[float32](dev, 40, 50)
	if err != nil {
		return err
	}
	defer a.Close()
	if err = a.AssignContext(ctx, matrix.AddScalar(a, 1)); err != nil {
		return err
	}
	v, err := matrix.Mul(a, matrix.Transpose(a)).Read(ctx)
	if err == nil && v[7] != 50 {
		err = fmt.Errorf("computed %v", v[7])
	}
	return err
}

// made is results with one choice, in which another variant is the best.
func made(dev *gpu.Device) *Results {
	r := timing.Fresh(dev.Info())
	r.Choices = append(r.Choices, Choice{Family: "product", DType: "float32", Layout: 2, Log2: [3]uint8{6, 6, 6}, Shape: "product:40x50x40:nt", Usual: "native", Timings: []Timing{
		{Variant: "native", First: 100, Runs: []int64{100, 90, 110, 120}}, {Variant: "tile 8 1 1 1 in 1", First: 100, Runs: []int64{50, 40, 60, 500}},
	}})
	return r
}

// TestFiles saves results, has another device use them, and switches them off.
func TestFiles(t *testing.T) {
	ctx, dev := t.Context(), open(t)
	devtest.Check(t, Use(dev)) // nothing
	r := made(dev)
	devtest.Check(t, Save(r, dev.Info()))
	if got := inUse(dev); got != nil {
		t.Error("used before it is told to")
	}
	second := devtest.Open(t, "simd")
	devtest.Check(t, Use(second))
	p, err := matrix.Mul(ones(t, second, 40, 50), matrix.Transpose(ones(t, second, 40, 50))).Explain(ctx)
	if err != nil || !strings.HasPrefix(p.Launches[0].Kernel, "product/tile 8 1 1 1") {
		t.Error(p, err)
	}
	devtest.Check(t, product(ctx, second))
	r, err = Load(dev.Info())
	if err != nil || r.Other() != 1 || r.Choices[0].Best != "tile 8 1 1 1 in 1" {
		t.Errorf("%+v, %v", r, err)
	}
	var text bytes.Buffer
	devtest.Check(t, r.Write(&text))
	again, err := Read(bytes.NewReader(text.Bytes()), dev.Info())
	if err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
		t.Errorf("%+v, %v", again, err)
	}
	r.Off = true
	devtest.Check(t, r.Apply(second))
	if r.Other() != 0 || inUse(second) != nil {
		t.Error("used though they are off")
	}
	t.Setenv("SUBLET_TUNE", "off")
	r.Off = false
	devtest.Check(t, r.Apply(second))
	third := devtest.Open(t, "simd")
	devtest.Check(t, Use(third))
	if inUse(second) != nil || inUse(third) != nil {
		t.Error("used though the variable says off")
	}
}

func ones(t *testing.T, dev *gpu.Device, rows, cols int) *matrix.Dense[float32] {
	t.Helper()
	data := slices.Repeat([]float32{1}, rows*cols)
	m, err := matrix.FromSlice(dev, rows, cols, data)
	devtest.Check(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestHostileFiles wants files that are broken, foreign or stale ignored, with a warning, and results to be right.
func TestHostileFiles(t *testing.T) {
	log := &warnings{}
	dev := open(t, gpu.WithLogger(log))
	path, err := Path(dev.Info())
	devtest.Check(t, err)
	devtest.Check(t, Save(made(dev), dev.Info()))
	good, err := os.ReadFile(path)
	devtest.Check(t, err)
	swapped := func(old, other string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("no %s in %s", old, good)
		}
		return strings.Replace(string(good), old, other, 1)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"empty":           {"", gpu.ErrInvalid},
		"cut":             {string(good[:len(good)/2]), gpu.ErrInvalid},
		"no JSON":         {"\x00\xff{", gpu.ErrInvalid},
		"another type":    {`[1]`, gpu.ErrInvalid},
		"deep":            {strings.Repeat("[", 100_000), gpu.ErrInvalid},
		"too long":        {string(good) + strings.Repeat(" ", 4<<20), gpu.ErrInvalid},
		"a huge number":   {swapped(`"first_ns":100`, `"first_ns":1e400`), gpu.ErrInvalid},
		"no time":         {swapped(`[50,40`, `[0,40`), gpu.ErrInvalid},
		"negative":        {swapped(`"first_ns":100`, `"first_ns":-1`), gpu.ErrInvalid},
		"a long name":     {swapped(`native`, strings.Repeat("x", 1000)), gpu.ErrInvalid},
		"no such family":  {swapped(`"family":"product"`, `"family":"x"`), gpu.ErrInvalid},
		"no such type":    {swapped(`float32`, `float33`), gpu.ErrInvalid},
		"many choices":    {swapped(`"choices":[`, `"choices":[`+strings.Repeat(`{},`, 1000)), gpu.ErrInvalid},
		"a later format":  {swapped(`"version":1`, `"version":2`), gpu.ErrUnsupported},
		"another adapter": {swapped(`"name":"`, `"name":"other`+strings.Repeat("\\u001b", 5000)), gpu.ErrUnsupported},
		"another driver":  {swapped(`"driver":"simd"`, `"driver":"cpu"`), gpu.ErrUnsupported},
		"other kernels":   {swapped(kernels.Checksum(), "0"), gpu.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			devtest.Check(t, os.WriteFile(path, []byte(c.text), 0o600))
			log.text = nil
			other := devtest.Open(t, "simd", gpu.WithLogger(log))
			if err := Use(other); !errors.Is(err, c.want) || len(err.Error()) > 1000 {
				t.Errorf("the error is %v", err)
			}
			if inUse(other) != nil || len(log.text) != 1 || !strings.Contains(log.text[0], "timings of kernels ignored") {
				t.Errorf("warned %q", log.text)
			}
			devtest.Check(t, product(t.Context(), other))
		})
	}
	devtest.Check(t, os.Remove(path))
	devtest.Check(t, os.Mkdir(path, 0o700))
	if _, err := Load(dev.Info()); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("a folder is %v", err)
	}
	if err := Save(made(dev), dev.Info()); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("saved to a folder: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	for _, r := range []*Results{nil, {}} {
		if err := errors.Join(Save(r, dev.Info()), r.Write(nil)); err == nil {
			t.Error("saved nothing")
		}
	}
	if err := new(Results).Apply(dev); !errors.Is(err, gpu.ErrInvalid) {
		t.Error(err)
	}
	var none *Results
	if err := none.Check(dev.Info()); !errors.Is(err, gpu.ErrInvalid) || none.Text() != "" {
		t.Errorf("nil results are %q, %v", none.Text(), err)
	}
	for _, d := range []*gpu.Device{nil, {}} {
		if err := errors.Join(Use(d), none.Apply(d)); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("no device: %v", err)
		}
	}
}

// TestNothingWaits computes while a tuner runs on the same adapter, and while a file is being read.
func TestNothingWaits(t *testing.T) {
	ctx, dev := t.Context(), open(t)
	devtest.Check(t, product(ctx, dev))
	ran := 0
	o := Options{Work: []Work{{Family: "grid", Rows: 8, Cols: 8}, {Family: "product", Rows: 8, Cols: 8, Inner: 8}}, Rounds: 1, Progress: func(c *Choice, done, all int) {
		if c == nil || len(c.Timings) < 2 || done > all {
			t.Errorf("%d of %d: %+v", done, all, c)
		}
		ran++
		devtest.Soon(t, "a product while the tuner waits", func() { devtest.Check(t, product(ctx, dev)) })
	}}
	r, err := Run(ctx, dev, o)
	if err != nil || ran != 2 || len(r.Choices) != 2 || inUse(dev) != nil {
		t.Fatal(r, err)
	}
	second := devtest.Open(t, "simd")
	reading, read := make(chan struct{}), make(chan struct{})
	go func() {
		_ = timing.Use(second, func() (*Results, error) { // as if the file took its time
			close(reading)
			<-read
			return made(dev), nil
		})
	}()
	<-reading
	devtest.Soon(t, "a product while the file is read", func() { devtest.Check(t, product(ctx, second)) })
	close(read)
}

// TestAutomatic waits for a device that is used to have read the file by itself.
func TestAutomatic(t *testing.T) {
	dev := open(t)
	devtest.Check(t, Save(made(dev), dev.Info()))
	second := devtest.Open(t, "simd")
	devtest.Check(t, product(t.Context(), second))
	if !devtest.Settles(func() bool { return inUse(second) != nil }) {
		t.Error("never used")
	}
	devtest.Check(t, product(t.Context(), second))
}

// TestErrors calls Run with what it does not do.
func TestErrors(t *testing.T) {
	dev := open(t)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Run(ended, dev, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, w := range []Work{{}, {Family: "product", Rows: 4, Cols: 4}, {Family: "vector", Rows: 2, Cols: 2, Inner: 2}, {Family: "product", Rows: 1, Cols: 2, Inner: 2}, {Family: "softmax", Rows: 4, Cols: 4, Inner: 1}, {Family: "softmax", Rows: 4, Cols: 4, Layout: 1}, {Family: "product", Rows: 4, Cols: 4, Inner: 4, Layout: 9}, {Family: "grid", Rows: -1, Cols: 4}} {
		if _, err := Run(t.Context(), dev, Options{Work: []Work{w}}); !errors.Is(err, gpu.ErrInvalid) && !errors.Is(err, gpu.ErrLimit) {
			t.Errorf("%+v: %v", w, err)
		}
	}
	if _, err := Run(t.Context(), dev, Options{Rounds: -1}); !errors.Is(err, gpu.ErrInvalid) {
		t.Error(err)
	}
	cpu := devtest.Open(t, "cpu")
	for _, d := range []*gpu.Device{nil, cpu} {
		if _, err := Run(t.Context(), d, Options{}); !errors.Is(err, gpu.ErrUnsupported) {
			t.Error(err)
		}
	}
	devtest.Check(t, Use(cpu))
	for _, text := range []string{"", "x", "product", "product:1x2", "product:2x2x2:xy", "softmax:3", "softmax:3x3:tn", "softmax:3x99999999999999999999", "grid:0x4", "vector:2x2x2", "product:99999x99999x99999"} {
		if w, err := ParseWork(text); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("%q: %+v, %v", text, w, err)
		}
	}
	for _, w := range timing.Suite() {
		if again, err := ParseWork(w.String()); err != nil || again != w {
			t.Errorf("%v: %v, %v", w, again, err)
		}
	}
	if math.IsInf((&Choice{}).Quartile("x"), 1) != true {
		t.Error("a quartile of nothing")
	}
}
