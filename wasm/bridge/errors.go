// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"strconv"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// ErrInternal is a mistake of Sublet's own.
var ErrInternal = driver.NewSentinel("ErrInternal", "internal error")

// invalid is the error of a message that JavaScript would not send.
func invalid(detail string) error { return driver.Fail("bridge", driver.ErrInvalid, detail) }

// internal turns a panic into an error.
func internal(p any) error {
	text := "panic"
	switch p := p.(type) {
	case error:
		text = p.Error()
	case string:
		text = p
	}
	return driver.Fail("bridge", ErrInternal, text)
}

func itoa(n int) string { return strconv.Itoa(n) }
