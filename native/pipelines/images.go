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

// folder finds the images of a folder. The first one says how large all are; it is checked before the rest is read.
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
	var s frames
	if s.width, s.height, err = measure(paths[0]); err != nil {
		return nil, err
	}
	s.read = func(n int, pixels []byte) (bool, error) {
		if n >= len(paths) {
			return false, nil
		}
		w, h, err := measure(paths[n])
		if err != nil {
			return false, err
		}
		if w != s.width || h != s.height {
			return false, fmt.Errorf("%s: %w: %dx%d, %s has %dx%d", paths[n], gpu.ErrInvalid, w, h, paths[0], s.width, s.height)
		}
		return true, decode(paths[n], &image.RGBA{Pix: pixels, Stride: 4 * w, Rect: image.Rect(0, 0, w, h)})
	}
	return &s, nil
}

// measure reads the size of an image and nothing else.
func measure(path string) (width, height int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	c, _, err := image.DecodeConfig(f)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	return c.Width, c.Height, nil
}

// decode reads an image, on black where it is not opaque.
func decode(path string, into *image.RGBA) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	m, _, err := image.Decode(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	draw.Draw(into, into.Rect, m, m.Bounds().Min, draw.Src)
	return nil
}
