// SPDX-License-Identifier: Apache-2.0

// Package rules has the rules of commands that need no register of objects. Package gpu applies them when a command is
// recorded, [driver.Objects] when a list is submitted. op begins the error's text.
//
// [driver.Objects]: https://pkg.go.dev/github.com/sublet-gpu/sublet/gpu/driver#Objects
package rules

import "github.com/sublet-gpu/sublet/internal/fault"

// Range wants an offset and a size in multiples of 4 within a buffer of so many bytes.
func Range(op string, offset, size, buffer uint64) error {
	if offset%4 != 0 || size%4 != 0 {
		return fault.Fail(op, fault.ErrInvalid, fault.Text("offset ", offset, " or size ", size, " is not a multiple of 4"))
	}
	if offset > buffer || size > buffer-offset {
		return fault.Fail(op, fault.ErrInvalid, fault.Text(size, " bytes at ", offset, " of ", buffer))
	}
	return nil
}

// Groups wants at most so many workgroups per dimension.
func Groups(op string, groups [3]uint32, most uint32) error {
	for _, g := range groups {
		if g > most {
			return fault.Fail(op, fault.ErrLimit, fault.Text(g, " workgroups, the most per dimension are ", most))
		}
	}
	return nil
}
