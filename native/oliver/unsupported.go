// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || js

package oliver

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// New returns a driver without adapters: this build has no cgo.
func New() driver.Driver { return core.New(core.Binding{Name: "oliver"}) }
