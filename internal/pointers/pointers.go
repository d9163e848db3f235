// SPDX-License-Identifier: Apache-2.0

// Package pointers removes from lists of pointers. Functions of package slices are compiled for each type of a list, these
// once for all pointers.
package pointers

// Remove removes all p from a list, in place. P is a pointer; the compiler shares functions of pointers where they are of any type.
func Remove[P any](list []P, p P) []P {
	n := 0
	for _, q := range list {
		if any(q) != any(p) {
			list[n] = q
			n++
		}
	}
	clear(list[n:])
	return list[:n]
}
