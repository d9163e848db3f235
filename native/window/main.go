// SPDX-License-Identifier: Apache-2.0

// Window draws what Sublet computes while it computes it: patterns of two substances that react and diffuse, some steps a frame. The
// window's shader reads the matrix where it is, in the buffer that [matrix.Dense.Handle] returns, on Sublet's own device: nothing is
// copied, and no byte moves between the CPU and the device, which the program prints in the end.
//
//	go run . [-frames N] [-png FILE]
//
// GLFW makes the window: its C source comes with github.com/go-gl/glfw and so needs no library of GLFW's on Windows, macOS and Linux,
// where it takes X11 or Wayland as it finds them, and the WebGPU binding (package wgpuglfw) knows how to make a surface of its windows.
// To build it, Linux needs the headers of both, or those of X11 only with -tags x11. So this program is a module of its own, and other
// users of Sublet need none of that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"github.com/go-gl/glfw/v3.4/glfw"

	"github.com/sublet-gpu/sublet/gpu"
)

func init() { runtime.LockOSThread() } // macOS has windows on the main thread only

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "window:", err)
		os.Exit(1)
	}
}

// run shows frames until the window is closed.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("window", flag.ContinueOnError)
	frames := flags.Int("frames", 0, "close the window after so many frames")
	file := flags.String("png", "", "write the last frame, drawn anew by the CPU, to a PNG file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := open(ctx)
	if err != nil {
		return err
	}
	n := 0
	for ; (*frames <= 0 || n < *frames) && !s.window.ShouldClose() && ctx.Err() == nil && err == nil; n++ {
		err = s.frame(ctx)
	}
	stats := s.dev.Stats()
	fmt.Fprintf(out, "%d frames of %dx%d on %s: %d kernels, %d bytes moved to the device, %d bytes back\n",
		n, size, size, s.dev.Info().Name, stats.Dispatches, stats.BytesUp, stats.BytesDown)
	if err == nil && *file != "" {
		err = s.save(*file)
	}
	return errors.Join(err, s.close())
}

// stepsPerFrame is how far the model goes between two frames, in runs of its program.
const stepsPerFrame = 8

// show is a window with a field in it.
type show struct {
	dev    *gpu.Device
	window *glfw.Window
	field  *field
	screen *screen
}

func open(ctx context.Context) (*show, error) {
	if err := glfw.Init(); err != nil {
		return nil, err
	}
	s := &show{}
	err := s.open(ctx)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *show) open(ctx context.Context) (err error) {
	glfw.WindowHint(glfw.ClientAPI, glfw.NoAPI)
	if s.window, err = glfw.CreateWindow(3*size, 3*size, "Sublet: reaction and diffusion", nil, nil); err != nil {
		return err
	}
	if s.dev, err = gpu.Open(ctx); err != nil {
		return err
	}
	if s.field, err = newField(ctx, s.dev); err != nil {
		return err
	}
	s.screen, err = newScreen(ctx, s.dev, s.window, s.field.v)
	return err
}

// frame goes on by some steps and shows the result.
func (s *show) frame(ctx context.Context) error {
	glfw.PollEvents()
	for range stepsPerFrame {
		if err := s.field.steps.Run(ctx); err != nil {
			return err
		}
	}
	return s.screen.draw(ctx, s.field.v)
}

// save writes what the window shows to a file. This reads the field back.
func (s *show) save(name string) error {
	values, err := s.field.v.Read(context.Background())
	if err != nil {
		return err
	}
	width, height := s.window.GetFramebufferSize()
	return writePNG(name, picture(values, width, height))
}

// close releases everything in the order that it depends on each other.
func (s *show) close() error {
	var err error
	if s.screen != nil {
		s.screen.release()
	}
	if s.field != nil {
		err = s.field.close()
	}
	err = errors.Join(err, s.dev.Close())
	if s.window != nil {
		s.window.Destroy()
	}
	glfw.Terminate()
	return err
}
