// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// fakeDevice does nothing but count how many there are.
type fakeDevice struct {
	driver.Device
	info   AdapterInfo
	opened *int
}

func (d fakeDevice) Info() AdapterInfo { return d.info }
func (d fakeDevice) Close() error      { *d.opened--; return nil }

// fakes is a selection of five adapters, of which so many devices are open.
func fakes() (s Selection, opened *int) {
	opened = new(int)
	for _, i := range []AdapterInfo{
		{Driver: "x", Name: "Big One", Vendor: "NVIDIA", Kind: driver.KindDiscrete, Features: driver.FeatureWGSL, Limits: driver.Limits{MaxBufferSize: 8 << 30}},
		{Driver: "x", Name: "Small", Vendor: "intel", Kind: driver.KindIntegrated, Features: driver.FeatureWGSL | driver.FeatureHalf, Limits: driver.Limits{MaxBufferSize: 2 << 30}},
		{Driver: "x", Name: "Broken", Vendor: "intel", Kind: driver.KindVirtual, Features: driver.FeatureWGSL, Limits: driver.Limits{MaxBufferSize: 1 << 30}},
		{Driver: "x", Name: "llvmpipe", Vendor: "mesa", Kind: driver.KindCPU, Features: driver.FeatureWGSL, Limits: driver.Limits{MaxBufferSize: 2 << 30}},
		{Driver: "oracle", Name: "Go", Kind: driver.KindCPU, Limits: driver.Limits{MaxBufferSize: 16 << 30}},
	} {
		s.list = append(s.list, &Adapter{Info: i, open: func(context.Context) (driver.Device, error) {
			if i.Name == "Broken" {
				return nil, fail("Open", ErrNoMemory)
			}
			*opened++
			return fakeDevice{info: i, opened: opened}, nil
		}})
	}
	s.all = s.list
	return s, opened
}

func names(s Selection) string {
	list, err := s.Adapters()
	if err != nil {
		return fault.Code(err)
	}
	var n []string
	for _, a := range list {
		n = append(n, a.Info.Name)
	}
	return strings.Join(n, ",")
}

func TestSelections(t *testing.T) {
	s, _ := fakes()
	none := s.Best(0)
	kind := func(kinds ...driver.Kind) Selection {
		return s.Where(func(i AdapterInfo) bool { return slices.Contains(kinds, i.Kind) })
	}
	wrong := s.Best(-1)
	for _, c := range []struct {
		what string
		got  Selection
		want string
	}{
		{"all", s, "Big One,Small,Broken,llvmpipe,Go"},
		{"Kernels", s.Kernels(), "Big One,Small,Broken,llvmpipe"},
		{"features", s.Where(func(i AdapterInfo) bool { return i.Features.Has(driver.FeatureHalf | driver.FeatureWGSL) }), "Small"},
		{"kinds", kind(driver.KindDiscrete, driver.KindCPU), "Big One,llvmpipe,Go"},
		{"kind unknown", kind(driver.KindUnknown), "ErrNoAdapter"},
		{"vendor", s.Where(func(i AdapterInfo) bool { return i.Vendor == "intel" }), "Small,Broken"},
		{"Name", s.Name("b"), "Big One,Broken"},
		{"Name of all", s.Name(""), "Big One,Small,Broken,llvmpipe,Go"},
		{"Driver", s.Driver("oracle"), "Go"},
		{"Where", s.Where(func(i AdapterInfo) bool { return i.Limits.MaxBufferSize >= 2<<30 }), "Big One,Small,llvmpipe,Go"},
		{"ByMemory", s.ByMemory(), "Go,Big One,Small,llvmpipe,Broken"},
		{"Where", s.Where(func(i AdapterInfo) bool { return i.Vendor == "" }), "Go"},
		{"Where nil", s.Where(nil), "ErrInvalid"},
		{"Best", s.Best(2), "Big One,Small"},
		{"Best of all", s.Best(99), "Big One,Small,Broken,llvmpipe,Go"},
		{"Best 0", s.Best(0), "ErrNoAdapter"},
		{"At", s.At(3, 0, 3), "llvmpipe,Big One,llvmpipe"},
		{"At nothing", s.At(), "ErrNoAdapter"},
		{"At -1", s.At(0, -1), "ErrNoAdapter"},
		{"At 5", s.At(5), "ErrNoAdapter"},
		{"Plus", kind(driver.KindDiscrete).Plus(s.Best(2)), "Big One,Big One,Small"},
		{"Plus nothing", none.Plus(s.Best(1)), "Big One"},
		{"nothing plus nothing", none.Plus(none), "ErrNoAdapter"},
		{"Plus zero", s.Best(1).Plus(Selection{}), "Big One"},
		{"zero plus", Selection{}.Plus(s.Best(1)), "Big One"},
		{"zero", Selection{}.Kernels().ByMemory().Best(1), "ErrNoAdapter"},
		{"after a mistake", wrong.Kernels().Plus(s).At(0).Best(1), "ErrInvalid"},
		{"mistake at the right", s.Plus(wrong), "ErrInvalid"},
		{"chain", s.Kernels().Best(2).At(1, 0).Best(1), "Small"},
	} {
		if got := names(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	if got := names(s); got != "Big One,Small,Broken,llvmpipe,Go" {
		t.Errorf("the first selection is now %s", got)
	}
	if _, err := kind(driver.KindVirtual).Name("small").Adapters(); err == nil || !strings.Contains(err.Error(), "llvmpipe") {
		t.Errorf("%v does not say what there is", err)
	}
}

// TestOpenSelection opens one adapter twice, and closes what it opened when a later one fails.
func TestOpenSelection(t *testing.T) {
	s, opened := fakes()
	devices, err := s.At(1, 1, 0).Open(t.Context())
	if err != nil || len(devices) != 3 || *opened != 3 || devices[0] == devices[1] {
		t.Fatalf("%d devices, %d open, %v", len(devices), *opened, err)
	}
	if devices[2].Info().Name != "Big One" {
		t.Errorf("the third is %s", devices[2].Info().Name)
	}
	for _, d := range devices {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if devices, err := s.Open(t.Context()); !errors.Is(err, ErrNoMemory) || devices != nil || *opened != 0 {
		t.Errorf("%d devices, %d open, %v", len(devices), *opened, err)
	}
	if _, err := s.Best(1).Open(t.Context(), nil); !errors.Is(err, ErrInvalid) || *opened != 0 {
		t.Errorf("nil option: %d open, %v", *opened, err)
	}
}

func TestRank(t *testing.T) {
	s, opened := fakes()
	calls := 0
	speed := map[string]float64{"Big One": 2, "Small": 5, "llvmpipe": 2, "Go": 7}
	bench := func(_ context.Context, dev *Device) (float64, error) {
		calls++
		return speed[dev.Info().Name], nil
	}
	if got := names(s.Plus(s.Best(2)).Rank(t.Context(), bench)); got != "Go,Small,Small,Big One,llvmpipe,Big One" {
		t.Errorf("%s", got)
	}
	if calls != 4 || *opened != 0 { // what is there twice is measured once, what does not open not at all
		t.Errorf("%d measurements, %d devices open", calls, *opened)
	}
	if got := names(s.Rank(t.Context(), bench).Kernels().Best(2)); got != "Small,Big One" {
		t.Errorf("the two fastest are %s", got)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1} {
		speed["Small"] = bad
		if got := names(s.Rank(t.Context(), bench)); got != "Go,Big One,llvmpipe" {
			t.Errorf("%v: %s", bad, got)
		}
	}
	fails := func(context.Context, *Device) (float64, error) { return 0, fail("bench", ErrLimit, "too slow") }
	if _, err := s.Rank(t.Context(), fails).Adapters(); !errors.Is(err, ErrNoAdapter) || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("%v", err)
	}
	if len(s.errs) != 0 {
		t.Errorf("the first selection has now %v", s.errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stops := func(context.Context, *Device) (float64, error) { cancel(); return 1, nil }
	if _, err := s.Rank(ctx, stops).Best(1).Open(t.Context()); !errors.Is(err, context.Canceled) || *opened != 0 {
		t.Errorf("%v, %d devices open", err, *opened)
	}
	if got := names(s.Best(-1).Rank(t.Context(), bench)); got != "ErrInvalid" {
		t.Errorf("%s", got)
	}
	if got := names(Selection{}.Rank(t.Context(), nil)); got != "ErrNoAdapter" {
		t.Errorf("%s", got)
	}
	if got := names(s); got != "Big One,Small,Broken,llvmpipe,Go" {
		t.Errorf("the first selection is now %s", got)
	}
}

// TestOpenExperimental wants adapters in the order of Open: those of experimental drivers after all others but the oracle's, unless they
// are asked for.
func TestOpenExperimental(t *testing.T) {
	t.Cleanup(KeepDrivers())
	t.Setenv("SUBLET_DRIVER", "")
	t.Setenv("SUBLET_ADAPTER", "")
	fake := func(name string, kind driver.Kind, features driver.Features, experimental bool) driver.Driver {
		a := driver.Adapter{Info: AdapterInfo{Driver: name, Name: "of " + name, Kind: kind, Features: features}}
		a.Open = func(context.Context) (driver.Device, error) { return fakeDevice{info: a.Info, opened: new(int)}, nil }
		return driver.Driver{
			Name: name, Adapters: func(context.Context) ([]driver.Adapter, error) { return []driver.Adapter{a}, nil }, Experimental: experimental,
		}
	}
	oracle := fake("oracle", driver.KindCPU, 0, false)
	trial := fake("trial", driver.KindIntegrated, driver.FeatureWGSL, true)
	proven := fake("proven", driver.KindCPU, driver.FeatureWGSL, false)
	simd, card := fake("simd", driver.KindCPU, driver.FeatureWGSL, false), fake("card", driver.KindDiscrete, driver.FeatureWGSL, false)
	for _, c := range []struct {
		want    string
		linked  []driver.Driver
		options []Option
	}{
		{"proven", []driver.Driver{trial, proven, oracle}, nil},
		{"proven", []driver.Driver{proven, oracle, trial}, nil},
		{"proven", []driver.Driver{trial, proven, oracle}, []Option{WithLowPower()}},
		{"trial", []driver.Driver{oracle, trial}, nil},
		{"trial", []driver.Driver{trial, proven, oracle}, []Option{WithDriver("trial")}},
		{"trial", []driver.Driver{proven, trial, oracle}, []Option{WithAdapter("trial")}},
		{"oracle", []driver.Driver{proven, trial, oracle}, []Option{WithDriver("oracle")}},
		{"simd", []driver.Driver{proven, simd, trial, oracle}, nil},
		{"simd", []driver.Driver{trial, simd, oracle}, nil},
		{"card", []driver.Driver{proven, simd, card, oracle}, nil},
		{"proven", []driver.Driver{card, simd, proven, oracle}, []Option{WithDriver("proven")}},
	} {
		drivers = c.linked
		d, err := Open(t.Context(), c.options...)
		if err != nil || d.Info().Driver != c.want {
			t.Errorf("%v, error %v, want one of %s", d, err, c.want)
		}
		for a, err := range Adapters(t.Context()) {
			if err != nil || a.Experimental != (a.Info.Driver == "trial") {
				t.Errorf("%+v, %v", a, err)
			}
		}
	}
}

// TestClockStep has a clock that advances by 16 ms with every third look.
func TestClockStep(t *testing.T) {
	looks, begin := 0, time.Now()
	step := clockStep(func() time.Time {
		looks++
		return begin.Add(time.Duration(looks/3) * 16 * time.Millisecond)
	})
	if step != 16*time.Millisecond {
		t.Error(step)
	}
	if step := clockStep(time.Now); step <= 0 {
		t.Error(step)
	}
}
