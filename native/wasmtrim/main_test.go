// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// build compiles the program of testdata.
func build(t *testing.T, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.wasm")
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", path}, options...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./testdata/program")...)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// linker makes the linker that lists symbols, and returns the option by which it is used.
func linker(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "linker")
	for _, args := range [][]string{{"go", "build", "-o", path, "./linker"}, {path}} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return "-toolexec=" + path
}

// run runs a program in Node.js.
func run(t *testing.T, path string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	shell := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "go_js_wasm_exec")
	cmd := exec.CommandContext(t.Context(), shell, append([]string{path}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func compressed(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}

func TestTrimmedProgramDoesTheSame(t *testing.T) {
	path := build(t)
	size := compressed(t, path)
	want, errs, err := run(t, path)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	if !strings.Contains(want, "get called using nil *value pointer") {
		t.Fatalf("the program does not try everything: %s", want)
	}
	if err := trimFile(path, "", ""); err != nil {
		t.Fatal(err)
	}
	got, errs, err := run(t, path)
	if err != nil || got != want {
		t.Errorf("%v, printed %q, want %q\n%s", err, got, want, errs)
	}
	small := compressed(t, path)
	t.Logf("%d bytes compressed, %d before", small, size)
	if small > size*9/10 {
		t.Errorf("%d bytes compressed, %d before: less than a tenth is gone", small, size)
	}
	// A panic that nobody recovers still says why.
	_, errs, err = run(t, path, "panic")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(errs, "panic: the end") {
		t.Errorf("%v, and on standard error:\n%s", err, errs)
	}
	// What it brings along is a section of its own.
	archive := filepath.Join(t.TempDir(), "archive")
	if err := errors.Join(os.WriteFile(archive, make([]byte, 1000), 0o600), bring(path, archive)); err != nil {
		t.Fatal(err)
	}
	if got, errs, err = run(t, path); err != nil || got != want {
		t.Errorf("with an archive: %v, printed %q, want %q\n%s", err, got, want, errs)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.HasSuffix(b, append([]byte("\x00\xf7\x07\x0esublet kernels"), make([]byte, 1000)...)) {
		t.Errorf("%v, %d bytes without the archive at their end", err, len(b))
	}
	// What is trimmed already stays as it is.
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	after, _, _, err := trim(before, nil, false)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("trimmed again: %v, %d bytes, want %d", err, len(after), len(before))
	}
}

// runSplit runs a program that is split; see testdata/split.mjs.
func runSplit(t *testing.T, path, mode string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	loader := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"--stack-size=8192", filepath.Join("testdata", "split.mjs"), path, mode, loader}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// TestSplit leaves functions and their data to the rest: all, half of them at random, and those that the program does not call.
func TestSplit(t *testing.T) {
	path := build(t, linker(t))
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, errs, err := run(t, path)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	write := func(first []byte, telling bool) (names []string) {
		one, rest, names, err := trim(program, first, telling)
		if err := errors.Join(err, os.WriteFile(path, one, 0o644), os.WriteFile(strings.TrimSuffix(path, ".wasm")+"-rest.wasm", rest, 0o644)); err != nil {
			t.Fatal(err)
		}
		return names
	}
	names := write(nil, true)
	_, told, err := runSplit(t, path, "tell")
	if err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	var called, half []byte
	for line := range strings.Lines(told) {
		f, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%v: %s", err, told)
		}
		called = append(called, names[f]+"\n"...)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		if strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "sync") {
			called = append(called, name+"\n"...) // which of these run depends on the time
		}
		if rng.IntN(2) == 0 {
			half = append(half, name+"\n"...)
		}
	}
	for _, c := range []struct {
		name, mode string
		first      []byte
	}{{"none", "each", []byte("no such function\n")}, {"half", "each", half}, {"called", "none", called}} {
		write(c.first, false)
		if got, errs, err := runSplit(t, path, c.mode); err != nil || got != want || errs != "" {
			t.Errorf("%s: %v, printed %q, want %q\n%s", c.name, err, got, want, errs)
		}
	}
	// A function that is missing is asked for.
	write([]byte("no such function\n"), false)
	if _, errs, err := runSplit(t, path, "none", "panic"); err == nil || !strings.Contains(errs, "is not there") {
		t.Errorf("%v\n%s", err, errs)
	}
}

func TestMalformed(t *testing.T) {
	program, err := os.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	header := []byte("\x00asm\x01\x00\x00\x00")
	for name, b := range map[string][]byte{
		"empty":         nil,
		"text":          []byte("hello"),
		"no section":    header,
		"cut off":       program[:len(program)/2],
		"not of Go's":   append(bytes.Clone(header), 11, 8, 1, 0, 0x41, 0, 0x0b, 2, 'h', 'i'),
		"two data":      append(bytes.Clone(header), 11, 1, 0, 11, 1, 0),
		"other version": bytes.Replace(program, tablesHeader, []byte("\xf0\xff\xff\xff\x00\x00\x01\x08"), 1),
	} {
		if _, _, _, err := trim(b, nil, false); !errors.Is(err, errProgram) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Damage anywhere in the tables must be noticed or do no harm here.
	m := parseModule(program)
	tables := bytes.Index(m.memory, tablesHeader)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		damaged := bytes.Clone(m.memory)
		for range 1 + rng.IntN(50) {
			damaged[tables+rng.IntN(len(damaged)-tables)] = byte(rng.Uint32())
		}
		if _, _, _, err := trim(append(header, (&module{sections: []section{{sectionData, nil}}, memory: damaged}).encode()[8:]...), nil, false); err != nil && !errors.Is(err, errProgram) {
			t.Fatal(err)
		}
	}
}

func TestEncode(t *testing.T) {
	memory := make([]byte, 3000)
	memory[3], memory[10], memory[1000], memory[2999] = 1, 2, 3, 4
	m := &module{sections: []section{{sectionData, nil}}, memory: memory}
	if again := parseModule(m.encode()); !bytes.Equal(again.memory, memory) {
		t.Errorf("memory %v", again)
	}
	if len(m.encode()) > 60 {
		t.Errorf("%d bytes for four numbers", len(m.encode()))
	}
}

// TestShorten finds a shader among other text, and leaves that, the marks and empty lines as they are.
func TestShorten(t *testing.T) {
	const (
		shader = "// A sum.\n// Of two.\n\nconst n = 4u; // @param\n  x += y; //twice\n  // Next.\n//\n\n// A mark.\n// @fuse\n"
		want   = "\n\nconst n = 4u; // @param\n  x += y;\n//\n\n// @fuse\n"
		before = "https://a // b\n"
	)
	memory := []byte(before + shader + before)
	shorten(memory, []byte("// elsewhere"))
	shorten(memory, []byte(shader))
	if got := string(memory); got != before+want+strings.Repeat(" ", len(shader)-len(want))+before {
		t.Errorf("%q", got)
	}
}
