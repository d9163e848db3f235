// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
)

// comment matches the comments of shaders but the marks of package shaders, such as "// @param".
var comment = regexp.MustCompile(`// ?[^ @\n].*`)

// blankComments overwrites the comments of shaders that are in a program's memory with spaces, which compress to nothing.
func blankComments(memory []byte, shaders ...[]byte) {
	for _, text := range shaders {
		if at := bytes.Index(memory, text); at >= 0 {
			for _, found := range comment.FindAllIndex(text, -1) {
				copy(memory[at+found[0]:], bytes.Repeat([]byte{' '}, found[1]-found[0]))
			}
		}
	}
}
