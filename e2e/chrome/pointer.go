// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"github.com/chromedp/cdproto/input"
)

// Point is a place of the window, in pixels.
type Point struct{ X, Y float64 }

// Drag presses the mouse's left button at the first point, moves it over the others and lets it go.
func (p *Page) Drag(points ...Point) {
	p.t.Helper()
	kind, held := input.DispatchMouseEventTypeMousePressed, int64(1)
	send := func(at Point) {
		p.t.Helper()
		call(p, "the mouse", input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: kind, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, Buttons: held, ClickCount: 1,
		})
	}
	for _, at := range points {
		send(at)
		kind = input.DispatchMouseEventTypeMouseMoved
	}
	if len(points) > 0 {
		kind, held = input.DispatchMouseEventTypeMouseReleased, 0
		send(points[len(points)-1])
	}
}

// Touch puts a finger down at the first point, moves it over the others and lifts it.
func (p *Page) Touch(points ...Point) {
	p.t.Helper()
	kind := input.DispatchTouchEventTypeTouchStart
	for _, at := range points {
		call(p, "a finger", input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{{X: at.X, Y: at.Y}}})
		kind = input.DispatchTouchEventTypeTouchMove
	}
	call(p, "a finger", input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
}
