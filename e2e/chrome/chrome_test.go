// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestStart has tests share a browser, and nothing in it, until it is retired.
func TestStart(t *testing.T) {
	process := func(b *Browser) *chromedp.Browser { return chromedp.FromContext(b.ctx).Browser }
	var shared *chromedp.Browser
	t.Run("shared", func(t *testing.T) {
		first, second, url := Start(t), Start(t), Serve(t, Files{"/": "<!doctype html>"})
		shared = process(first)
		if process(second) != shared || process(StartOwn(t)) == shared {
			t.Error("who shares a browser is not who asks for it")
		}
		Eval[bool](first.Open(t, url), "(localStorage.setItem('of', 'first'), true)")
		if left := Eval[string](second.Open(t, url), "localStorage.getItem('of') ?? ''"); left != "" {
			t.Errorf("a page finds what another test has left: %q", left)
		}
	})
	retire() // as after a test that failed
	if process(Start(t)) == shared {
		t.Error("a browser that was retired is used again")
	}
}

// find returns a test of the tree, or nil.
func (r *result) find(path ...string) *result {
	for _, c := range r.children {
		if c.name == path[0] {
			if len(path) == 1 {
				return c
			}
			return c.find(path[1:]...)
		}
	}
	return nil
}

// TestEnds runs programs that end well and badly.
func TestEnds(t *testing.T) {
	sample := Build(t, "./e2e/chrome/testdata/sample")
	for _, c := range []struct {
		label, name, end, err string
		options               Options
		want                  map[string]string // actions
	}{
		{label: "well", name: "Good", options: Options{Env: map[string]string{"SAMPLE": "it"}}, want: map[string]string{"Good": "pass", "Good/part": "pass"}},
		{label: "well in a worker", name: "Good", options: Options{Worker: true, CSP: "script-src 'self' 'wasm-unsafe-eval'"}, want: map[string]string{"Good": "pass"}},
		{label: "failure", name: "Bad", end: "exit code 1", want: map[string]string{"Bad": "fail", "Bad/good": "pass", "Bad/bad": "fail"}},
		{label: "skip", name: "Skipped", want: map[string]string{"Skipped": "skip"}},
		{label: "panic", name: "Panic", end: "exit code 2", err: "the end", want: map[string]string{"Panic": "fail"}},
		{label: "hang", name: "Hang", end: "did not end", options: Options{Timeout: 15 * time.Second}, want: map[string]string{"Hang": ""}},
		{label: "refused", name: "Good", end: "Content Security Policy", options: Options{CSP: "script-src 'self'"}},
	} {
		t.Run(c.label, func(t *testing.T) {
			c.options.Args = []string{"-test.run=" + c.name}
			r := sample.execute(t, c.options)
			if r.end != c.end && (c.end == "" || !strings.Contains(r.end, c.end)) {
				t.Errorf("it ended with %q, want %q", r.end, c.end)
			}
			if !strings.Contains(r.errs.String(), c.err) {
				t.Errorf("standard error is %q, want %q", r.errs.String(), c.err)
			}
			tree, err := parse(t.Context(), r.out.String())
			if err != nil {
				t.Fatal(err)
			}
			for name, action := range c.want {
				got := tree.find(strings.Split("Test"+name, "/")...)
				if got == nil || got.action != action {
					t.Errorf("Test%s: %+v, want %q in\n%s", name, got, action, r.out.String())
				}
			}
			if c.options.Env != nil && !strings.Contains(tree.find("TestGood").output.String(), "all is well with it") {
				t.Errorf("no environment or no log in\n%s", r.out.String())
			}
		})
	}
}

func TestPage(t *testing.T) {
	p := Start(t).Open(t, Serve(t, Files{"/": "<!doctype html><title>a page</title><h1>Sublet</h1>"}))
	p.RequireWebGPU()
	if title := Eval[string](p, "Promise.resolve(document.title)"); title != "a page" {
		t.Errorf("the title is %q", title)
	}
	if !Eval[bool](p, "crossOriginIsolated && new SharedArrayBuffer(8).byteLength === 8") {
		t.Error("the page is not isolated")
	}
	path := p.Screenshot("chrome-test")
	png, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("screenshot %s: %v", path, err)
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}

func TestCrash(t *testing.T) {
	p := Start(t).Open(t, Serve(t, Files{"/": "<!doctype html>"}))
	err := chromedp.Do(p.ctx, chromedp.Navigate("chrome://crash"))
	<-p.ctx.Done() // or the page times out
	if why := p.why(err); !errors.Is(why, errCrashed) {
		t.Errorf("after a crash: %v", why)
	}
}

func TestFind(t *testing.T) {
	t.Setenv("CHROME", "no-such-browser")
	if path, err := find(); err == nil || !strings.Contains(err.Error(), "CHROME") {
		t.Errorf("found %q, %v", path, err)
	}
	t.Setenv("CHROME", "")
	t.Setenv("PATH", "")
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if len(places(goos)) < 3 {
			t.Errorf("only %v on %s", places(goos), goos)
		}
	}
}
