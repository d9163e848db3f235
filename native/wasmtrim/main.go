// SPDX-License-Identifier: Apache-2.0

// Command wasmtrim makes a WebAssembly program of Go's smaller by the tables that the Go runtime only prints tracebacks
// with: file names, line numbers, function names, what was inlined where, and where arguments lie. Compressed, a program
// loses about a sixth. Panics still print their message, and each function of a traceback as "???". Garbage collection,
// recover and stack growth use other tables, which stay. Comments of the shaders that are named go too.
//
//	wasmtrim program.wasm [shader.wgsl ...]                    # in place
//	wasmtrim -first names.txt program.wasm [shader.wgsl ...]   # and what is not in the list goes to program-rest.wasm
//	wasmtrim -names names.txt program.wasm [shader.wgsl ...]   # all names, and functions that say when they are called
//
// With -kernels, the program gets the archive of kernels that the file is, as a section of its own.
//
// It knows the layout of one version of Go's tables, checks all that it relies on, and changes nothing otherwise.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
)

func main() {
	list := flag.String("first", "", "file with the names of the functions that the program needs at once: the rest goes to a file of its own")
	names := flag.String("names", "", "file for the names of all functions, which say when they are called")
	kernels := flag.String("kernels", "", "file with kernels that the program brings along")
	flag.Parse()
	if flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: wasmtrim [-first names.txt] [-names names.txt] program.wasm [shader.wgsl ...]")
		os.Exit(2)
	}
	err := trimFile(flag.Arg(0), *list, *names, flag.Args()[1:]...)
	if err == nil && *kernels != "" {
		err = bring(flag.Arg(0), *kernels)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wasmtrim:", err)
		os.Exit(1)
	}
}

func trimFile(path, first, names string, shaders ...string) error {
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
	var list []byte
	if first != "" {
		if list, err = os.ReadFile(first); err != nil {
			return err
		}
	}
	small, rest, all, err := trim(program, list, names != "", texts...)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if names != "" {
		if err := os.WriteFile(names, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	if rest != nil {
		if err := os.WriteFile(strings.TrimSuffix(path, ".wasm")+"-rest.wasm", rest, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(path, small, 0o644)
}

// bring adds a section with an archive of kernels to a program.
func bring(path, kernels string) error {
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	archive, err := os.ReadFile(kernels)
	if err != nil {
		return err
	}
	const name = "sublet kernels"
	content := append(append(appendUint(nil, uint64(len(name))), name...), archive...)
	program = append(appendUint(append(program, sectionCustom), uint64(len(content))), content...)
	return os.WriteFile(path, program, 0o644)
}

// trim returns a smaller program that does the same, or an error for a program whose tables are not as expected. With a list of the functions
// that it needs at once, the others are in the rest. The functions that it
// calls panic for such a program: by [check], or by an index outside of the program.
func trim(program, first []byte, telling bool, shaders ...[]byte) (small, rest []byte, names []string, err error) {
	defer func() {
		if recover() != nil {
			small, err = nil, errProgram
		}
	}()
	m := parseModule(program)
	symbols := m.takeSymbols()
	if m.find(sectionStart) >= 0 && first == nil && !telling { // it was trimmed
		return program, nil, nil, nil
	}
	tables := trimTables(m.memory)
	names = tables.list
	for _, text := range shaders {
		shorten(m.memory, text)
	}
	if telling {
		small, rest = split(m, tables, nil, nil)
		return small, rest, names, nil
	}
	if first == nil {
		return filled(m, tables), nil, names, nil
	}
	wanted := map[string]bool{}
	for name := range strings.Lines(string(first)) {
		wanted[strings.TrimSpace(name)] = true
	}
	small, rest = split(m, tables, symbols, func(f int) bool { return f < len(names) && wanted[names[f]] })
	return small, rest, names, nil
}

// comment matches comments of shaders, except for the marks of package shaders such as "// @param". A match begins with the end of the line
// before, so that no empty line is left: at empty lines package fuse divides texts.
var comment = regexp.MustCompile(`\n? *// ?[^ @\n].*`)

// shorten removes the comments of a shader's text from a program's memory, and fills its end with spaces, which compress to almost nothing.
// It does nothing if the program does not have the shader.
func shorten(memory, text []byte) {
	if at := bytes.Index(memory, text); at >= 0 {
		short := comment.ReplaceAll(text, nil)
		copy(memory[at:], append(short, bytes.Repeat([]byte{' '}, len(text)-len(short))...))
	}
}

var errProgram = errors.New("not a WebAssembly program of Go's, or its tables of functions do not look as those of Go 1.26 do")

// check panics unless all is as expected.
func check(ok bool) {
	if !ok {
		panic(errProgram)
	}
}
