// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// scripted is a row of the table of operations in the README of the npm package. Tensors is "✓" if tensors have them, too.
type scripted struct{ Title, Names, Tensors string }

// Scripts returns a group's operations by their names in JavaScript, or nil if it has none there.
func (t table) Scripts(g ops.Group) *scripted {
	var names []string
	tensors := "✓"
	for _, r := range t.Rows {
		if r.Group != g.Title || r.JS == "" {
			continue
		}
		if r.Shapes() {
			tensors = ""
		}
		name := r.JS
		if r.Maker == "ternary" || r.Shapes() && r.Receiver == "" { // which are no methods
			name = "gpu." + name
		}
		names = append(names, "`"+name+"`")
	}
	if names == nil {
		return nil
	}
	return &scripted{g.Title, strings.Join(names, " "), tensors}
}
