// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// firefoxPage runs the tests that web/test/simd.test.mjs has Node run.
const firefoxPage = `<!doctype html><meta charset="utf-8"><title>npm package</title><link rel="icon" href="data:,"><script type="module">
const outcome = {};
const send = (value) => fetch('/outcome', {method: 'POST', body: JSON.stringify(value)});
try {
	const {init} = await import('/dist/index.mjs'), gpu = await init();
	outcome['driver ' + gpu.info.driver] = gpu.info.driver === 'simd' ? '' : 'without WebGPU';
	gpu.close();
	for (const module of ['everywhere', 'expressions', 'tensors', 'nn', 'sparse', 'contract', 'params', 'cruncher-calls', 'cruncher-arrays', 'cruncher-failures']) {
		const {tests} = await import('/tests/' + module + '.mjs');
		for (const [name, run] of Object.entries(tests)) {
			if (run.both) outcome[module + ' ' + name] = await run('simd').then(() => '', (error) => String(error) + error?.stack);
		}
	}
	const {tests} = await import('/tests/threads.mjs');
	for (const [name, run] of Object.entries(tests)) outcome['threads ' + name] = await run().then(() => '', (error) => String(error) + error?.stack);
} catch (error) {
	outcome.page = String(error) + error?.stack;
}
send(outcome);
</script>`

// TestFirefox runs the tests of pages that need no WebGPU in Firefox, which has none here: the page says itself how they went.
func TestFirefox(t *testing.T) {
	if !devtest.Long() {
		return // Firefox is not among what make test wants
	}
	outcome := make(chan map[string]string, 1)
	mux := webHandler(t)
	mux.Handle("/firefox", chrome.Files{"/firefox": firefoxPage})
	mux.HandleFunc("/outcome", func(_ http.ResponseWriter, r *http.Request) {
		var o map[string]string
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			o = map[string]string{"page": err.Error()}
		}
		outcome <- o
	})
	url := chrome.Serve(t, mux)
	profile := t.TempDir()
	prefs := `user_pref("dom.webgpu.enabled", false); user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false); user_pref("app.update.disabledForTesting", true);`
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(prefs), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), webTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, firefox(t), "--headless", "--no-remote", "--profile", profile, url+"/firefox")
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	select {
	case o := <-outcome:
		for name, failure := range o {
			if failure != "" {
				t.Errorf("%s: %s", name, failure)
			}
		}
		if len(o) < 50 {
			t.Errorf("%d tests ran", len(o))
		}
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
}

// firefox returns the program, whose name on Debian is that of its long-term release.
func firefox(t *testing.T) string {
	for _, name := range []string{os.Getenv("FIREFOX"), "firefox-esr", "firefox"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Firefox found; install one (Debian: apt-get install firefox-esr) or set FIREFOX to its path")
	return ""
}
