// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"fmt"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// The errors of this package. Errors of the reader or writer underneath are passed on as they are.
var (
	ErrFormat = driver.NewSentinel("ErrFormat", "malformed .npy file")
	ErrType   = driver.NewSentinel("ErrType", "wrong element type")
)

func malformed(format string, args ...any) error {
	return driver.Fail("npy", ErrFormat, fmt.Sprintf(format, args...))
}

func wrongType(format string, args ...any) error {
	return driver.Fail("npy", ErrType, fmt.Sprintf(format, args...))
}
