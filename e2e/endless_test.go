// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// TestWebEndless runs a kernel that does not end, in a browser of its own, which is ended with it: calls can be given up, another device
// works, and the page goes on. What waits for the kernel it keeps.
func TestWebEndless(t *testing.T) {
	p := openPage(t, chrome.StartOwn(t), "", webTimeout)
	p.RequireWebGPU()
	if failure := chrome.Eval[string](p, "run('endless', 'a kernel that does not end')"); failure != "" {
		t.Error(failure)
	}
}
