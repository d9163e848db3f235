// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"os"
	"syscall"
	"testing"
)

// TestMain starts the program again with a single arena of glibc's malloc: the threads of Mesa otherwise spread what they free over so
// many that what is resident tells nothing for hours.
func TestMain(m *testing.M) {
	const name = "MALLOC_ARENA_MAX"
	if path, err := os.Executable(); err == nil && os.Getenv(name) == "" {
		_ = syscall.Exec(path, os.Args, append(os.Environ(), name+"=1"))
	}
	os.Exit(m.Run())
}
