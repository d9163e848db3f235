// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/driver/expected"
)

// Run tests the driver whose devices open makes. What package gpu/driver/expected says that the driver fails, it must fail.
func Run(t *testing.T, open func(ctx context.Context) (driver.Device, error)) {
	t.Helper()
	pass, fail := split(t, cases, expected.For(newDevice(t.Context(), t, open).Info().Driver))
	t.Run("thrice", func(t *testing.T) { suite(t, open, pass, rounds) })
	backwards := slices.Clone(pass)
	slices.Reverse(backwards)
	t.Run("backwards", func(t *testing.T) { suite(t, open, backwards, 1) })
	for _, c := range cases {
		if why, fails := fail[c.name]; fails {
			t.Run("expected/"+c.name, func(t *testing.T) { expectFailure(t, open, c, why, patience) })
		}
	}
}

// RunOnce tests another way of making devices of a driver that [Run] tests: each case once, and nothing that must fail.
func RunOnce(t *testing.T, open func(ctx context.Context) (driver.Device, error)) {
	t.Helper()
	pass, _ := split(t, cases, expected.For(newDevice(t.Context(), t, open).Info().Driver))
	suite(t, open, pass, 1)
}

type opener = func(ctx context.Context) (driver.Device, error)

type testCase struct {
	name string
	run  func(r *rig)
}

var cases = slices.Concat(
	bufferCases, transferCases, orderCases, dispatchCases, bindingCases, compileCases, featureCases, workgroupCases,
	refusalCases, mappingCases, contextCases, parallelCases, randomCases, lifeCases,
)

const (
	patience = 2 * time.Minute // for one round of one case; only a hang takes that long
	rounds   = 3               // of a case on one device
)

func suite(t *testing.T, open opener, cases []testCase, rounds int) {
	dev := newDevice(t.Context(), t, open)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for i := range rounds {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) { round(t.Context(), t, dev, open, c) })
			}
		})
	}
}

// round runs a case once and leaves the device as it was, so that the next round uses the same ids for other objects.
func round(ctx context.Context, t reporter, dev driver.Device, open opener, c testCase) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := newRig(ctx, t, dev, open)
	defer r.release()
	c.run(r)
	r.healthy()
}

func newDevice(ctx context.Context, t reporter, open opener) driver.Device {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dev, err := open(ctx)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return dev
}
