// SPDX-License-Identifier: Apache-2.0

//go:build !js

// Package e2e tests the library in a real browser.
package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

func TestMain(m *testing.M) { os.Exit(chrome.Main(m)) }

// strict is a Content-Security-Policy that keeps a program from installing scripts: no inline ones, no blob: and no eval.
const strict = "script-src 'self' 'wasm-unsafe-eval'"

// TestBrowserDriver runs the tests of the browser driver, among them the conformance suite, with a helper that sees Go's memory and,
// in long tests, with one that does not: short ones do that without the suite, in [TestBrowserDriverPages].
func TestBrowserDriver(t *testing.T) {
	tests := chrome.Build(t, "./wasm/browser")
	engines := map[string]chrome.Options{"supplied": withHelper(t, chrome.Options{})}
	if devtest.Long() {
		engines["embedded"] = chrome.Options{}
	}
	for engine, o := range engines {
		t.Run(engine, func(t *testing.T) { tests.Run(t, expect(engine, o)) })
	}
}

// TestBrowserDriverRefused opens no device where a policy keeps the helper out.
func TestBrowserDriverRefused(t *testing.T) {
	tests := chrome.Build(t, "./wasm/browser")
	for _, worker := range []bool{false, true} {
		tests.Run(t, expect("none", chrome.Options{CSP: strict, Worker: worker, Args: []string{"-test.run=^TestEngine$"}}))
	}
}

// TestBrowserDriverPages runs the driver's own tests in other kinds of page, where its helper comes by other ways. The conformance
// suite, which TestBrowserDriver runs always, takes a quarter of a minute in each and is part of long tests here.
func TestBrowserDriverPages(t *testing.T) {
	tests := chrome.Build(t, "./wasm/browser")
	for name, c := range map[string]struct {
		engine  string
		options chrome.Options
	}{
		"worker":                  {"embedded", chrome.Options{Worker: true}},
		"module worker":           {"embedded", chrome.Options{Worker: true, Module: true}},
		"policy with blob":        {"embedded", chrome.Options{CSP: strict + " blob:"}},
		"policy with nonce":       {"embedded", chrome.Options{CSP: strict + " 'nonce-gotest'"}},
		"policy, supplied helper": {"supplied", withHelper(t, chrome.Options{CSP: strict})},
	} {
		t.Run(name, func(t *testing.T) {
			if !devtest.Long() {
				c.options.Args = []string{"-test.skip=Conformance"}
			}
			tests.Run(t, expect(c.engine, c.options))
		})
	}
}

// expect tells the program which engine it has to find.
func expect(engine string, o chrome.Options) chrome.Options {
	o.Env = map[string]string{"SUBLET_TEST_ENGINE": engine}
	return o
}

// withHelper makes the page load the helper and hand Go's memory to it, as the npm package does.
func withHelper(t *testing.T, o chrome.Options) chrome.Options {
	t.Helper()
	glue, err := os.ReadFile(filepath.Join("..", "wasm", "browser", "glue.js"))
	if err != nil {
		t.Fatal(err)
	}
	o.Files = chrome.Files{
		"/glue.js":   string(glue),
		"/supply.js": "globalThis.beforeGo = ({exports}) => globalThis[Symbol.for('sublet.glue')].setMemory(exports.mem);",
	}
	o.Scripts = []string{"/glue.js", "/supply.js"}
	return o
}
