// SPDX-License-Identifier: Apache-2.0

// Package bridge lets the npm package in web/ use package matrix.
//
// JavaScript builds expressions by itself and checks their shapes. To evaluate one it writes the whole of it as numbers
// into memory of this program and makes one call, [Bridge.Post]. Objects that are no numbers, typed arrays for example,
// stay on the page's side ([Page]) and are asked for by their number.
//
// # Messages
//
// A message is a sequence of commands. A command is a header word, its length in words << 8 | [Command], and the words
// named at the constants. Matrices and functions are handles: small numbers that JavaScript chooses, so that it can go on
// with a result before it exists. An expression is a sequence of instructions in which each makes one value, numbered
// from 0, out of earlier ones: a header word, length << 16 | element type << 8 | [Op], and the words named there. The last
// value is the expression's.
//
// # Changes
//
// What gives a matrix another size or other memory makes a new handle of the old one. If it fails the new handle has the
// error, for whoever was quick to use it, and the old one has the matrix, as it was. The page hears of it and goes on with
// the right one.
//
// # Files
//
// Parameter dictionaries are loaded and saved by goroutines of their own, to which the page passes memory piece by piece
// ([CmdPass]). A file is a handle as well: to close it is to give it up.
//
// # Order
//
// One goroutine executes the commands, in the order in which they came. It waits where it must, for a compiler mostly,
// and everything later waits behind it. What only reads results back waits in a goroutine of its own once it is queued.
//
// # Errors
//
// Commands with a ticket report their error under it. The error of another command stays with the handle that it was
// to fill: whoever uses the handle gets it. The first that nobody was told is reported by the next [CmdWait]. Messages are
// checked word by word: a wrong one is an error like any other.
package bridge
