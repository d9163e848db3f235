// SPDX-License-Identifier: Apache-2.0

// Command linker has programs of WebAssembly linked by a linker of Go's that also writes what is where in a program's data, and what refers to
// that, for command wasmtrim: Go's own leaves no trace of it. Without arguments it makes that linker, of the sources of Go, beside itself. After
// that it serves as go build -toolexec.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "linker:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	linker := self + ".link"
	if len(args) == 0 {
		return build(linker)
	}
	cmd := command(args...)
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == "link" {
		cmd.Path = linker // which says that it is the one in args[0]
	}
	return cmd.Run()
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

// build makes the linker.
func build(path string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "cmd", "link", "internal", "wasm", "asm.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const at = "\twriteProducerSec(ctxt)\n\tif "
	if strings.Count(string(text), at) != 1 {
		return fmt.Errorf("%s is not that of Go 1.26", file)
	}
	changed, overlay := path+".go", path+".json"
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		return err
	}
	source := strings.Replace(string(text), at, "\twriteSymbols(ctxt, ldr)\n"+at, 1) + writeSymbols
	if err := errors.Join(os.WriteFile(changed, []byte(source), 0o644), os.WriteFile(overlay, list, 0o644)); err != nil {
		return err
	}
	return command("go", "build", "-overlay", overlay, "-o", path, "cmd/link").Run()
}

// writeSymbols writes the section that symbols.go of command wasmtrim reads.
const writeSymbols = `
func writeSymbols(ctxt *ld.Link, ldr *loader.Loader) {
	number := map[loader.Sym]uint64{}
	var list []loader.Sym
	for s := loader.Sym(1); s < loader.Sym(ldr.NSym()); s++ {
		if ldr.AttrReachable(s) && (ldr.SymSect(s) != nil || ldr.SymType(s) == sym.STEXT) {
			number[s] = uint64(len(list))
			list = append(list, s)
		}
	}
	size := writeSecHeader(ctxt, sectionCustom)
	writeName(ctxt.Out, "sublet symbols")
	writeUleb128(ctxt.Out, uint64(len(list)))
	for _, s := range list {
		writeName(ctxt.Out, ldr.SymName(s))
		writeUleb128(ctxt.Out, uint64(ldr.SymValue(s)))
		writeUleb128(ctxt.Out, uint64(ldr.SymSize(s)))
		var references []uint64
		relocs := ldr.Relocs(s)
		for i := 0; i < relocs.Count(); i++ {
			r := relocs.At(i)
			if n, ok := number[r.Sym()]; ok && r.Siz() != 0 {
				references = append(references, uint64(r.Off()), n)
			}
		}
		writeUleb128(ctxt.Out, uint64(len(references)/2))
		for _, v := range references {
			writeUleb128(ctxt.Out, v)
		}
	}
	writeSecSize(ctxt, size)
}
`
