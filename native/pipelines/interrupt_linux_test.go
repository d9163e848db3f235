// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// An interrupt ends a run in order: what was on its way is finished and the report printed.
func TestInterrupt(t *testing.T) {
	out := t.TempDir()
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(out, "edges-0003.png")); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT) // caught by the command
	}()
	has(t, must(t, "edges", "--frames", "1000000", "--size", "16x16", "--out", out), `^\d{1,4} frames of 16x16 `, "^Measure ")
}
