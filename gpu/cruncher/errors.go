// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"strconv"

	"github.com/sublet-gpu/sublet/gpu/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// The errors of this package, beside those of package gpu. The next call is not affected by one that failed.
var (
	ErrAccess    = driver.NewSentinel("ErrAccess", "the array was first used in another way")
	ErrBatch     = driver.NewSentinel("ErrBatch", "a batch is open")
	ErrDevices   = driver.NewSentinel("ErrDevices", "no device")
	ErrKernel    = kernel.ErrKernel
	ErrLength    = driver.NewSentinel("ErrLength", "the array is too short for the range")
	ErrMigration = driver.NewSentinel("ErrMigration", "elements would have to move between devices")
	ErrName      = driver.NewSentinel("ErrName", "not a name")
	ErrRange     = driver.NewSentinel("ErrRange", "out of range")
	ErrStale     = driver.NewSentinel("ErrStale", "only devices have the newest elements, or one that is lost had them")
)

func itoa(i int) string { return strconv.Itoa(i) }
