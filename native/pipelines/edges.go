// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // a format that image.Decode knows
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

const edgesHelp = `Blur images, find their edges, and count how bright those are: eight tasks, of which seven are kernels of WGSL and one
is the host's. The images are a moving scene, or with --in the .png and .jpg files of a folder, in the order of their names and all of
one size. --out gets the edges as .png files.`

// edgesJob is what pipelines edges was told.
type edgesJob struct {
	*app
	pipelines.EdgesConfig
	frames        int
	size, in, out string
	read          func(n int, pixels []byte) (bool, error) // fills in frame n and reports whether there is one
}

func (a *app) edgesCommand() *cobra.Command {
	j := edgesJob{app: a}
	c := &cobra.Command{
		Use:     "edges",
		Short:   "Blur images, find their edges, and count those",
		Long:    edgesHelp,
		Example: "  pipelines edges --frames 60 --size 640x480 --devices 2 --trace trace.json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return j.run(c.Context()) },
	}
	f := c.Flags()
	f.IntVar(&j.frames, "frames", 0, "how many frames (default: 60 of the scene, all of a folder)")
	f.StringVar(&j.size, "size", "640x480", "`WxH` of the scene")
	f.StringVar(&j.in, "in", "", "`FOLDER` with images")
	f.StringVar(&j.out, "out", "", "`FOLDER` for the edges")
	f.Float32Var(&j.Sigma, "sigma", 1.5, "standard deviation of the blur in pixels, up to 16")
	f.Float32Var(&j.Gain, "gain", 0.7, "what the gradient is multiplied by")
	return c
}

func (j *edgesJob) run(ctx context.Context) error {
	if err := j.source(); err != nil {
		return err
	}
	if j.out != "" {
		if err := os.MkdirAll(j.out, 0o755); err != nil {
			return err
		}
	}
	devices, closeAll, err := j.open(ctx, true)
	if err != nil {
		return err
	}
	defer closeAll()
	j.InFlight = j.flight
	e, err := pipelines.NewEdges(devices, j.EdgesConfig, j.config)
	if err != nil {
		return err
	}
	defer func() { _ = e.Graph.Teardown() }() // the first error tells more
	shown, begin := 0, time.Now()
	var last pipelines.EdgesFrame
	err = e.Run(context.WithoutCancel(ctx), j.read, func(f *pipelines.EdgesFrame) (bool, error) {
		shown++
		last = *f
		return ctx.Err() == nil, j.save(f)
	})
	took := time.Since(begin)
	if err != nil {
		return err
	}
	fmt.Fprintf(j.app.out, "%d frames of %dx%d in %.3f s: %.1f frames/s\n", shown, j.Width, j.Height, took.Seconds(), float64(shown)/took.Seconds())
	fmt.Fprintf(j.app.out, "edges of the last: mean level %.1f, %.1f %% above the threshold %.0f\n\n", last.Mean, 100*last.Share, last.Threshold)
	return j.report(e.Graph, took)
}

// save writes the edges of a frame.
func (j *edgesJob) save(f *pipelines.EdgesFrame) error {
	if j.out == "" {
		return nil
	}
	m := &image.NRGBA{Pix: f.Edges, Stride: 4 * j.Width, Rect: image.Rect(0, 0, j.Width, j.Height)}
	return write(filepath.Join(j.out, fmt.Sprintf("edges-%04d.png", f.Number)), func(w io.Writer) error { return png.Encode(w, m) })
}

// source finds the frames.
func (j *edgesJob) source() error {
	if j.frames < 0 {
		return fmt.Errorf("--frames %d: %w", j.frames, gpu.ErrInvalid)
	}
	if j.in != "" {
		return j.folder()
	}
	var rest string
	if n, _ := fmt.Sscanf(j.size+" ", "%dx%d%s", &j.Width, &j.Height, &rest); n != 2 || j.Width < 1 || j.Height < 1 {
		return fmt.Errorf("--size %s: %w: want WxH", j.size, gpu.ErrInvalid)
	}
	j.read = func(n int, pixels []byte) (bool, error) {
		samples.Scene(pixels, j.Width, j.Height, n)
		return n < cmp.Or(j.frames, 60), nil
	}
	return nil
}

// folder finds the images of a folder. The first one says how large all are.
func (j *edgesJob) folder() error {
	entries, err := os.ReadDir(j.in) // sorted by name
	if err != nil {
		return err
	}
	var paths []string
	for _, e := range entries {
		if slices.Contains([]string{".png", ".jpg", ".jpeg"}, strings.ToLower(filepath.Ext(e.Name()))) {
			paths = append(paths, filepath.Join(j.in, e.Name()))
		}
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s: %w: no .png or .jpg files", j.in, gpu.ErrInvalid)
	}
	if j.frames > 0 {
		paths = paths[:min(j.frames, len(paths))]
	}
	first, err := load(paths[0])
	if err != nil {
		return err
	}
	size := first.Bounds().Size()
	j.Width, j.Height = size.X, size.Y
	j.read = func(n int, pixels []byte) (bool, error) {
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
	return nil
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
