// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// secondMark is set where there is a second adapter.
const secondMark = "SUBLET_TEST_SECOND_ADAPTER"

// secondDrivers are Vulkan drivers that can be added to those of the system: Mesa's once more, or SwiftShader, as Chromium has it.
var secondDrivers = []string{
	"/usr/share/vulkan/icd.d/lvp_icd*.json",
	"/usr/lib/chromium*/vk_swiftshader_icd.json",
	"/opt/google/chrome*/vk_swiftshader_icd.json",
}

// WithSecond runs a test in a process of its own, in which Vulkan has one more software adapter than in this one.
// There it returns true. Here it returns false when that process has ended; the test then does nothing.
// Vulkan reads the variable when its first instance is made, hence the process. It is for tests on Linux.
func WithSecond(t *testing.T) bool {
	t.Helper()
	if os.Getenv(secondMark) != "" {
		return true
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
	child.Env = append(os.Environ(), secondMark+"=1", withDriver(secondDriver(t)))
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("with a second adapter: %v\n%s", err, out)
	}
	return false
}

// withDriver is a variable that adds a driver to those of the system, or to those that the user has named.
func withDriver(path string) string {
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		if list := os.Getenv(name); list != "" {
			return name + "=" + list + string(os.PathListSeparator) + path
		}
	}
	return "VK_ADD_DRIVER_FILES=" + path
}

// secondDriver returns the description of a driver. A copy of one that the system has counts as another.
func secondDriver(t *testing.T) string {
	t.Helper()
	for _, pattern := range secondDrivers {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			continue
		}
		if filepath.Dir(found[0]) != "/usr/share/vulkan/icd.d" {
			return found[0]
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "second.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Fatalf("no Vulkan driver in %q", secondDrivers)
	return ""
}
