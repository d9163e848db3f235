// SPDX-License-Identifier: Apache-2.0

package pipelines_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/samples"
	"github.com/sublet-gpu/sublet/matrix/graph"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
)

// plane is an image in float64, for reference. Beyond its border it goes on as its outermost pixels.
type plane struct {
	w, h int
	v    []float64
}

func newPlane(w, h int, f func(x, y int) float64) plane {
	p := plane{w, h, make([]float64, w*h)}
	for i := range p.v {
		p.v[i] = f(i%w, i/w)
	}
	return p
}

func (p plane) at(x, y int) float64 {
	return p.v[min(max(y, 0), p.h-1)*p.w+min(max(x, 0), p.w-1)]
}

// levels are those that a painted plane has.
func (p plane) levels() []float64 {
	out := make([]float64, len(p.v))
	for i, v := range p.v {
		out[i] = min(max(v, 0), 1) * 255
	}
	return out
}

// reference computes what the pipeline does, in float64 and without separating the blur.
func reference(frame []byte, w, h int, sigma, gain float64) (blurred, edges []float64) {
	grey := newPlane(w, h, func(x, y int) float64 {
		c := frame[4*(y*w+x):]
		return (0.299*float64(c[0]) + 0.587*float64(c[1]) + 0.114*float64(c[2])) / 255
	})
	r := int(math.Ceil(3 * sigma))
	if sigma < 0.2 {
		r = 0
	}
	weight := func(d int) float64 { return math.Exp(-float64(d*d) / (2 * sigma * sigma)) }
	sum := 0.0
	for d := -r; d <= r; d++ {
		sum += weight(d)
	}
	blur := newPlane(w, h, func(x, y int) float64 {
		v := 0.0
		for dy := -r; dy <= r; dy++ {
			for dx := -r; dx <= r; dx++ {
				v += weight(dx) * weight(dy) * grey.at(x+dx, y+dy)
			}
		}
		return v / (sum * sum)
	})
	sobel := newPlane(w, h, func(x, y int) float64 {
		var gx, gy float64
		for d, k := range []float64{1, 2, 1} {
			gx += k * (blur.at(x+1, y+d-1) - blur.at(x-1, y+d-1))
			gy += k * (blur.at(x+d-1, y+1) - blur.at(x+d-1, y-1))
		}
		return gain * math.Hypot(gx, gy)
	})
	return blur.levels(), sobel.levels()
}

// painted fails unless an image is what the reference says, rounded to the nearest level, but for what float32 makes of halves.
func painted(t *testing.T, what string, image []byte, want []float64) {
	t.Helper()
	for i, v := range want {
		c := image[4*i : 4*i+4]
		if c[0] != c[1] || c[0] != c[2] || c[3] != 255 || math.Abs(float64(c[0])-v) > 0.501 {
			t.Fatalf("%s: pixel %d is %v, want %v", what, i, c, v)
		}
	}
}

// The results are those of the reference, in the order of the frames, on all sorts of devices, and nothing is left.
func TestEdges(t *testing.T) {
	const frames = 5
	for name, s := range setups(compiles(t)) {
		t.Run(name, func(t *testing.T) {
			devices := open(t, s.Drivers...)
			goroutines := runtime.NumGoroutine()
			c := pipelines.EdgesConfig{Width: 61, Height: 43, Sigma: 1.2, Gain: 0.9, InFlight: 3}
			e, err := pipelines.NewEdges(devices, c, s.Config)
			check(t, err)
			defer closes(t, e.Graph, goroutines)
			sent, seen := 0, 0
			for run := range 2 { // a graph that was stopped runs again
				begin := seen
				check(t, e.Run(t.Context(), func(n int, frame []byte) (bool, error) {
					if n != sent-begin {
						t.Errorf("frame %d is wanted after %d", n, sent)
					}
					if n == frames {
						return false, nil
					}
					if len(frame) != 4*c.Width*c.Height {
						t.Errorf("%d bytes", len(frame))
					}
					samples.Scene(frame, c.Width, c.Height, 5*sent)
					sent++
					return true, nil
				}, func(f *pipelines.EdgesFrame) (bool, error) {
					if f.Number != seen-begin || sent-seen > c.InFlight {
						t.Errorf("frame %d after %d, %d were sent", f.Number, seen, sent)
					}
					frame := make([]byte, 4*c.Width*c.Height)
					samples.Scene(frame, c.Width, c.Height, 5*seen)
					seen++
					blurred, edges := reference(frame, c.Width, c.Height, float64(c.Sigma), float64(c.Gain))
					painted(t, "blurred", f.Blurred, blurred)
					painted(t, "edges", f.Edges, edges)
					counted(t, f)
					return true, nil
				}))
				if sent != frames*(run+1) || seen != sent {
					t.Errorf("%d of %d frames", seen, sent)
				}
			}
			ran(t, e.Graph, 2*frames, 8)
		})
	}
}

// counted fails unless the numbers are those of the image.
func counted(t *testing.T, f *pipelines.EdgesFrame) {
	t.Helper()
	want, sum, n := make([]uint32, 256), 0.0, len(f.Edges)/4
	for i := range n {
		want[f.Edges[4*i]]++
		sum += float64(f.Edges[4*i])
	}
	if !slices.Equal(f.Histogram, want) {
		t.Errorf("%v, want %v", f.Histogram, want)
	}
	above := 0
	for i := range n {
		if float32(f.Edges[4*i]) > f.Threshold {
			above++
		}
	}
	if math.Abs(float64(f.Mean)-sum/float64(n)) > 1e-3 || math.Abs(float64(f.Share)-float64(above)/float64(n)) > 1e-6 || above == 0 || above == n {
		t.Errorf("mean %v, threshold %v, share %v, of %d are %d above", f.Mean, f.Threshold, f.Share, n, above)
	}
}

// ran fails unless every task ran for every item, and no channel had more than its capacity.
func ran(t *testing.T, g *graph.Graph, items, tasks int) {
	t.Helper()
	s := g.Stats()
	if len(s.Tasks) != tasks {
		t.Errorf("%d tasks", len(s.Tasks))
	}
	for _, k := range s.Tasks {
		if k.Dispatches != uint64(items) || k.Failures != 0 {
			t.Errorf("%s ran %d times for %d items, %d failures", k.Name, k.Dispatches, items, k.Failures)
		}
	}
	for _, c := range s.Channels {
		if c.Peak > c.Capacity {
			t.Errorf("%s had %d blocks", c.Name, c.Peak)
		}
	}
}

// Images that are the extreme cases of the kernels: of one pixel, one row, one column, without blur, all of one colour.
func TestEdgesSmall(t *testing.T) {
	for _, c := range []pipelines.EdgesConfig{
		{Width: 1, Height: 1}, {Width: 300, Height: 1, Sigma: 0.1}, {Width: 1, Height: 70, Sigma: 3}, {Width: 5, Height: 4, Sigma: 16},
	} {
		e, err := pipelines.NewEdges(open(t, compiles(t)), c)
		check(t, err)
		check(t, e.Run(t.Context(), func(n int, frame []byte) (bool, error) {
			for i := range frame {
				frame[i] = byte(200 - 40*n)
			}
			return n < 2, nil
		}, func(f *pipelines.EdgesFrame) (bool, error) {
			n := c.Width * c.Height
			if f.Blurred[0] != byte(200-40*f.Number) || f.Blurred[4*n-2] != f.Blurred[0] || f.Edges[0] != 0 || f.Histogram[0] != uint32(n) || f.Mean != 0 || f.Share != 0 {
				t.Errorf("%dx%d: %v, %v, %v", c.Width, c.Height, f.Blurred[:4], f.Edges[:4], f.Histogram[0])
			}
			return true, nil
		}))
		check(t, e.Graph.Teardown())
	}
}

var errMine = errors.New("mine")

// Whatever ends a run, it can run again and nothing is left.
func TestEdgesEnds(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	e, err := pipelines.NewEdges(open(t, compiles(t)), pipelines.EdgesConfig{Width: 40, Height: 30})
	check(t, err)
	defer closes(t, e.Graph, goroutines)
	frames := func(int, []byte) (bool, error) { return true, nil }
	count := 0
	few := func(*pipelines.EdgesFrame) (bool, error) { count++; return count%5 != 0, nil }

	check(t, e.Run(t.Context(), frames, few))
	if count < 5 || count > 5+4 { // those in flight are shown, too
		t.Errorf("%d frames", count)
	}
	isError(t, e.Run(t.Context(), func(n int, _ []byte) (bool, error) { return n < 3, map[bool]error{n == 3: errMine}[true] }, few), errMine)
	isError(t, e.Run(t.Context(), frames, func(*pipelines.EdgesFrame) (bool, error) { return true, errMine }), errMine)
	ctx, cancel := context.WithCancel(t.Context())
	isError(t, e.Run(ctx, frames, func(f *pipelines.EdgesFrame) (bool, error) {
		if f.Number == 3 {
			cancel()
		}
		return true, nil
	}), context.Canceled)
	// Somebody else stops the graph.
	stopped := make(chan error, 1)
	check(t, e.Run(t.Context(), frames, func(f *pipelines.EdgesFrame) (bool, error) {
		if f.Number == 2 {
			go func() { stopped <- e.Graph.Stop(context.Background()) }()
		}
		isError(t, e.Run(t.Context(), frames, few), graph.ErrBusy)
		return true, nil
	}))
	check(t, <-stopped)
	count = 0
	check(t, e.Run(t.Context(), frames, few))
}

// Hostile arguments are errors.
func TestEdgesErrors(t *testing.T) {
	device := open(t, compiles(t))
	inf := float32(math.Inf(1))
	for _, c := range []pipelines.EdgesConfig{
		{},
		{Width: -1, Height: 5},
		{Width: 5, Height: 0},
		{Width: math.MaxInt, Height: math.MaxInt},
		{Width: 1 << 13, Height: 1 << 13},
		{Width: 5, Height: 5, Sigma: -1},
		{Width: 5, Height: 5, Sigma: 17},
		{Width: 5, Height: 5, Sigma: inf - inf},
		{Width: 5, Height: 5, Gain: -1},
		{Width: 5, Height: 5, Gain: inf},
		{Width: 5, Height: 5, InFlight: -1},
		{Width: 5, Height: 5, InFlight: 65},
	} {
		_, err := pipelines.NewEdges(device, c)
		isError(t, err, gpu.ErrInvalid)
	}
	good := pipelines.EdgesConfig{Width: 5, Height: 5}
	_, err := pipelines.NewEdges(open(t, "cpu"), good)
	isError(t, err, graph.ErrAffinity)
	_, err = pipelines.NewEdges(nil, good)
	isError(t, err, graph.ErrAffinity)
	_, err = pipelines.NewEdges(device, good, graph.Config{Trace: -1})
	isError(t, err, gpu.ErrInvalid)
	e, err := pipelines.NewEdges(device, good)
	check(t, err)
	isError(t, e.Run(t.Context(), nil, nil), gpu.ErrInvalid)
	var none *pipelines.Edges
	isError(t, none.Run(t.Context(), nil, nil), gpu.ErrInvalid)
	isError(t, new(pipelines.Edges).Run(t.Context(), func(int, []byte) (bool, error) { return false, nil }, func(*pipelines.EdgesFrame) (bool, error) { return false, nil }), gpu.ErrInvalid)
	check(t, e.Graph.Teardown())
}

// The graph is as its picture says, and its trace has every task.
func TestEdgesSeen(t *testing.T) {
	e, err := pipelines.NewEdges(open(t, compiles(t)), pipelines.EdgesConfig{Width: 8, Height: 8}, graph.Config{Trace: 100, Sync: true})
	check(t, err)
	check(t, e.Run(t.Context(), func(n int, _ []byte) (bool, error) { return n < 2, nil }, func(*pipelines.EdgesFrame) (bool, error) { return true, nil }))
	var trace, dot strings.Builder
	check(t, e.Graph.WriteTrace(&trace))
	check(t, e.Graph.WriteDOT(&dot))
	for _, task := range []string{"Brightness", "BlurAcross", "BlurDown", "Sobel", "PaintBlur", "PaintEdges", "Histogram", "Measure"} {
		if strings.Count(trace.String(), `"name":"`+task+`"`) != 2 || !strings.Contains(dot.String(), task) {
			t.Errorf("%s is not in\n%s\n%s", task, trace.String(), dot.String())
		}
	}
	lanes := e.Graph.Stats().Devices
	if len(lanes) != 2 || lanes[0].Dispatches != 14 || lanes[1].Dispatches != 2 || lanes[0].Run <= 0 || lanes[1].Name != "host" {
		t.Errorf("%+v", lanes)
	}
	check(t, e.Graph.Teardown())
}
