// SPDX-License-Identifier: Apache-2.0

// Package devtest is for tests that run on devices: on one of every driver that is linked, or of those that the variable
// SUBLET_TEST_DRIVERS names, with commas between. Package gputest tests drivers themselves.
//
//	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
//		a := devtest.Must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 2, 3))
//		devtest.Check(t, a.Fill(1))
//	})
package devtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Drivers are the names of the drivers that tests run on.
func Drivers() []string {
	if s := os.Getenv("SUBLET_TEST_DRIVERS"); s != "" {
		return strings.Split(s, ",")
	}
	return gpu.Drivers()
}

// Long reports whether tests take the time to try everything, as in `make test-long`. Otherwise those with very many cases try some
// of them, the same ones every time.
func Long() bool { return os.Getenv("SUBLET_LONG") != "" }

// Times returns how often a test repeats something random: n times, or in long tests 20 times as often.
func Times(n int) int {
	if Long() {
		return 20 * n
	}
	return n
}

// Each runs a test on a fresh device of every driver. A driver without a device fails.
func Each(t *testing.T, test func(t *testing.T, dev *gpu.Device), opts ...gpu.Option) {
	t.Helper()
	for _, name := range Drivers() {
		t.Run(name, func(t *testing.T) { test(t, Open(t, name, opts...)) })
	}
}

// EachGPU is [Each] without the devices that compile no WGSL.
func EachGPU(t *testing.T, test func(t *testing.T, dev *gpu.Device)) {
	t.Helper()
	Each(t, func(t *testing.T, dev *gpu.Device) {
		if dev.Info().Features.Has(driver.FeatureWGSL) {
			test(t, dev)
		}
	})
}

// Open opens a device of a driver, which is closed at the end of the test. Nothing may be left on it then: see [Leaks].
func Open(t testing.TB, driver string, opts ...gpu.Option) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(t.Context(), append(slices.Clip(opts), gpu.WithDriver(driver))...)
	if err != nil {
		t.Fatalf("driver %s: %v", driver, err)
	}
	opened.Lock()
	opened.devices = append(opened.devices, weak.Make(dev))
	opened.Unlock()
	t.Cleanup(func() {
		Leaks(t, dev)
		Check(t, dev.Close())
	})
	return dev
}

// Check ends the test if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns a function that hands on a call's value, and ends the test if the call failed.
func Must[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		Check(t, err)
		return v
	}
}
