// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Browser is a running headless Chromium.
type Browser struct {
	ctx context.Context // chromedp keeps the connection in a context; it ends with the test
}

// startTimeout is generous, because the browser shares the machine with compilers and other tests.
const startTimeout = time.Minute

// Drawing makes a browser compose its pages on SwiftShader as well: a canvas that WebGPU draws on takes the GPU process down where they
// are composed without a GPU.
var Drawing = []chromedp.ExecAllocatorOption{
	chromedp.Flag("use-vulkan", "swiftshader"),
	chromedp.Flag("use-angle", "swiftshader"),
	chromedp.Flag("enable-features", "Vulkan"),
}

// shared is the browser that tests share while [Main] runs them. Starting one takes more processor time than most tests do in it.
var shared struct {
	sync.Mutex
	on   bool
	ctx  context.Context // of the browser, if it has started
	stop func()
}

// Main runs the tests of a package in one browser, and returns its exit code.
func Main(m *testing.M) int {
	shared.on = true
	defer retire()
	return m.Run()
}

// retire stops the browser that tests share. The next test starts another one.
func retire() {
	shared.Lock()
	defer shared.Unlock()
	if shared.ctx != nil {
		shared.stop()
		shared.ctx = nil
	}
}

// Start returns a browser that has no pages, caches or storage yet, and forgets them when t ends. Under [Main] it is a context of the
// browser that all tests share, which stops after a test that fails; otherwise it is one of its own.
func Start(t testing.TB) *Browser {
	t.Helper()
	if !shared.on {
		return StartOwn(t)
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.ctx == nil || shared.ctx.Err() != nil {
		shared.ctx, shared.stop = launch(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			retire()
		}
	})
	ctx, cancel := chromedp.NewContext(shared.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chrome: no context: %v", err)
	}
	return &Browser{ctx}
}

// StartOwn starts a browser for this test alone, which stops when t ends.
func StartOwn(t testing.TB, more ...chromedp.ExecAllocatorOption) *Browser {
	t.Helper()
	ctx, stop := launch(t, more...)
	t.Cleanup(stop)
	return &Browser{ctx}
}

func launch(t testing.TB, more ...chromedp.ExecAllocatorOption) (ctx context.Context, stop func()) {
	t.Helper()
	path, err := find()
	if err != nil {
		t.Fatalf("chrome: %v", err)
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(options(path), more...)...)
	ctx, cancel := chromedp.NewContext(alloc)
	stop = func() {
		cancel()
		stopAlloc()
	}
	// The first action starts the browser and ties its life to the action's context, so that must not be the one with
	// the timeout.
	late := time.AfterFunc(startTimeout, cancel)
	defer late.Stop()
	if err := chromedp.Do(ctx); err != nil {
		stop()
		t.Fatalf("chrome: %s does not start: %v", path, err)
	}
	return ctx, stop
}

func options(path string) []chromedp.ExecAllocatorOption {
	return append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// Only our own pages are opened, and containers often forbid what the sandbox needs.
		chromedp.NoSandbox,
		chromedp.Flag("enable-unsafe-webgpu", true),
		chromedp.Flag("use-webgpu-adapter", "swiftshader"),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-quic", true),
		// Each window would run two pages of the browser's own, for what its address bar suggests, which take as long as a page of ours to start.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup"),
	)
}

// find returns the path of a Chromium or Chrome.
func find() (string, error) {
	if name := os.Getenv("CHROME"); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", &notFoundError{"$CHROME is " + name + ": " + err.Error()}
		}
		return path, nil
	}
	for _, name := range places(runtime.GOOS) {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", &notFoundError{"no Chromium or Chrome found"}
}

type notFoundError struct{ why string }

func (e *notFoundError) Error() string {
	return e.why + "; install one (Debian: apt-get install chromium) or set CHROME to its path"
}

func places(goos string) []string {
	switch goos {
	case "darwin":
		return []string{
			"/Applications/Chromium.app/Contents/MacOS/Chromium",
			"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
			"chromium",
		}
	case "windows":
		names := []string{"chromium.exe", "chrome.exe"}
		for _, root := range []string{"ProgramFiles", "ProgramFiles(x86)", "LocalAppData"} {
			dir := os.Getenv(root)
			names = append(names,
				filepath.Join(dir, "Chromium", "Application", "chrome.exe"),
				filepath.Join(dir, "Google", "Chrome", "Application", "chrome.exe"))
		}
		return names
	default:
		return []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "/snap/bin/chromium"}
	}
}
