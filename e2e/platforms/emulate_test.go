// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package platforms

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// platform is one that this machine is not, with a C compiler for it and what runs its programs.
type platform struct {
	goos, goarch, cc string
	tools            []string
	start            func(t *testing.T) runner
}

// runner makes the command that runs a program of a platform.
type runner = func(ctx context.Context, program string, args ...string) *exec.Cmd

const mingw = "x86_64-w64-mingw32-gcc"

var (
	windows = platform{"windows", "amd64", mingw, []string{"wine", "wineboot", "wineserver", "Xvfb"}, wine}
	arm64   = platform{"linux", "arm64", "aarch64-linux-gnu-gcc", []string{"qemu-aarch64"}, qemu}
)

const howTo = "native/setup/setup.sh long installs it, or says what to install"

func (p platform) wantTools(t *testing.T) {
	t.Helper()
	for _, tool := range append(p.tools, p.cc) {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("no %s: %s", tool, howTo)
		}
	}
}

// wine starts Wine with a fresh disk. Its Vulkan comes with its screen, hence Xvfb. It passes some adapter off as one of
// Direct3D 12, but cannot compile shaders for it.
func wine(t *testing.T) runner {
	prefix := t.TempDir()
	env := append(os.Environ(), "DISPLAY="+screen(t), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml,d3d12=")
	command := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = env
		return cmd
	}
	t.Cleanup(func() { // its servers write to the disk until they have ended
		ctx := context.Background()
		_ = command(ctx, "wineserver", "-k").Run() // fails if there is none any more
		check(t, command(ctx, "wineserver", "-w").Run())
	})
	check(t, command(t.Context(), "wineboot", "--init").Run())
	library := filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if _, err := os.Stat(library); errors.Is(err, fs.ErrNotExist) { // before Wine 9
		out, err := exec.CommandContext(t.Context(), mingw, "-shared", "-o", library, "testdata/random.c", "-ladvapi32").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return func(ctx context.Context, program string, args ...string) *exec.Cmd {
		return command(ctx, "wine", append([]string{program}, args...)...)
	}
}

// screen starts an X server without a screen, and returns its name.
func screen(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe()
	check(t, err)
	defer r.Close()
	server := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "640x480x24", "-nolisten", "tcp")
	server.ExtraFiles = []*os.File{w}
	err = server.Start()
	_ = w.Close()
	check(t, err)
	t.Cleanup(func() {
		check(t, server.Process.Kill())
		_ = server.Wait() // killed
	})
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("Xvfb does not start: %v", err)
	}
	return ":" + strings.TrimSpace(number)
}

// qemu runs programs with the libraries that native/setup/setup.sh long puts into .cache/arm64.
func qemu(t *testing.T) runner {
	root, err := filepath.Abs(filepath.Join("..", "..", ".cache", "arm64"))
	check(t, err)
	drivers, err := filepath.Glob(filepath.Join(root, "usr", "share", "vulkan", "icd.d", "lvp_icd*.json"))
	check(t, err)
	if len(drivers) != 1 {
		t.Fatalf("no Mesa in %s: %s", root, howTo)
	}
	env := append(os.Environ(), "VK_DRIVER_FILES="+drivers[0], "XDG_RUNTIME_DIR="+cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), "/tmp"))
	return func(ctx context.Context, program string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "qemu-aarch64", append([]string{"-L", root, program}, args...)...)
		cmd.Env = env
		return cmd
	}
}
