// SPDX-License-Identifier: Apache-2.0

package ctest

import "testing"

// testOpenGL hides the drivers of Vulkan: OpenGL stands in for them where the machine has it.
func testOpenGL(t *testing.T, bench *Bench) {
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(name, "/nonexistent.json")
	}
	for range 2 {
		list, err := bench.Driver.Adapters(t.Context())
		must(t, err)
		if len(list) == 0 {
			t.Fatal("no OpenGL: make test installs Mesa's")
		}
		if b := list[0].Info.Backend; b != "opengl" {
			t.Fatalf("got an adapter of %s", b)
		}
		for range 2 { // also after one was closed
			d, err := list[0].Open(t.Context())
			must(t, err)
			healthy(t, d, 1)
			must(t, d.Close())
		}
	}
}
