// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// A fixture is a folder of fixtures with what a user of the package writes. It is built in a folder of its own that has the package as
// npm would install it.
type fixture struct {
	folder  string
	install bool   // its development dependencies; without, those of the folder web serve
	build   string // a command of the shell; none if the folder is served as it is
	serve   string // a command that serves the page at $PORT; without one the result of the build is served
	policy  string // Content-Security-Policy
}

// vite builds with, or starts, a version of Vite.
func vite(version, args string) string {
	return "node node_modules/vite" + version + "/bin/vite.js " + args
}

// TestFixtures opens pages that bundlers, development servers and browsers make of the packed package, which has to find its programs, its
// parts and its threads.
func TestFixtures(t *testing.T) {
	fixtures := map[string]fixture{
		"importmap":    {folder: "importmap"},
		"policy":       {folder: "policy", policy: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'"},
		"worker":       {folder: "worker"},
		"esbuild":      {folder: "esbuild", build: "npm run build"},
		"esbuild iife": {folder: "esbuild-iife", build: "npm run build"},
	}
	if devtest.Long() {
		fixtures["rollup"] = fixture{folder: "rollup", install: true, build: "npm run build"}
		fixtures["webpack"] = fixture{folder: "webpack", install: true, build: "npm run build"}
		for _, v := range []string{"5", "6", "7", "8"} {
			fixtures["vite "+v] = fixture{folder: "vite", install: true, build: vite(v, "build --outDir out")}
			fixtures["vite "+v+" in development"] = fixture{folder: "vite", install: true, serve: vite(v, "--host 127.0.0.1 --strictPort --port $PORT")}
		}
	}
	browser, archive := chrome.Start(t), pack(t)
	for name, f := range fixtures {
		t.Run(name, func(t *testing.T) {
			dir := f.unpack(t, archive)
			if f.build != "" {
				shell(t, dir, f.build)
			}
			visit(t, browser, f.handler(t, dir), f.policy)
		})
	}
}

// TestPrograms runs a program with the packed package in Node, Deno and Bun.
func TestPrograms(t *testing.T) {
	if !devtest.Long() {
		t.Log("web/test/simd.test.mjs does it in Node; short tests have no other")
		return
	}
	dir := fixture{folder: "program", install: true}.unpack(t, pack(t))
	for name, command := range map[string]string{
		"node": "node main.mjs simd", "deno": "npx deno run -A main.mjs simd", "bun": "npx bun run main.mjs simd",
		"node with webgpu": "VK_ICD_FILENAMES=/usr/lib/chromium/vk_swiftshader_icd.json node main.mjs webgpu simd",
	} {
		t.Run(name, func(t *testing.T) {
			if out := shell(t, dir, command); !strings.HasSuffix(out, "right\n") {
				t.Error(out)
			}
		})
	}
}

// pack packs the package as npm would publish it, and returns the archive.
func pack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shell(t, filepath.Join("..", "web"), "npm pack --silent --ignore-scripts --pack-destination "+dir)
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatal("npm packed", found, err)
	}
	return found[0]
}

// unpack copies the fixture to a folder of its own and installs the package there.
func (f fixture) unpack(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	from, err := filepath.Abs("fixtures")
	if err != nil {
		t.Fatal(err)
	}
	shell(t, dir, fmt.Sprintf("cp %s/app.mjs %[1]s/%s/* .", from, f.folder))
	if f.install {
		shell(t, dir, "npm install --silent --no-audit --no-fund --no-save "+archive)
	} else {
		shell(t, dir, "mkdir -p node_modules/sublet && tar xzf "+archive+" -C node_modules/sublet --strip-components=1")
	}
	return dir
}

// shell runs a command in a folder and returns what it prints.
func shell(t *testing.T, dir, command string) string {
	t.Helper()
	cmd := shellCommand(t, dir, command)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func shellCommand(t *testing.T, dir, command string) *exec.Cmd {
	t.Helper()
	tools, err := filepath.Abs(filepath.Join("..", "web", "node_modules", ".bin"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+os.Getenv("PATH")+string(os.PathListSeparator)+tools)
	return cmd
}

// handler serves what the fixture has become.
func (f fixture) handler(t *testing.T, dir string) http.Handler {
	t.Helper()
	if f.serve == "" {
		if f.build != "" {
			dir = filepath.Join(dir, "out")
		}
		return http.FileServer(http.Dir(dir))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close() // the server takes the port
	_, port, _ := net.SplitHostPort(address)
	cmd := shellCommand(t, dir, "exec "+f.serve)
	cmd.Env = append(cmd.Env, "PORT="+port)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if out, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s", out)
		}
	})
	for range 600 {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del("Content-Type") // which is the server's matter
		proxy.ServeHTTP(w, r)
	})
}

// visit opens the page and waits for its result.
func visit(t *testing.T, browser *chrome.Browser, files http.Handler, policy string) {
	t.Helper()
	result, threads := make(chan string, 1), answers{}
	url := chrome.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		if r.URL.Path == "/result" {
			body, _ := io.ReadAll(r.Body) // what is missing is no "right"
			result <- string(body)
			return
		}
		files.ServeHTTP(w, r)
		if r.Header.Get("Sec-Fetch-Dest") == "worker" && r.URL.Path != "/main.mjs" { // which is the page's own
			threads.add(r.URL.Path, w.Header().Get("Content-Type"))
		}
	}))
	browser.OpenFor(t, webTimeout, url+"/")
	select {
	case text := <-result:
		if text != "right" {
			t.Error(text)
		}
	case <-time.After(webTimeout):
		t.Error("no result")
	}
	if !threads.found("javascript") {
		t.Errorf("no thread among the workers %q", threads.list)
	}
}

// answers are paths and media types of what a server gave.
type answers struct {
	mu   sync.Mutex
	list []string
}

func (a *answers) add(path, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, path+" "+kind)
}

func (a *answers) found(parts ...string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.list {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}
