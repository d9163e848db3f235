// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

const edgesHelp = `Blur images, find their edges, and count how bright those are: eight tasks, of which seven are kernels of WGSL and one
is the host's. The images are a moving scene, or with --in the .png and .jpg files of a folder, in the order of their names and all of
one size. --out gets the edges as .png files.`

// edgesJob is what pipelines edges was told.
type edgesJob struct {
	frames      int
	size        string
	in, out     string
	sigma, gain float32
}

func (a *app) edgesCommand() *cobra.Command {
	var j edgesJob
	c := &cobra.Command{
		Use:     "edges",
		Short:   "Blur images, find their edges, and count those",
		Long:    edgesHelp,
		Example: "  pipelines edges --frames 60 --size 640x480 --devices 2 --trace trace.json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.edges(c.Context(), j) },
	}
	f := c.Flags()
	f.IntVar(&j.frames, "frames", 0, "how many frames (default: 60 of the scene, all of a folder)")
	f.StringVar(&j.size, "size", "640x480", "`WxH` of the scene")
	f.StringVar(&j.in, "in", "", "`FOLDER` with images")
	f.StringVar(&j.out, "out", "", "`FOLDER` for the edges")
	f.Float32Var(&j.sigma, "sigma", 1.5, "standard deviation of the blur in pixels, up to 16")
	f.Float32Var(&j.gain, "gain", 0.7, "what the gradient is multiplied by")
	return c
}

// frames are where images come from. read fills in number n and reports whether there is one.
type frames struct {
	width, height int
	read          func(n int, pixels []byte) (bool, error)
}

func (a *app) edges(ctx context.Context, j edgesJob) error {
	src, err := j.source()
	if err != nil {
		return err
	}
	if j.out != "" {
		if err := os.MkdirAll(j.out, 0o755); err != nil {
			return err
		}
	}
	devices, opts, closeAll, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	defer closeAll()
	e, err := pipelines.NewEdges(devices, pipelines.EdgesConfig{
		Width: src.width, Height: src.height, Sigma: j.sigma, Gain: j.gain, InFlight: a.flight,
	}, opts...)
	if err != nil {
		return err
	}
	defer func() { _ = e.Graph.Teardown() }() // the first error tells more
	shown, begin := 0, time.Now()
	var last pipelines.EdgesFrame
	err = e.Run(context.WithoutCancel(ctx), src.read, func(f *pipelines.EdgesFrame) (bool, error) {
		shown++
		last = *f
		return ctx.Err() == nil, j.save(src, f)
	})
	took := time.Since(begin)
	if err != nil {
		return err
	}
	if shown == 0 {
		return fmt.Errorf("%w: no frames", gpu.ErrInvalid)
	}
	fmt.Fprintf(a.out, "%d frames of %dx%d in %.3f s: %.1f frames/s\n", shown, src.width, src.height, took.Seconds(), float64(shown)/took.Seconds())
	fmt.Fprintf(a.out, "edges of the last: mean level %.1f, %.1f %% above the threshold %.0f\n\n", last.Mean, 100*last.Share, last.Threshold)
	return a.report(e.Graph, took)
}

// save writes the edges of a frame.
func (j edgesJob) save(src *frames, f *pipelines.EdgesFrame) error {
	if j.out == "" {
		return nil
	}
	m := &image.NRGBA{Pix: f.Edges, Stride: 4 * src.width, Rect: image.Rect(0, 0, src.width, src.height)}
	return write(filepath.Join(j.out, fmt.Sprintf("edges-%04d.png", f.Number)), func(w io.Writer) error { return png.Encode(w, m) })
}

// source finds the frames.
func (j edgesJob) source() (*frames, error) {
	if j.frames < 0 {
		return nil, fmt.Errorf("--frames %d: %w", j.frames, gpu.ErrInvalid)
	}
	if j.in != "" {
		return j.folder()
	}
	var s frames
	var rest string
	if n, _ := fmt.Sscanf(j.size+" ", "%dx%d%s", &s.width, &s.height, &rest); n != 2 || s.width < 1 || s.height < 1 {
		return nil, fmt.Errorf("--size %s: %w: want WxH", j.size, gpu.ErrInvalid)
	}
	count := j.frames
	if count == 0 {
		count = 60
	}
	s.read = func(n int, pixels []byte) (bool, error) {
		pipelines.Scene(pixels, s.width, s.height, n)
		return n < count, nil
	}
	return &s, nil
}
