// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fifo makes a named pipe.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.npy")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSilentInput reads pipes whose writers do not come, or do not write, until the context ends.
func TestSilentInput(t *testing.T) {
	path, silent := fifo(t), fifo(t)
	w, err := os.OpenFile(silent, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdin, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // ends the commands that still wait for an input
		late, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Error(err)
		}
		_, _, _, _ = late.Close(), w.Close(), writer.Close(), stdin.Close()
	})
	a := &app{in: stdin, progress: newProgress(io.Discard)}
	for name, read := range map[string]func(ctx context.Context) error{
		"no writer":      func(ctx context.Context) error { return second(a.readArray(ctx, path, false, nil)) },
		"a silent one":   func(ctx context.Context) error { return second(a.readArray(ctx, silent, false, nil)) },
		"a source":       func(ctx context.Context) error { return second((&runTask{app: a, file: path}).readSource(ctx)) },
		"standard input": func(ctx context.Context) error { return (&archive{app: a, path: standard, from: "params"}).open(ctx) },
		"an archive":     func(ctx context.Context) error { return (&archive{app: a, path: path, from: "params"}).open(ctx) },
		"two passes": func(ctx context.Context) error {
			return (&archive{app: a, path: silent, from: "params", twice: true}).open(ctx)
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan error, 1)
		go func() { done <- read(ctx) }()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute): // only a hang takes that long
			t.Fatalf("%s: it does not end", name)
		}
	}
	a.close()
}

// TestSignals ends a process in the middle of its work, which removes what it began to write.
func TestSignals(t *testing.T) {
	caught := make(chan os.Signal, 1) // a process inherits that signals are ignored, as under nohup, but not that they are caught
	signal.Notify(caught, syscall.SIGHUP, os.Interrupt)
	defer signal.Stop(caught)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM, os.Interrupt} {
		dir := t.TempDir()
		c := exec.Command(os.Args[0], "eval", "A", "-i", "A="+fifo(t), "-o", filepath.Join(dir, "out.npy"))
		c.Env = append(os.Environ(), asCommand+"=1")
		var text strings.Builder
		c.Stderr = &text
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		temps := func() []string {
			list, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		ended := make(chan struct{})
		go func() { _ = c.Wait(); close(ended) }() // the state tells
		for limit := time.Now().Add(time.Minute); len(temps()) == 0 && time.Now().Before(limit); {
			time.Sleep(5 * time.Millisecond)
		}
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = c.Process.Kill()
			<-ended
			t.Fatalf("%v: it does not end", s)
		}
		if left := temps(); len(left) > 0 || c.ProcessState.ExitCode() != 1 || !strings.Contains(text.String(), "canceled") {
			t.Errorf("%v: %v, %q, left behind: %v", s, c.ProcessState, text.String(), left)
		}
	}
}
