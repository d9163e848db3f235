// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"context"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

func TestConformance(t *testing.T) { gputest.Run(t, openFirst) }

// openFirst opens a device of the first adapter.
func openFirst(ctx context.Context) (driver.Device, error) {
	list, err := New().Adapters(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, gpu.ErrNoAdapter
	}
	return list[0].Open(ctx)
}
