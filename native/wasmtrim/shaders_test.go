// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestBlankComments finds a shader among other text, and leaves that and the marks as they are.
func TestBlankComments(t *testing.T) {
	const (
		shader = "// A sum.\nconst n = 4u; // @param\n  x += y; //twice\n//\n// @fuse\n"
		want   = "         \nconst n = 4u; // @param\n  x += y;        \n//\n// @fuse\n"
		before = "https://a // b\n"
	)
	memory := []byte(before + shader + before)
	blankComments(memory, []byte("// elsewhere"), []byte(shader))
	if got := string(memory); got != before+want+before {
		t.Errorf("%q", got)
	}
}
