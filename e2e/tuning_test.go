// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

func TestWebTuning(t *testing.T) { runOnWebGPU(t, "tuning") }

// TestWebTuningPages has pages time kernels and later pages compute by the results, unless these are off, damaged or kept from them. The first
// calls of a page are the same with and without.
func TestWebTuningPages(t *testing.T) {
	browser, url := chrome.Start(t), chrome.Serve(t, webHandler(t))+"/"
	on := func(device, name string) string {
		return chrome.Eval[string](browser.Open(t, url), `import('/tests/tuning.mjs').then(({run}) => run('`+name+`', {device: '`+device+`', threads: 1}))`)
	}
	for _, device := range []string{"webgpu", "simd"} {
		without := on(device, "firstCalls")
		for _, name := range []string{"first", "later", "off", "blocked", "broken", "later"} {
			if said := on(device, name); said != "" {
				t.Fatalf("%s, %s: %s", device, name, said)
			}
		}
		if with := on(device, "firstCalls"); with != without || strings.Contains(with, "databases") || !strings.Contains(with, map[string]string{"webgpu": "dispatchWorkgroups", "simd": ""}[device]) {
			t.Errorf("%s: the first calls were %q, and with timings %q", device, without, with)
		}
		if said := on(device, "forget"); said != "" {
			t.Errorf("%s, forget: %s", device, said)
		}
	}
}
