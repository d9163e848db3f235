// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// TestWebEndless runs a kernel that does not end, in a browser of its own, which is ended with it: calls can be given up, another device
// works, and the page goes on.
func TestWebEndless(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	runWeb(t, p, "endless")
}
