// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RunPackage compiles the tests of a package of this module, such as "./matrix", for GOOS=js and runs them in a page as
// subtests of t.
func RunPackage(t *testing.T, pkg string, args ...string) {
	t.Helper()
	Build(t, pkg).Run(t, Options{Args: args})
}

// Binary is the tests of a package, compiled to WebAssembly.
type Binary struct {
	pkg  string
	path string
	exec string // wasm_exec.js
}

// Build compiles the tests of a package of this module for GOOS=js.
func Build(t testing.TB, pkg string) *Binary {
	t.Helper()
	b := &Binary{pkg: pkg, path: filepath.Join(t.TempDir(), "test.wasm")}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = root(t)
		cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("chrome: go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	// As the programs of pages are built: there is less to compile.
	run("test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-gcflags=github.com/sublet-gpu/sublet/...=-l -dwarf=false", "-o", b.path, pkg)
	if _, err := os.Stat(b.path); err != nil {
		t.Fatalf("chrome: package %s has no tests", pkg)
	}
	b.exec = filepath.Join(run("env", "GOROOT"), "lib", "wasm", "wasm_exec.js")
	return b
}

// Options say how a [Binary] runs.
type Options struct {
	Args    []string          // for the test binary, for example "-test.run=Conformance"
	Env     map[string]string // its environment
	CSP     string            // Content-Security-Policy of the page; none by default
	Worker  bool              // run in a dedicated worker instead of the page
	Module  bool              // which is a module worker
	Timeout time.Duration     // TestTimeout by default
	// Files are served beside the page. Scripts names those that run before the program. They may set
	// globalThis.beforeGo to a function, which gets the WebAssembly.Instance before it runs.
	Files   Files
	Scripts []string
}

// TestTimeout is how long a test binary may run unless [Options] says otherwise.
const TestTimeout = 5 * time.Minute

// Run runs the tests in a page of a browser of their own, as subtests of t. It fails if a test fails, is skipped or does
// not finish, or if the program ends with anything but 0.
func (b *Binary) Run(t *testing.T, o Options) {
	t.Helper()
	report(t, b.pkg, b.execute(t, o))
}

// execute runs the program and returns when it has ended, or has run for too long.
func (b *Binary) execute(t testing.TB, o Options) *run {
	t.Helper()
	if o.Timeout <= 0 {
		o.Timeout = TestTimeout
	}
	url := Serve(t, b.handler(t, o))
	p := Start(t).tab(t, o.Timeout)
	messages := p.messages("gotestReport")
	p.Go(url + "/")
	p.RequireWebGPU()
	Eval[bool](p, "gotest(), true") // not awaited: the program tells by messages how it gets on
	return collect(t, p.ctx, messages)
}

// RunFirefox is Run in Firefox, without WebGPU.
func (b *Binary) RunFirefox(t *testing.T, o Options) {
	t.Helper()
	if o.Timeout <= 0 {
		o.Timeout = TestTimeout
	}
	ctx, cancel := context.WithTimeout(t.Context(), o.Timeout)
	defer cancel()
	mux := http.NewServeMux()
	mux.Handle("/", b.handler(t, o))
	messages := posted(ctx, mux, "/report")
	Firefox(t, ctx, Serve(t, mux)+"/?start")
	report(t, b.pkg, collect(t, ctx, messages))
}

//go:embed assets/gotest.html
var gotestHTML string

//go:embed assets/gotest.js
var gotestJS string

// handler serves the page, the program and what the page has to know.
func (b *Binary) handler(t testing.TB, o Options) http.Handler {
	t.Helper()
	// Go's own timeout comes first, because it prints what every goroutine does.
	args := []string{b.pkg, "-test.v=test2json", "-test.timeout=" + (o.Timeout * 9 / 10).String()}
	config, err := json.Marshal(map[string]any{
		"args":    append(args, o.Args...),
		"env":     o.Env,
		"scripts": append([]string{"/wasm_exec.js"}, o.Scripts...),
		"worker":  o.Worker,
		"module":  o.Module,
	})
	if err != nil {
		t.Fatalf("chrome: %v", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", o.Files)
	mux.Handle("/{$}", page(gotestHTML, o.CSP))
	mux.Handle("/gotest.js", page(gotestJS, o.CSP)) // a worker obeys the policy of its own script
	mux.Handle("/gotest.json", page(string(config), ""))
	mux.Handle("/wasm_exec.js", file(b.exec))
	mux.Handle("/test.wasm", file(b.path))
	return mux
}

func page(text, csp string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if csp != "" {
			w.Header().Set("Content-Security-Policy", csp)
		}
		_, _ = w.Write([]byte(text))
	})
}

func file(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
}

// run is what a program has printed and how it ended.
type run struct {
	out, errs strings.Builder
	end       string // what is wrong with its end, if anything
}

// message is what the page reports: output of the program, or its end.
type message struct {
	Output string `json:"output"`
	Error  bool   `json:"error"` // the output is of standard error
	Exit   *int   `json:"exit"`
	Fatal  string `json:"fatal"` // the program could not start, or died without exit code
}

// collect reads the page's messages until the program ends.
func collect(t testing.TB, ctx context.Context, messages <-chan string) *run {
	t.Helper()
	r := &run{end: "the page has gone"}
	for {
		var text string
		var ok bool
		select {
		case text, ok = <-messages:
		case <-ctx.Done():
		}
		if !ok {
			if err := context.Cause(ctx); err != nil {
				r.end = "the program did not end: " + err.Error()
			}
			return r
		}
		var m message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("chrome: the page reports %q: %v", text, err)
		}
		if m.Error {
			r.errs.WriteString(m.Output)
		} else {
			r.out.WriteString(m.Output)
		}
		switch {
		case m.Fatal != "":
			r.end = m.Fatal
			return r
		case m.Exit != nil && *m.Exit == 0:
			r.end = ""
			return r
		case m.Exit != nil:
			r.end = "exit code " + strconv.Itoa(*m.Exit)
			return r
		}
	}
}
