// SPDX-License-Identifier: Apache-2.0

package fuse

import (
	"strings"
	"testing"
)

// TestHelperNames calls each helper, which is found by its name, and wants the usual ones to call no others.
func TestHelperNames(t *testing.T) {
	name := func(helper string) string {
		_, function, _ := strings.Cut(helper, "fn ")
		name, _, _ := strings.Cut(function, "(")
		return name
	}
	for _, helper := range all() {
		name := name(helper)
		if found := strings.Contains(Helpers("fn f() { "+name+"(x); }"), "fn "+name+"("); !found && name != "philox" {
			t.Errorf("%s is called and not there", name)
		}
	}
	if !strings.Contains(Helpers("random4(x)"), "fn philox(") {
		t.Error("philox, which random4 calls, is not there")
	}
	c := callees{open: map[string]bool{}}
	for _, helper := range usual {
		c.read(name(helper) + "(x)")
	}
	if c.list(usual); c.missing() {
		t.Errorf("a usual helper calls another one: %v", c.open)
	}
}
