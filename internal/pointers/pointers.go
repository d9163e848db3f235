// SPDX-License-Identifier: Apache-2.0

// Package pointers removes from lists of pointers. Functions of package slices are compiled for each type of a list, these
// once for all pointers.
package pointers

// Remove removes all p from a list, in place.
func Remove[P comparable](list []P, p P) []P {
	n := 0
	for _, q := range list {
		if q != p {
			list[n] = q
			n++
		}
	}
	clear(list[n:])
	return list[:n]
}
