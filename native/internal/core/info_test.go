// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		kind   driver.Kind
		vendor uint32
		want   driver.Kind
	}{
		{driver.KindDiscrete, 0x10de, driver.KindDiscrete},
		{driver.KindIntegrated, 0x8086, driver.KindIntegrated},
		{driver.KindCPU, 0x10005, driver.KindCPU},
		{driver.KindCPU, 0x1ae0, driver.KindCPU},
		{driver.KindCPU, 0x1414, driver.KindCPU},
		{driver.KindCPU, 0x1002, driver.KindVirtual},
		{driver.KindUnknown, 0x1002, driver.KindUnknown},
	} {
		if got := kindOf(c.kind, c.vendor); got != c.want {
			t.Errorf("%v of vendor %#x: got %v, want %v", c.kind, c.vendor, got, c.want)
		}
	}
}

// An adopted device is of the only adapter that could have granted what it has.
func TestIdentify(t *testing.T) {
	limits := func(storage, turns uint32) driver.Limits {
		return driver.Limits{MaxStorageBuffers: storage, MaxLoopsPerInvoking: turns}
	}
	gpu := driver.AdapterInfo{Name: "gpu", Vendor: "nvidia", Backend: "vulkan", Kind: driver.KindDiscrete, Limits: limits(32, 0)}
	small := driver.AdapterInfo{Name: "small", Vendor: "nvidia", Backend: "vulkan", Kind: driver.KindDiscrete, Limits: limits(8, 0)}
	swift := driver.AdapterInfo{Name: "swift", Vendor: "google", Backend: "vulkan", Kind: driver.KindCPU, Limits: limits(16, 0)}
	pipe := driver.AdapterInfo{Name: "pipe", Vendor: "mesa", Backend: "vulkan", Kind: driver.KindCPU, Limits: limits(32, 65535)}
	half := pipe
	half.Features = driver.FeatureHalf
	for _, c := range []struct {
		name    string
		granted driver.AdapterInfo
		turns   uint32
		listed  []driver.AdapterInfo
		want    driver.AdapterInfo // name, vendor, backend and kind
	}{
		{"the only one", driver.AdapterInfo{Limits: limits(8, 0)}, 0, []driver.AdapterInfo{gpu}, gpu},
		{"the only one with such limits", driver.AdapterInfo{Limits: limits(20, 0)}, 0, []driver.AdapterInfo{small, gpu, swift}, gpu},
		{"the only one that ends loops", driver.AdapterInfo{Limits: limits(8, 0)}, 65535, []driver.AdapterInfo{gpu, swift, pipe}, pipe},
		{"the only one that does not", driver.AdapterInfo{Limits: limits(8, 0)}, 0, []driver.AdapterInfo{pipe, swift}, swift},
		{"several alike", driver.AdapterInfo{Limits: limits(8, 0)}, 0, []driver.AdapterInfo{gpu, gpu}, gpu},
		{
			"several of a kind",
			driver.AdapterInfo{Limits: limits(8, 0)},
			0,
			[]driver.AdapterInfo{gpu, small},
			driver.AdapterInfo{Name: "adopted device", Vendor: "nvidia", Backend: "unknown", Kind: driver.KindDiscrete},
		},
		{
			"several kinds",
			driver.AdapterInfo{Limits: limits(8, 0)},
			0,
			[]driver.AdapterInfo{gpu, swift},
			driver.AdapterInfo{Name: "adopted device", Vendor: "unknown", Backend: "unknown"},
		},
		{
			"none with the feature", half, 65535,
			[]driver.AdapterInfo{pipe},
			driver.AdapterInfo{Name: "adopted device", Vendor: "mesa", Backend: "unknown", Kind: driver.KindCPU},
		},
		{"none", driver.AdapterInfo{}, 0, nil, driver.AdapterInfo{Name: "adopted device", Vendor: "unknown", Backend: "unknown"}},
	} {
		var listed []adapter
		for _, info := range c.listed {
			listed = append(listed, adapter{info: info})
		}
		c.granted.Driver = "driver"
		got, want := identify(c.granted, c.turns, listed), c.want
		want.Driver, want.Features, want.Limits = c.granted.Driver, c.granted.Features, c.granted.Limits
		want.Limits.MaxLoopsPerInvoking = c.turns
		if got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

// A processor that several backends show counts once, in whatever order they are listed, and two of a model count twice.
func TestMarkRepeats(t *testing.T) {
	one, other := processor{1, 1}, processor{1, 2}
	list := []struct {
		model   processor
		backend string
		again   bool
	}{
		{one, "d3d12", true},
		{one, "vulkan", false},
		{other, "d3d12", false},
		{one, "vulkan", false},
		{one, "d3d12", true},
		{one, "d3d12", false},
		{one, "opengl", true},
		{other, "opengl", true},
	}
	var adapters []adapter
	var models []processor
	for _, l := range list {
		adapters = append(adapters, adapter{info: driver.AdapterInfo{Backend: l.backend}})
		models = append(models, l.model)
	}
	markRepeats(adapters, models)
	for i, l := range list {
		if adapters[i].again != l.again {
			t.Errorf("adapter %d: %v, want %v", i, adapters[i].again, l.again)
		}
	}
}
