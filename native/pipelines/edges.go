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
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

const edgesHelp = `Blur images, find their edges, and count how bright those are: eight tasks, of which seven are kernels of WGSL and one
is the host's. The images are a moving scene; --out gets the edges as .png files.`

// edgesJob is what pipelines edges was told.
type edgesJob struct {
	*app
	pipelines.EdgesConfig
	frames    int
	size, out string
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
	f.IntVar(&j.frames, "frames", 60, "how many frames")
	f.StringVar(&j.size, "size", "640x480", "`WxH` of the scene")
	f.StringVar(&j.out, "out", "", "`FOLDER` for the edges")
	f.Float32Var(&j.Sigma, "sigma", 1.5, "standard deviation of the blur in pixels, up to 16")
	f.Float32Var(&j.Gain, "gain", 0.7, "what the gradient is multiplied by")
	return c
}

func (j *edgesJob) run(ctx context.Context) error {
	var rest string
	if n, _ := fmt.Sscanf(j.size+" ", "%dx%d%s", &j.Width, &j.Height, &rest); n != 2 || j.Width < 1 || j.Height < 1 {
		return fmt.Errorf("--size %s: %w: want WxH", j.size, gpu.ErrInvalid)
	}
	if j.frames < 1 {
		return fmt.Errorf("--frames %d: %w", j.frames, gpu.ErrInvalid)
	}
	if j.out != "" {
		if err := os.MkdirAll(j.out, 0o755); err != nil {
			return err
		}
	}
	devices, err := j.open(ctx, true)
	if err != nil {
		return err
	}
	j.InFlight = j.flight
	e, err := pipelines.NewEdges(devices, j.EdgesConfig, j.config)
	if err != nil {
		return err
	}
	defer func() { _ = e.Graph.Teardown() }() // the first error tells more
	scene := func(n int, pixels []byte) (bool, error) {
		samples.Scene(pixels, j.Width, j.Height, n)
		return n < j.frames, nil
	}
	shown, begin := 0, time.Now()
	var last pipelines.EdgesFrame
	err = e.Run(context.WithoutCancel(ctx), scene, func(f *pipelines.EdgesFrame) (bool, error) {
		shown++
		last = *f
		return ctx.Err() == nil, j.save(f)
	})
	took := max(time.Since(begin), time.Nanosecond) // clocks may be coarse
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
