// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package oliver

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu/gputest"
)

func TestConformance(t *testing.T) { gputest.Run(t, open) }
