// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// TestConformance runs on a device of the driver and on one that the page made, with fewer limits.
func TestConformance(t *testing.T) {
	t.Run("opened", func(t *testing.T) {
		gputest.Run(t, func(ctx context.Context) (driver.Device, error) {
			adapters, err := New().Adapters(ctx)
			if err != nil {
				return nil, err
			}
			if len(adapters) == 0 {
				return nil, fault.ErrNoAdapter
			}
			return adapters[0].Open(ctx)
		})
	})
	t.Run("adopted", func(t *testing.T) {
		gputest.Run(t, func(ctx context.Context) (driver.Device, error) {
			return New().Adopt(ctx, newGPUDevice(t))
		})
	})
}
