// SPDX-License-Identifier: Apache-2.0

//go:build !js

package cruncher_test

import (
	"github.com/sublet-gpu/sublet/gpu/driver"

	"github.com/sublet-gpu/sublet/internal/fault"
)

func loadForeign(driver.Host) []byte { return nil }

func storeForeign(driver.Host, int, []byte) error {
	return fault.Fail("Read", fault.ErrInvalid, "memory that is not Go's")
}
