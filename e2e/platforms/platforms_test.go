// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

// Package platforms runs what other packages are compiled to for platforms that this machine is not: Windows under Wine and 64-bit ARM
// under QEMU, both on Mesa's software Vulkan. Emulation is slow, so only `make test-long` does it; native/setup/setup.sh long
// installs what it takes.
package platforms

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// drivers are the packages below native whose conformance suite runs, each on its platforms. The build tags choose it.
var drivers = []struct {
	name, tags string
	linked     bool // in package gpu, so that the command and package matrix run on it as well
	platforms  []platform
}{
	{"cogent", "cogent", true, []platform{windows, arm64}},
	{"oliver", "", true, []platform{windows, arm64}},
	{"rajveer", "rajveer", false, nil}, // its libraries are for fewer platforms, and a module of its own tests it
}

// matrixTests are few of package matrix, of every kind that is quick in an emulator.
const matrixTests = "^Test(Mapped|BinaryAndComparisons|EvalAll|LoopsOfFunctions|CustomAssign|Philox|ReduceRowByColumn|ReduceHeadAndTail|" +
	"ProductIgnoresBeyond|ProductIntegersAndHalf|Half|ConvertRounds|LU|Cholesky|SparseTexts)$"

// patience is how long one program may take. Only a hang takes that long.
const patience = 15 * time.Minute

// TestTable wants every driver that has a conformance suite in the table.
func TestTable(t *testing.T) {
	found, err := filepath.Glob("../../native/*/core_test.go")
	check(t, err)
	var suites, listed []string
	for _, path := range found {
		suites = append(suites, filepath.Base(filepath.Dir(path)))
	}
	for _, d := range drivers {
		listed = append(listed, d.name)
	}
	if slices.Sort(listed); !slices.Equal(suites, listed) || len(suites) == 0 {
		t.Errorf("the conformance suites are those of %q, the table has %q", suites, listed)
	}
}

func TestWindows(t *testing.T) { onPlatform(t, windows) }

func TestARM64(t *testing.T) { onPlatform(t, arm64) }

// onPlatform runs everything on a platform, in long tests only.
func onPlatform(t *testing.T, p platform) {
	if os.Getenv("SUBLET_LONG") == "" {
		return
	}
	p.wantTools(t)
	run := p.start(t)
	t.Run("gemm", func(t *testing.T) { build{p, "none", "", run}.test(t, "../../internal/gemm", ".") })
	for _, d := range drivers {
		if !slices.ContainsFunc(d.platforms, func(o platform) bool { return o.goos == p.goos && o.goarch == p.goarch }) {
			continue
		}
		on := build{p, d.name, d.tags, run}
		t.Run(d.name+"/conformance", func(t *testing.T) {
			on.test(t, "../../native/"+d.name, "^TestCore$/^Conformance$")
		})
		if d.linked {
			t.Run(d.name+"/matrix", func(t *testing.T) { on.test(t, "../../matrix", matrixTests) })
			t.Run(d.name+"/command", on.command)
		}
	}
}

// build is a driver on a platform.
type build struct {
	platform
	driver, tags string
	run          runner
}

// compile runs a go command in a folder, for the platform.
func (b build) compile(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+b.goos, "GOARCH="+b.goarch, "CC="+b.cc, "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

var (
	outcomes = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): `)
	passing  = regexp.MustCompile(`(?m)^(=== .*| *--- PASS: .*)\n`)
)

// test runs tests of the package in a folder and counts them.
func (b build) test(t *testing.T, dir, pattern string) {
	program := filepath.Join(t.TempDir(), "tests.exe")
	b.compile(t, dir, "test", "-c", "-tags", b.tags, "-o", program, ".")
	out, err := b.output(t, dir, program, "-test.v", "-test.run="+pattern)
	counts := map[string]int{}
	for _, m := range outcomes.FindAllStringSubmatch(out, -1) {
		counts[m[1]]++
	}
	t.Logf("%s/%s, driver %s: %d passed, %d failed, %d skipped", b.goos, b.goarch, b.driver, counts["PASS"], counts["FAIL"], counts["SKIP"])
	if err != nil || counts["FAIL"]+counts["SKIP"] > 0 || counts["PASS"] < 10 {
		t.Errorf("%v\n%s", err, passing.ReplaceAllString(out, ""))
	}
}

// command has the command compute a product, and convert a file in place.
func (b build) command(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "sublet.exe")
	b.compile(t, "../../native/sublet", "build", "-tags", b.tags, "-o", program, ".")
	check(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("1,2\n3,4\n5,6\n"), 0o600))
	out, err := b.output(t, dir, program, "eval", "T(X) * X", "-i", "X=in.csv", "--driver", b.driver)
	if err != nil || !strings.Contains(out, "  35  44\n  44  56\n") || !strings.Contains(out, "("+b.driver+")") {
		t.Errorf("%v\n%s", err, out)
	}
	tensors, err := os.ReadFile("../../buffer/file/params/testdata/dlr_4in2out_v2.params")
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "x.params"), tensors, 0o600))
	if out, err := b.output(t, dir, program, "params", "convert", "x.params", "x.params"); err != nil || !strings.HasPrefix(out, "tensors: ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// output runs a program in a folder and returns what it prints. Not through a pipe: Wine's servers would keep that open.
func (b build) output(t *testing.T, dir, program string, args ...string) (string, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "output"))
	check(t, err)
	defer f.Close()
	end := time.Now().Add(patience)
	if all, ok := t.Deadline(); ok && all.Before(end) {
		end = all.Add(-10 * time.Second) // so that nothing outlives the test
	}
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	cmd := b.run(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, f, f
	cmd.Env = append(cmd.Env, "SUBLET_LONG=", "SUBLET_DRIVER=", "SUBLET_ADAPTER=", "SUBLET_TEST_DRIVERS="+b.driver)
	failed := cmd.Run()
	out, err := os.ReadFile(f.Name())
	check(t, err)
	return string(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))), failed
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
