// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mapfile_test

import (
	"os"
	"testing"
)

// unmapped asks what can be asked where there is no list of mappings: Windows does not shorten a mapped file.
func unmapped(t testing.TB, path string) {
	t.Helper()
	check(t, os.Truncate(path, 0))
}
