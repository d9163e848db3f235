// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// Start starts a browser, which stops when t ends.
func Start(t testing.TB, more ...chromedp.ExecAllocatorOption) *Browser {
	t.Helper()
	path, err := find()
	if err != nil {
		t.Fatalf("chrome: %v", err)
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(options(path), more...)...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	// The first action starts the browser and ties its life to the action's context, so that must not be the one with
	// the timeout.
	late := time.AfterFunc(startTimeout, cancel)
	defer late.Stop()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chrome: %s does not start: %v", path, err)
	}
	return &Browser{ctx}
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
