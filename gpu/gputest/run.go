// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Run tests the driver whose devices open makes.
func Run(t *testing.T, open func(ctx context.Context) (driver.Device, error)) {
	t.Helper()
	t.Run("thrice", func(t *testing.T) { suite(t, open, cases, 3) })
	backwards := slices.Clone(cases)
	slices.Reverse(backwards)
	t.Run("backwards", func(t *testing.T) { suite(t, open, backwards, 1) })
}

type opener = func(ctx context.Context) (driver.Device, error)

type testCase struct {
	name string
	run  func(r *rig)
}

var cases = slices.Concat(
	bufferCases, transferCases, orderCases, dispatchCases, bindingCases, compileCases, featureCases,
	refusalCases, mappingCases, contextCases, parallelCases, randomCases, lifeCases,
)

// patience is how long one round of one case may take. Only a hang takes that long.
const patience = 2 * time.Minute

func suite(t *testing.T, open opener, cases []testCase, rounds int) {
	dev := newDevice(t, open)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for i := range rounds {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) { round(t, dev, open, c) })
			}
		})
	}
}

// round runs a case once and leaves the device as it was, so that the next round uses the same ids for other objects.
func round(t *testing.T, dev driver.Device, open opener, c testCase) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := newRig(t, ctx, dev, open)
	defer r.release()
	c.run(r)
	r.healthy()
}

func newDevice(t *testing.T, open opener) driver.Device {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
