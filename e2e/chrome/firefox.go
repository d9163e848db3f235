// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Firefox opens a page in a headless Firefox without WebGPU, which stops when ctx ends, and at the latest when t does. Nothing controls
// the page: it sends its results itself.
func Firefox(t testing.TB, ctx context.Context, url string) {
	t.Helper()
	profile := t.TempDir()
	prefs := `user_pref("dom.webgpu.enabled", false); user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false); user_pref("app.update.disabledForTesting", true);`
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(prefs), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, findFirefox(t), "--headless", "--no-remote", "--profile", profile, url)
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
}

// findFirefox returns the program, whose name on Debian is that of its long-term release.
func findFirefox(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("FIREFOX"), "firefox-esr", "firefox"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Firefox found; install one (Debian: apt-get install firefox-esr) or set FIREFOX to its path")
	return ""
}

// posted returns the bodies of what pages send to a path, until ctx ends.
func posted(ctx context.Context, mux *http.ServeMux, path string) <-chan string {
	bodies := make(chan string)
	mux.HandleFunc(path, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the browser has gone
		}
		select {
		case bodies <- string(body):
		case <-ctx.Done():
		}
	})
	return bodies
}
