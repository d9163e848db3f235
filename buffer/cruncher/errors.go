// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package, beside those of package gpu. The next call is not affected by one that failed.
var (
	ErrAccess    = fault.New("ErrAccess", "the array was first used in another way")
	ErrBatch     = fault.New("ErrBatch", "a batch is open")
	ErrDevices   = fault.New("ErrDevices", "no device")
	ErrLength    = fault.New("ErrLength", "the array is too short for the range")
	ErrMigration = fault.New("ErrMigration", "elements would have to move between devices")
	ErrName      = fault.New("ErrName", "not a name")
	ErrRange     = fault.New("ErrRange", "out of range")
	ErrStale     = fault.New("ErrStale", "only devices have the newest elements, or one that is lost had them")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("cruncher: "+op, err, detail...)
}

func itoa(i int) string { return strconv.Itoa(i) }
