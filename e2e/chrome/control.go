// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
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
	p.Prefer("prefers-color-scheme", "dark")
}

// Prefer makes the page believe that its user prefers something, by a media feature and its value, and nothing else.
func (p *Page) Prefer(feature, value string) {
	p.t.Helper()
	call(p, "preferring "+value, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	})
}

// Type replaces what a field holds by a text, as a user would who selects everything in it and types.
func (p *Page) Type(id, text string) {
	p.t.Helper()
	p.pick(id)
	if text == "" {
		p.press("Delete", 46, 0)
		return
	}
	call(p, "typing into "+id, input.InsertText, input.InsertTextParams{Text: text})
}

// Submit presses Ctrl and Enter in a field.
func (p *Page) Submit(id string) {
	p.t.Helper()
	Eval[bool](p, "(document.getElementById('"+id+"').focus(), true)")
	const control = 2
	p.press("Enter", 13, control)
}

// pick selects everything in a field.
func (p *Page) pick(id string) {
	p.t.Helper()
	if !Eval[bool](p, "(document.getElementById('"+id+"').focus(), document.getElementById('"+id+"').select(), document.activeElement.id === '"+id+"')") {
		p.t.Fatalf("chrome: %s cannot be typed into", id)
	}
}

func (p *Page) press(key string, code, modifiers int64) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		call(p, "pressing "+key, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: kind, Key: key, Code: key, WindowsVirtualKeyCode: code, Modifiers: modifiers,
		})
	}
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
