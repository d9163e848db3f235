// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
)

// TestLeftFiles kills a process in the middle of writing. The next one that writes to the folder removes what it left, and nothing of
// processes that are alive, nor what only looks like it.
func TestLeftFiles(t *testing.T) {
	const mark = "SUBLET_TEST_LEAVES"
	if dir := os.Getenv(mark); dir != "" { // the process that is killed
		a := &app{}
		w, err := a.create(filepath.Join(dir, "out.npy"))
		if err == nil {
			_, err = io.WriteString(w, "half")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("written\n")
		time.Sleep(time.Hour) // unlike an empty select, no deadlock for Go's runtime
	}
	dir := t.TempDir()
	leave := func() *exec.Cmd {
		c := exec.Command(os.Args[0], "-test.run=^TestLeftFiles$")
		c.Env = append(os.Environ(), mark+"="+dir)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err == nil {
			_, err = bufio.NewReader(out).ReadString('\n')
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	kill := func(c *exec.Cmd) { _, _ = c.Process.Kill(), c.Wait() }
	temps := func() int {
		list, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if err := os.WriteFile(filepath.Join(dir, tempPrefix+"notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead, alive := leave(), leave()
	if n := temps(); n != 3 {
		t.Fatalf("%d files", n)
	}
	kill(dead)
	in, out := save(t, npy.Header{Type: dtype.Float32, Shape: []int64{1, 2}}, []float32{1, 2}), filepath.Join(dir, "sum.npy")
	must(t, "eval", "A+A", "-i", "A="+in, "-o", out)
	if n := temps(); n != 2 {
		t.Errorf("%d files, want the notes and that of the process which is alive", n)
	}
	kill(alive)
	must(t, "eval", "A+A", "-i", "A="+in, "-o", out)
	if n := temps(); n != 1 {
		t.Errorf("%d files, want the notes", n)
	}
	if _, v := read[float32](t, out); len(v) != 2 || v[1] != 4 {
		t.Errorf("%v", v)
	}
}

// TestProcessEnded holds a handle to a process that has ended.
func TestProcessEnded(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	held, err := os.FindProcess(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release() }()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if !processEnded(held.Pid) {
		t.Error("an ended process passes for a running one")
	}
	if processEnded(os.Getpid()) {
		t.Error("a running process passes for an ended one")
	}
}

// TestInputsClosed wants files that are read to be closed before others get their names: Windows replaces no open file.
func TestInputsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	a := &app{out: io.Discard, progress: &progress{bar: silent}}
	defer a.close()
	if _, err := a.create(path); err != nil {
		t.Fatal(err)
	}
	closed := 0
	a.closers = append(a.closers, func() {
		closed++
		if _, err := os.Stat(path); err == nil {
			t.Error("closed too late")
		}
	})
	if err := a.report(nil, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil || closed != 1 {
		t.Errorf("%v, closed %d times", err, closed)
	}
}
