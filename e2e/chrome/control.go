// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"
)

// CollectGarbage makes the page's garbage collector run.
func (p *Page) CollectGarbage() {
	p.t.Helper()
	call(p, "collecting garbage", heapprofiler.CollectGarbage, cdp.Empty{})
}

// Dark makes the page believe that its user prefers dark colours.
func (p *Page) Dark() {
	p.t.Helper()
	call(p, "dark colours", emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
}

// Resize gives the page a window of that size in pixels.
func (p *Page) Resize(width, height int64) {
	p.t.Helper()
	call(p, "resizing", emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1,
	})
}

func call[P any](p *Page, what string, command cdp.Command[P, cdp.Empty], params P) {
	p.t.Helper()
	do := func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	}
	if err := chromedp.Do(p.ctx, chromedp.Func(do)); err != nil {
		p.t.Fatalf("chrome: %s: %v", what, p.why(err))
	}
}
