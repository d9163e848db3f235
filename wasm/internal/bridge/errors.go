// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// ErrInternal is a mistake of Sublet's own.
var ErrInternal = fault.New("ErrInternal", "internal error")

// invalid is the error of a message that JavaScript would not send.
func invalid(detail string) error { return fault.Fail("bridge", fault.ErrInvalid, detail) }

// internal turns a panic into an error.
func internal(p any) error {
	text := "panic"
	switch p := p.(type) {
	case error:
		text = p.Error()
	case string:
		text = p
	}
	return fault.Fail("bridge", ErrInternal, text)
}

func itoa(n int) string { return strconv.Itoa(n) }
