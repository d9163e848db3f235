// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // formats that image.Decode knows
	_ "image/png"
	"os"
	"path/filepath"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
)

// folder finds the images of a folder. The first one says how large all are.
func (j edgesJob) folder() (*frames, error) {
	entries, err := os.ReadDir(j.in) // sorted by name
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".png", ".jpg", ".jpeg":
			paths = append(paths, filepath.Join(j.in, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: %w: no .png or .jpg files", j.in, gpu.ErrInvalid)
	}
	if j.frames > 0 {
		paths = paths[:min(j.frames, len(paths))]
	}
	first, err := load(paths[0])
	if err != nil {
		return nil, err
	}
	size := first.Bounds().Size()
	read := func(n int, pixels []byte) (bool, error) {
		if n >= len(paths) {
			return false, nil
		}
		m, err := load(paths[n])
		if err != nil {
			return false, err
		}
		if got := m.Bounds().Size(); got != size {
			return false, fmt.Errorf("%s: %w: %dx%d, %s has %dx%d", paths[n], gpu.ErrInvalid, got.X, got.Y, paths[0], size.X, size.Y)
		}
		into := &image.RGBA{Pix: pixels, Stride: 4 * size.X, Rect: image.Rectangle{Max: size}}
		draw.Draw(into, into.Rect, m, m.Bounds().Min, draw.Src) // on black where it is not opaque
		return true, nil
	}
	return &frames{size.X, size.Y, read}, nil
}

func load(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	m, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
