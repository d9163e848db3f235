// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

var called = regexp.MustCompile(`\b(\w+)\(`)

// helpers are the bodies of the helpers of package fuse, by name.
type helpers map[string]string

func newHelpers(text string) helpers {
	h := helpers{}
	for part := range strings.SplitSeq(text, "\n\n") {
		if _, function, ok := strings.Cut("\n"+part, "\nfn "); ok {
			name, body, _ := strings.Cut(function, "(")
			h[name] = body
		}
	}
	return h
}

// calls counts the calls of helpers in a text, with those that the helpers make.
func (h helpers) calls(text string) (n int) {
	for _, c := range called.FindAllStringSubmatch(text, -1) {
		if body, ok := h[c[1]]; ok {
			n += 1 + h.calls(body)
		}
	}
	return n
}

// loops reports whether a helper that a text calls, or one that it calls, has a loop.
func (h helpers) loops(text string) bool {
	for _, c := range called.FindAllStringSubmatch(text, -1) {
		body := h[c[1]]
		if strings.Contains(body, "while (") || strings.Contains(body, "for (") || h.loops(body) {
			return true
		}
	}
	return false
}
