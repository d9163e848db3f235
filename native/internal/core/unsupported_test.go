// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// A binding without a table of calls, or with one of another version, has no adapters, and so has every one without cgo.
func TestUnsupported(t *testing.T) {
	d := New(Binding{Name: "binding"})
	if list, err := d.Adapters(t.Context()); d.Name != "binding" || len(list) != 0 || err != nil {
		t.Errorf("got %d adapters of %q and error %v, want none", len(list), d.Name, err)
	}
	if _, err := d.Adopt(t.Context(), nil); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("got error %v, want %v", err, fault.ErrUnsupported)
	}
}
