// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// help writes the list of functions in the help of `sublet eval`.
func help() string {
	w := &writer{}
	w.put("%spackage main\n\n// functionsHelp lists the functions of an expression.\nconst functionsHelp = `", header)
	for _, part := range []struct {
		title string
		has   func(o *ops.Operation, f form) bool
	}{
		{"of each element", func(o *ops.Operation, _ form) bool { return o.Class == ops.Unary }},
		{"of each two elements", func(o *ops.Operation, _ form) bool { return o.Class == ops.Binary }},
		{"of each element and two others", func(o *ops.Operation, _ form) bool { return o.Class == ops.Ternary || o.Class == ops.Limits }},
		{"of all elements", func(_ *ops.Operation, f form) bool { return f.axis == "fuse.AxisAll" }},
		{"of each row, a column", func(_ *ops.Operation, f form) bool { return f.axis == "fuse.AxisRows" }},
		{"of each column, a row", func(_ *ops.Operation, f form) bool { return f.axis == "fuse.AxisCols" }},
		{"of each row, a matrix", func(o *ops.Operation, _ form) bool { return o.Class == ops.RowMap }},
		{"of whole matrices", func(o *ops.Operation, _ form) bool { return o.Class == ops.Product || o.Class == ops.Transpose }},
	} {
		var names []string
		for _, o := range ops.Table {
			for _, f := range forms(&o) {
				if part.has(&o, f) {
					names = append(names, helpNames(&o, f.name)...)
				}
			}
		}
		lines := wrap(strings.Join(names, " "), 60)
		for i, line := range lines {
			line = strings.ReplaceAll(line, "\u00a0", " ")
			if i == len(lines)-1 {
				line = fmt.Sprintf("%-60s    %s", line, part.title)
			}
			w.put("  %s\n", line)
		}
	}
	w.put("`\n")
	return w.String()
}

// helpNames returns the names in matrix.Eval of a function in Go, with the arguments where there are more than two.
func helpNames(o *ops.Operation, function string) []string {
	args := ""
	switch o.Class {
	case ops.Ternary:
		args = "(C,\u00a0A,\u00a0B)"
	case ops.Limits:
		args = "(A,\u00a0lo,\u00a0hi)"
	}
	var list []string
	for _, f := range forms(o) {
		for _, text := range f.texts {
			if f.name == function {
				list = append(list, text+args)
			}
		}
	}
	return list
}

// featureTable writes the table of operations in FEATURES.md.
func featureTable() string {
	w := &writer{}
	w.put("| group | functions | tests |\n|---|---|---|\n")
	for _, g := range ops.Groups {
		var names []string
		for _, o := range ops.Table {
			if o.Group == g.Title {
				for _, f := range forms(&o) {
					names = append(names, f.name)
				}
			}
		}
		w.put("| %s | %s | %s |\n", g.Title, strings.Replace(g.Names, "*", strings.Join(names, " "), 1), g.Tests)
	}
	return w.String()
}
