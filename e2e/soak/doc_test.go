// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package soak walks at random over everything that the library does, for as long as it is asked to: each step is an operation on
// some of the objects that there are, and is compared with plain Go. A walk follows from its seed. At its end everything is closed,
// and nothing may be left.
//
// SUBLET_SOAK_SEED replays the walk of a seed, SUBLET_SOAK_TIME, such as 2h, walks for so long, and SUBLET_SOAK_CHECK compares
// everything after each step. A walk of several players runs these
// in goroutines: what each does follows from the seed, who comes first does not.
package soak
