// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"fmt"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// TestPrepared wants usual kernels to come with the program for pages without WebGPU, whatever the JavaScript engine can do, and to be what
// the page would compile.
func TestPrepared(t *testing.T) {
	browser, url := chrome.Start(t), chrome.Serve(t, webHandler(t))+"/"
	for threads := 1; threads <= 2; threads++ {
		for _, relaxed := range []bool{true, false} {
			t.Run(fmt.Sprintf("threads=%d,relaxed=%t", threads, relaxed), func(t *testing.T) {
				script := fmt.Sprintf("import('/tests/prepared.mjs').then(({prepared}) => prepared({threads: %d}, %t))", threads, relaxed)
				if n := chrome.Eval[int](browser.Open(t, url), script); n < 30 {
					t.Errorf("%d kernels", n)
				}
			})
		}
	}
}
