// SPDX-License-Identifier: Apache-2.0

// Command wasmtrim makes a WebAssembly program of Go's smaller by the tables that the Go runtime only prints tracebacks
// with: file names, line numbers, function names, what was inlined where, and where arguments lie. Compressed, a program
// loses about a sixth. Panics still print their message, and each function of a traceback as "???". Garbage collection,
// recover and stack growth use other tables, which stay. Comments of the shaders that are named go too.
//
//	wasmtrim program.wasm [shader.wgsl ...]   # in place
//
// It knows the layout of one version of Go's tables, checks all that it relies on, and changes nothing otherwise.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: wasmtrim program.wasm [shader.wgsl ...]")
		os.Exit(2)
	}
	if err := trimFile(os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, "wasmtrim:", err)
		os.Exit(1)
	}
}

func trimFile(path string, shaders ...string) error {
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	texts := make([][]byte, len(shaders))
	for i, shader := range shaders {
		if texts[i], err = os.ReadFile(shader); err != nil {
			return err
		}
	}
	small, err := trim(program, texts...)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, small, 0o644)
}

// trim returns a smaller program that does the same. Whatever does not look as expected ends in a panic: of [check], or because it
// leads outside of the program.
func trim(program []byte, shaders ...[]byte) (small []byte, err error) {
	defer func() {
		if recover() != nil {
			small, err = nil, errProgram
		}
	}()
	m := parseModule(program)
	trimTables(m.memory)
	for _, text := range shaders {
		blankComments(m.memory, text)
	}
	return m.encode(), nil
}

// comment matches the comments of shaders but the marks of package shaders, such as "// @param".
var comment = regexp.MustCompile(`// ?[^ @\n].*`)

// blankComments overwrites the comments of a shader that is in a program's memory with spaces, which compress to nothing.
func blankComments(memory, text []byte) {
	if at := bytes.Index(memory, text); at >= 0 {
		for _, found := range comment.FindAllIndex(text, -1) {
			copy(memory[at+found[0]:], bytes.Repeat([]byte{' '}, found[1]-found[0]))
		}
	}
}

var errProgram = errors.New("not a WebAssembly program of Go's, or its tables of functions do not look as those of Go 1.26 do")

// check panics unless all is as expected.
func check(ok bool) {
	if !ok {
		panic(errProgram)
	}
}
