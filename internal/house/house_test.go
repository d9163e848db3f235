// SPDX-License-Identifier: Apache-2.0

// Package house holds the tree to its rules: imports go down only, files and functions stay readable.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/devtest"
)

const module = "github.com/sublet-gpu/sublet/"

const (
	maxFileLines     = 500
	maxFunctionLines = 60
)

// floors lists the packages from the ground up. A package may import those of its own floor and of lower ones; the longest path
// that fits tells the floor.
var floors = [][]string{
	{"internal"},
	{"gpu/driver"},
	{"gpu/internal/software"},
	{"gpu/cpu", "gpu/simd", "native/internal/core", "native/cogent", "native/oliver", "native/rajveer", "wasm/browser"},
	{"gpu", "buffer/internal/memory", "buffer/dtype", "native/internal/core/ctest"},
	{"buffer", "buffer/file"},
	{"buffer/ndarray", "buffer/cruncher"},
	{"matrix"},
	{"matrix/graph", "matrix/nn", "matrix/tensor", "matrix/tune"},
	{"wasm", "native", "native/rajveer/register", "web", "e2e"},
}

func floorOf(pkg string) int {
	longest, floor := -1, len(floors)
	for i, prefixes := range floors {
		for _, p := range prefixes {
			if (pkg == p || strings.HasPrefix(pkg, p+"/")) && len(p) > longest {
				longest, floor = len(p), i
			}
		}
	}
	return floor
}

// links reports whether a file is one of those by which package gpu links the drivers of a platform: the one place where an
// import goes up.
func links(path string) bool { return strings.HasPrefix(path, "gpu/drivers_") }

type goFile struct {
	path      string
	lines     int
	generated bool
	set       *token.FileSet
	syntax    *ast.File
}

// goFiles parses the files of the module that are not tests.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []goFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, goFile{
			path: filepath.ToSlash(rel), lines: strings.Count(string(text), "\n"), generated: ast.IsGenerated(syntax), set: set, syntax: syntax,
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("found %d files, which cannot be the whole tree", len(files))
	}
	return files
}

func TestImportsGoDown(t *testing.T) {
	for _, f := range goFiles(t) {
		pkg := filepath.ToSlash(filepath.Dir(f.path))
		for _, im := range f.syntax.Imports {
			other, ours := strings.CutPrefix(strings.Trim(im.Path.Value, `"`), module)
			if ours && floorOf(other) > floorOf(pkg) && !links(f.path) {
				t.Errorf("%s imports %s, which is above it", f.path, other)
			}
		}
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.generated {
			continue
		}
		if f.lines > maxFileLines {
			t.Errorf("%s has %d lines, the most are %d", f.path, f.lines, maxFileLines)
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, the most are %d", f.path, fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// TestProgramsOfPagesAreSmall wants nothing of package os, and so of fmt, in the programs that pages load: with it they take 20 KB
// more, compressed, used or not.
func TestProgramsOfPagesAreSmall(t *testing.T) {
	for _, program := range []string{"sublet", "cruncher"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "sublet_page", module+"wasm/"+program)
		cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for pkg := range strings.FieldsSeq(string(out)) {
			if pkg == "os" || pkg == "fmt" {
				t.Errorf("%s is in wasm/%s", pkg, program)
			}
		}
	}
}

// TestNothingFused wants the oracle to round every operation, and planners to decide the same everywhere: no x*y + z that Go rounds once
// on ARM, which a conversion of the product prevents.
func TestNothingFused(t *testing.T) {
	if !devtest.Long() {
		return // it compiles everything for another machine
	}
	packages := []string{"internal/shaders/...", "gpu/...", "buffer/cruncher/balance", "matrix/internal/plan", "matrix/nn"}
	args := []string{"build", "-gcflags=" + module + "...=-S"}
	for _, p := range packages {
		args = append(args, module+p)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	fused := regexp.MustCompile(`\(([^()\s]+\.go:\d+)\)\s+FN?M(?:ADD|SUB)[SD]\s`)
	if !strings.Contains(string(out), "\tFMULS\t") {
		t.Fatal("no multiplication in what was compiled")
	}
	seen := map[string]bool{}
	for _, m := range fused.FindAllSubmatch(out, -1) {
		if at := string(m[1]); !seen[at] {
			seen[at] = true
			t.Errorf("%s: x*y + z may be rounded once; convert the product", at)
		}
	}
}

// TestNamedTests makes sure that the Makefile names tests that there are, where it lists those of package matrix that run on adapters.
func TestNamedTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "\non-adapters := ^Test(")
	list, _, end := strings.Cut(list, ")$$\n")
	if !ok || !end {
		t.Fatal("the Makefile has no list of tests on adapters")
	}
	list = regexp.MustCompile(`\$\\\n *`).ReplaceAllString(list, "")
	files, err := filepath.Glob(filepath.Join("..", "..", "matrix", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func Test(\w+)\(`).FindAllSubmatch(text, -1) {
			tests = append(tests, string(m[1]))
		}
	}
	names := regexp.MustCompile(`[^|(]+(\([^)]*\))?`).FindAllString(list, -1)
	if len(names) < 30 {
		t.Fatalf("%d names in %q", len(names), list)
	}
	for _, name := range names {
		if !slices.ContainsFunc(tests, regexp.MustCompile("^"+name+"$").MatchString) {
			t.Errorf("no test of package matrix is called Test%s", name)
		}
	}
}
