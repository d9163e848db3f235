// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/devtest"
)

const (
	module  = "github.com/sublet-gpu/sublet"
	version = "v0.0.1"
	root    = "../.."
)

// TestInstall wants nothing in go.mod that keeps `go install` of a version from working. The long test installs the command of the working
// tree from a module proxy, and builds another module's program of it.
func TestInstall(t *testing.T) {
	var mod struct{ Replace, Exclude []any }
	if err := json.Unmarshal([]byte(output(t, root, nil, "go", "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Fatalf("go.mod has replace or exclude: %v", mod)
	}
	proxy := t.TempDir()
	writeModule(t, proxy)
	if !devtest.Long() {
		return
	}
	bin, home, own := t.TempDir(), t.TempDir(), t.TempDir()
	cache := "file://" + filepath.ToSlash(strings.TrimSpace(output(t, root, nil, "go", "env", "GOMODCACHE"))) + "/cache/download"
	env := []string{
		"GOPROXY=file://" + filepath.ToSlash(proxy) + "," + cache + "," + strings.TrimSpace(output(t, root, nil, "go", "env", "GOPROXY")), "GOSUMDB=off", "GOMODCACHE=" + home,
		"GOFLAGS=-mod=mod -modcacherw", "GOBIN=" + bin, "GOWORK=off", "SUBLET_DRIVER=cpu",
	}
	output(t, own, env, "go", "install", module+"/native/sublet@"+version)
	check(t, own, env, filepath.Join(bin, "sublet"), "cpu")

	write(t, filepath.Join(own, "go.mod"), []byte("module example.org/own\n\ngo 1.26\n\nrequire "+module+" "+version+"\n"))
	text, err := os.ReadFile(root + "/native/command/testdata/mydriver/main.go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(own, "main.go"), text)
	output(t, own, env, "go", "build", "-o", filepath.Join(bin, "own"), ".")
	check(t, own, append(env, "SUBLET_DRIVER=mydriver"), filepath.Join(bin, "own"), "mydriver")
}

// check runs an installed program, which must know its version and compute on the driver.
func check(t *testing.T, dir string, env []string, program, driver string) {
	t.Helper()
	if got := output(t, dir, env, program, "--version"); !strings.Contains(got, version+" ") {
		t.Errorf("%s has the version %q", program, got)
	}
	got := output(t, dir, env, program, "eval", "det(eye(3)*2)", "--json")
	if !strings.Contains(got, `"values":[[8]]`) {
		t.Errorf("%s computed %q", program, got)
	}
	if got := output(t, dir, env, program, "info"); !strings.Contains(got, driver) {
		t.Errorf("%s lists %q", program, got)
	}
}

// writeModule writes the module of the working tree as module proxies serve it, without the modules nested in it.
func writeModule(t *testing.T, proxy string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, version+".mod"), mod)
	write(t, filepath.Join(dir, version+".info"), []byte(`{"Version":"`+version+`","Time":"2026-01-01T00:00:00Z"}`))
	write(t, filepath.Join(dir, "list"), []byte(version+"\n"))
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	archive := zip.NewWriter(f)
	for _, name := range moduleFiles(t) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		w, err := archive.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// moduleFiles lists the files of the module, which are those that git knows or would add.
func moduleFiles(t *testing.T) []string {
	t.Helper()
	all := strings.FieldsFunc(output(t, root, nil, "git", "-c", "safe.directory=*", "ls-files", "-zco", "--exclude-standard"), func(r rune) bool { return r == 0 })
	nested := map[string]bool{}
	for _, name := range all {
		if dir, file := path.Split(name); file == "go.mod" && dir != "" {
			nested[path.Clean(dir)] = true
		}
	}
	var files []string
	for _, name := range all {
		inside := false
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			inside = inside || nested[dir]
		}
		if info, err := os.Lstat(filepath.Join(root, name)); !inside && err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	if len(files) < 500 {
		t.Fatalf("%d files cannot be the module", len(files))
	}
	return files
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// output runs a program and returns what it prints.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, errs.String())
	}
	return string(out)
}
