// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writePlot draws the loss over the training as an SVG picture.
func writePlot(w io.Writer, losses []float64, epochs int) error {
	const width, height, left, right, top, bottom = 720., 360., 52., 16., 34., 40.
	most := 0.1
	if len(losses) > 0 {
		most = max(most, slices.Max(losses))
	}
	x := func(t float64) float64 { return left + t*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - v/most*(height-top-bottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" font-family="system-ui, sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="%v" y="20" font-size="14" font-weight="600">Loss while the network learns</text>`+"\n", left)
	const lines = 5
	for i := range lines + 1 {
		v := most * float64(i) / lines
		fmt.Fprintf(&b, `<path d="M%v %.1fH%v" stroke="#dfe3ea"/><text x="%v" y="%.1f" text-anchor="end" fill="#626a78">%.2f</text>`+"\n",
			left, y(v), width-right, left-8, y(v)+4, v)
	}
	for e := 0; e <= epochs; e += max(1, epochs/8) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%v" text-anchor="middle" fill="#626a78">%d</text>`+"\n", x(float64(e)/float64(max(epochs, 1))), height-bottom+18, e)
	}
	fmt.Fprintf(&b, `<text x="%v" y="%v" text-anchor="end" fill="#626a78">epochs</text>`+"\n", width-right, height-6)
	var line []string
	for i, v := range losses {
		line = append(line, fmt.Sprintf("%.1f,%.1f", x((float64(i)+0.5)/float64(len(losses))), y(v)))
	}
	fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="#2f6fed" stroke-width="2" stroke-linejoin="round"/>`+"\n</svg>\n", strings.Join(line, " "))
	_, err := io.WriteString(w, b.String())
	return err
}
