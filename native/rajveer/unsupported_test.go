// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || js

package rajveer

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

func TestUnsupported(t *testing.T) {
	d := New()
	if list, err := d.Adapters(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("got %d adapters and error %v, want none", len(list), err)
	}
	if _, err := d.Adopt(t.Context(), nil); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("got error %v, want %v", err, fault.ErrUnsupported)
	}
}
