// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"
	"testing"
)

func TestSplitNames(t *testing.T) {
	got := splitNames("  a b,c;d-e\nf@g\r\n\th,, ;")
	if want := []string{"a", "b", "c", "d", "e", "f", "g", "h"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := splitNames(" ;"); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}
