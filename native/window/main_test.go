// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestMain runs the tests on an X server of their own, without a screen.
func TestMain(m *testing.M) {
	code, err := onServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Xvfb (Debian: xvfb):", err)
		code = 1
	}
	os.Exit(code)
}

func onServer(run func() int) (code int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	server := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1024x1024x24", "-noreset", "-nolisten", "tcp")
	server.ExtraFiles = []*os.File{w}
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return 0, err
	}
	os.Setenv("DISPLAY", ":"+strings.TrimSpace(number))
	os.Unsetenv("WAYLAND_DISPLAY")
	return run(), nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T) *show {
	t.Helper()
	runtime.LockOSThread() // until the test ends
	s, err := open(t.Context())
	check(t, err)
	return s
}

// screenshot asks the X server for what the window shows.
func screenshot(t *testing.T, s *show, width, height int) *image.RGBA {
	t.Helper()
	xgb.Logger.SetOutput(io.Discard)
	c, err := xgb.NewConn()
	check(t, err)
	defer c.Close()
	reply, err := xproto.GetImage(c, xproto.ImageFormatZPixmap, xproto.Drawable(s.window.GetX11Window()),
		0, 0, uint16(width), uint16(height), 0xffffffff).Reply()
	check(t, err)
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		p := reply.Data[4*i:] // blue, green, red, nothing
		copy(img.Pix[4*i:], []uint8{p[2], p[1], p[0], 255})
	}
	return img
}

// distance is the largest difference of any colour of any pixel.
func distance(a, b *image.RGBA) (most int) {
	for i := range a.Pix {
		most = max(most, int(a.Pix[i])-int(b.Pix[i]), int(b.Pix[i])-int(a.Pix[i]))
	}
	return most
}

// shows wants the window to show the field as it is on the device. The X server gets a frame some time after it was drawn.
func shows(t *testing.T, s *show) *image.RGBA {
	t.Helper()
	values, err := s.field.v.Read(t.Context())
	check(t, err)
	width, height := s.window.GetFramebufferSize()
	want := picture(values, width, height)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := screenshot(t, s, width, height)
		d := distance(got, want)
		if d <= 3 {
			return got
		}
		if time.Now().After(deadline) {
			name := filepath.Join(os.TempDir(), "sublet-window.png")
			t.Fatalf("the window's pixels differ by up to %d from those of the matrix (%s: %v)", d, name, writePNG(name, got))
		}
	}
}

// TestWindow compares what an X server has of the window with the matrix behind it, on which no byte moves. SUBLET_WINDOW_PNG names a file
// for the picture.
func TestWindow(t *testing.T) {
	s := opened(t)
	frames := func(n int) {
		t.Helper()
		for range n {
			check(t, s.frame(t.Context()))
		}
	}
	frames(60)
	if now := s.dev.Stats(); now.BytesUp != 0 || now.BytesDown != 0 || now.Dispatches < 60*4*stepsPerFrame {
		t.Errorf("%d bytes up, %d down for 60 frames of %d kernels", now.BytesUp, now.BytesDown, now.Dispatches)
	}
	img := shows(t, s)
	dark, bright := 0, 0
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			switch y := color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y; {
			case y < 40:
				dark++
			case y > 160:
				bright++
			}
		}
	}
	if n := len(img.Pix) / 4; dark < n/20 || bright < n/20 {
		t.Errorf("%d of %d pixels are dark, %d bright: no pattern", dark, n, bright)
	}
	if name := os.Getenv("SUBLET_WINDOW_PNG"); name != "" {
		check(t, writePNG(name, img))
	}

	s.window.SetSize(500, 400) // the surface is outdated before the window's events tell it
	check(t, s.screen.draw(t.Context(), s.field.v))
	for w, h := s.window.GetFramebufferSize(); w != 500 || h != 400; w, h = s.window.GetFramebufferSize() {
		frames(1)
	}
	frames(2)
	shows(t, s)
	check(t, s.screen.renew()) // as if it had been lost
	frames(2)
	shows(t, s)
	check(t, s.close())
}

// TestClosedFirst closes the device before what the program made of it.
func TestClosedFirst(t *testing.T) {
	s := opened(t)
	check(t, s.frame(t.Context()))
	check(t, s.dev.Close())
	s.window.SetSize(300, 300)
	for range 3 {
		if err := s.frame(t.Context()); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a frame of a closed device: %v", err)
		}
		if err := s.screen.draw(t.Context(), s.field.v); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("drawing with a closed device: %v", err)
		}
	}
	check(t, s.close())
}

// TestOtherDriver wants an error of a device that has no buffers to draw from.
func TestOtherDriver(t *testing.T) {
	s := opened(t)
	dev, err := gpu.Open(t.Context(), gpu.WithDriver("cpu"))
	check(t, err)
	defer dev.Close()
	m, err := matrix.New[float32](dev, size, size)
	check(t, err)
	if _, err := newScreen(t.Context(), dev, s.window, m); err == nil {
		t.Error("the driver cpu draws to a window")
	}
	check(t, s.close())
}

func TestRun(t *testing.T) {
	runtime.LockOSThread()
	name := filepath.Join(t.TempDir(), "window.png")
	var out strings.Builder
	check(t, run(t.Context(), []string{"-frames", "3", "-png", name}, &out))
	if !strings.HasPrefix(out.String(), "3 frames ") || !strings.Contains(out.String(), " 0 bytes moved to the device, 0 bytes back") {
		t.Error(out.String())
	}
	f, err := os.Open(name)
	check(t, err)
	defer f.Close()
	if img, err := png.Decode(f); err != nil || img.Bounds().Dx() != 3*size {
		t.Errorf("the picture: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := run(ended, nil, &out); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"-frames", "x"}, &out); err == nil {
		t.Error("x frames")
	}
}
