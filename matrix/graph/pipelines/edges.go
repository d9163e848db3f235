// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	_ "embed" // the kernels
	"encoding/binary"
	"errors"
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

//go:embed edges.wgsl
var edgesWGSL string

//go:embed histogram.wgsl
var histogramWGSL string

// levels is how many levels of brightness a histogram has.
const levels = 256

// Frames have at most so many pixels, so that no buffer is beyond what devices commonly allow.
const maxPixels = 1 << 25

// maxSigma keeps kernels short.
const maxSigma = 16

// EdgesConfig says what [Edges] works on.
type EdgesConfig struct {
	Width, Height int     // of frames, in pixels
	Sigma         float32 // standard deviation of the blur in pixels, up to 16; 0 stands for 1.5, less than 0.2 does not blur
	Gain          float32 // what the length of the gradient is multiplied by; 0 stands for 0.7
	InFlight      int     // how many frames are on their way at once, up to 64; 0 stands for 4
}

// Edges is a pipeline from images to the histogram of their edges:
//
//	frame -> Brightness -> BlurAcross -> BlurDown -> Sobel -> PaintEdges -> Histogram -> Measure -> report
//	                                        |                     |             |
//	                                    PaintBlur -> blurred    edges       histogram
//
// All but Measure, which is the host's, are kernels of WGSL and need a device that compiles them. Several frames are on their way at
// once, on all devices.
type Edges struct {
	pipeline
	c       EdgesConfig
	weights []float32 // of the blur
	frame   *graph.Template
	in      *graph.Input
	outs    [4]*graph.Output // blurred, edges, histogram, report
	result  EdgesFrame
	report  [3]float32
}

// EdgesFrame is what came of one frame. Its slices serve again once the function that got it has returned.
type EdgesFrame struct {
	Number    int
	Blurred   []byte   // red, green, blue and opacity of each pixel, row by row
	Edges     []byte   // the same
	Histogram []uint32 // how many pixels of Edges have each of the 256 levels
	Mean      float32  // level of Edges
	Threshold float32  // level that best divides Edges in two classes: Otsu, "A Threshold Selection Method from Gray-Level Histograms", 1979
	Share     float32  // of the pixels that are above it
}

// NewEdges makes the pipeline on the devices, which stay the caller's. A size or a number that makes no sense is
// [gpu.ErrInvalid]; without a device that compiles WGSL it is [graph.ErrAffinity].
func NewEdges(devices []*gpu.Device, c EdgesConfig, opts ...graph.Option) (*Edges, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	n := c.Width * c.Height
	e := &Edges{c: c, weights: gaussian(float64(c.Sigma))}
	e.result = EdgesFrame{Blurred: make([]byte, 4*n), Edges: make([]byte, 4*n), Histogram: make([]uint32, levels)}
	if err := e.init(devices, opts, e.build); err != nil {
		return nil, err
	}
	return e, nil
}

func (c *EdgesConfig) complete() error {
	const op = "NewEdges"
	if c.Sigma == 0 {
		c.Sigma = 1.5
	}
	if c.Gain == 0 {
		c.Gain = 0.7
	}
	if c.InFlight == 0 {
		c.InFlight = defaultInFlight
	}
	switch {
	case c.Width < 1 || c.Height < 1 || c.Width > maxPixels || c.Height > maxPixels/c.Width:
		return fail(op, gpu.ErrInvalid, "frames of ", itoa(c.Width), "x", itoa(c.Height))
	case !(c.Sigma > 0 && c.Sigma <= maxSigma):
		return fail(op, gpu.ErrInvalid, "a blur of less than nothing, or of more than 16 pixels")
	case !(c.Gain > 0 && c.Gain <= math.MaxFloat32):
		return fail(op, gpu.ErrInvalid, "a gain that is not positive")
	case c.InFlight < 1 || c.InFlight > maxInFlight:
		return fail(op, gpu.ErrInvalid, itoa(c.InFlight), " frames in flight")
	}
	return nil
}

// gaussian returns the weights of a blur, which sum up to one. Beyond three standard deviations there is next to nothing.
func gaussian(sigma float64) []float32 {
	if sigma < 0.2 {
		return []float32{0, 1, 0} // one weight alone would be a number, not an array
	}
	radius := int(math.Ceil(3 * sigma))
	weights, sum := make([]float64, 2*radius+1), 0.0
	for i := range weights {
		d := float64(i-radius) / sigma
		weights[i] = math.Exp(-d * d / 2)
		sum += weights[i]
	}
	out := make([]float32, len(weights))
	for i, w := range weights {
		out[i] = float32(w / sum)
	}
	return out
}

// build adds the tasks.
func (e *Edges) build() {
	g, c := e.Graph, e.c
	e.frame = g.Template("frame", c.Height, c.Width, matrix.Uint32, graph.Format{Pool: 2 * c.InFlight})
	image := g.Template("image", c.Height, c.Width, matrix.Float32, graph.Format{Pool: 4 * c.InFlight})
	counts := g.Template("counts", 1, levels, matrix.Uint32)
	report := g.Template("report", 1, len(e.report), matrix.Float32)
	word, number := g.Template("word", 1, 1, matrix.Uint32), g.Template("number", 1, 1, matrix.Float32)

	all := func(*graph.Dispatch) [3]int { return [3]int{c.Width, c.Height, 1} }
	width, height := graph.Sticky("width", word), graph.Sticky("height", word)
	kernel := func(name, function string, ports ...graph.TaskOption) *graph.Task {
		return g.Task(name, graph.Kernel(edgesWGSL, function, all), ports...)
	}
	blur := func(name, function string) *graph.Task {
		weights := graph.Sticky("weights", g.Template("weights", 1, len(e.weights), matrix.Float32))
		return kernel(name, function, graph.In("image", image), width, height, weights, graph.Sticky("taps", word), graph.Out("blurred", image))
	}
	paint := func(name string) *graph.Task {
		return g.Task(name, graph.Kernel(edgesWGSL, "paint", nil), graph.In("image", image), graph.Out("pixels", e.frame))
	}
	brightness := kernel("Brightness", "brightness", graph.In("frame", e.frame), width, graph.Out("grey", image))
	across, down := blur("BlurAcross", "blur_across"), blur("BlurDown", "blur_down")
	sobel := kernel("Sobel", "sobel", graph.In("image", image), width, height, graph.Sticky("gain", number), graph.Out("edges", image))
	paintBlur, paintEdges := paint("PaintBlur"), paint("PaintEdges")
	groups := (c.Width*c.Height + levels*16 - 1) / (levels * 16)
	histogram := g.Task("Histogram", graph.Kernel(histogramWGSL, "histogram", func(*graph.Dispatch) [3]int {
		return [3]int{groups * levels, 1, 1}
	}), graph.In("pixels", e.frame), graph.Out("counts", counts))
	measure := g.Task("Measure", graph.Host(measure), graph.In("counts", counts), graph.Out("report", report))

	flight := graph.Channel{Capacity: c.InFlight}
	e.in = g.Input("frame", brightness.Port("frame"), flight)
	g.Connect(brightness.Port("grey"), across.Port("image"))
	g.Connect(across.Port("blurred"), down.Port("image"))
	g.Connect(down.Port("blurred"), sobel.Port("image"))
	g.Connect(down.Port("blurred"), paintBlur.Port("image"))
	g.Connect(sobel.Port("edges"), paintEdges.Port("image"))
	g.Connect(paintEdges.Port("pixels"), histogram.Port("pixels"))
	g.Connect(histogram.Port("counts"), measure.Port("counts"))
	e.outs = [...]*graph.Output{
		g.Output("blurred", paintBlur.Port("pixels"), flight),
		g.Output("edges", paintEdges.Port("pixels"), flight),
		g.Output("histogram", histogram.Port("counts"), flight),
		g.Output("report", measure.Port("report"), flight),
	}
	e.constants = func() error { return e.set(brightness, across, down, sobel) }
}

// set sets the sticky inputs of tasks.
func (e *Edges) set(tasks ...*graph.Task) error {
	var errs []error
	for _, t := range tasks {
		for name, v := range map[string]int{"width": e.c.Width, "height": e.c.Height, "taps": len(e.weights)} {
			if p := t.Port(name); p != nil {
				errs = append(errs, graph.SetValues(p, uint32(v)))
			}
		}
		for name, v := range map[string][]float32{"weights": e.weights, "gain": {e.c.Gain}} {
			if p := t.Port(name); p != nil {
				errs = append(errs, graph.SetValues(p, v...))
			}
		}
	}
	return errors.Join(errs...)
}

// measure is the task that looks at the histogram on the host.
func measure(d *graph.Dispatch) error {
	var counts [levels]uint32
	err := d.View("counts", func(mem []byte) error {
		for i := range counts {
			counts[i] = binary.LittleEndian.Uint32(mem[4*i:])
		}
		return nil
	})
	if err != nil {
		return err
	}
	mean, threshold, share := divide(&counts)
	return d.Update("report", func(mem []byte) error {
		for i, v := range [...]float32{mean, threshold, share} {
			binary.LittleEndian.PutUint32(mem[4*i:], math.Float32bits(v))
		}
		return nil
	})
}

// divide finds the level for which the variance between the pixels above it and the others is largest.
func divide(counts *[levels]uint32) (mean, threshold, share float32) {
	var total, sum float64
	for level, n := range counts {
		total += float64(n)
		sum += float64(level) * float64(n)
	}
	var below, belowSum, best float64
	for level, n := range counts {
		below += float64(n)
		belowSum += float64(level) * float64(n)
		above := total - below
		if below == 0 || above == 0 {
			continue
		}
		d := belowSum/below - (sum-belowSum)/above
		if between := below * above * d * d; between > best {
			best, threshold, share = between, float32(level), float32(above/total)
		}
	}
	return float32(sum / total), threshold, share
}

// Run sends frames through the pipeline until next has no more or show has seen enough, and then stops the graph. next fills in
// frame n, with red, green, blue and opacity of each pixel, and reports whether there is one; show gets the results in the order
// of the frames and reports whether it wants more. An error of either, or of a task, ends it. One Run at a time: else it is
// [graph.ErrBusy].
func (e *Edges) Run(ctx context.Context, next func(n int, frame []byte) (bool, error), show func(*EdgesFrame) (bool, error)) error {
	if e == nil || e.Graph == nil || ctx == nil || next == nil || show == nil {
		return fail("Run", gpu.ErrInvalid, "nil argument")
	}
	if err := e.claim(); err != nil {
		return err
	}
	defer e.busy.Store(false)
	send := func(n int, stop bool) (sent, more bool, err error) {
		if stop {
			return false, false, nil
		}
		return e.send(ctx, n, next)
	}
	return e.stream(ctx, e.c.InFlight, send, func(n int) (bool, error) {
		if err := e.take(ctx, n); err != nil {
			return false, err
		}
		return show(&e.result)
	})
}

func (e *Edges) send(ctx context.Context, n int, next func(int, []byte) (bool, error)) (sent, more bool, err error) {
	b, err := e.frame.New()
	if err != nil {
		return false, false, err
	}
	err = b.Update(ctx, func(mem []byte) error {
		sent, err = next(n, mem)
		return err
	})
	if err != nil || !sent {
		b.Release()
		return false, false, err
	}
	if err := push(ctx, e.in, b, 0); err != nil {
		return false, false, err
	}
	return true, true, nil
}

// take waits for what comes of the next frame.
func (e *Edges) take(ctx context.Context, n int) error {
	r := &e.result
	for i, into := range [...][]byte{r.Blurred, r.Edges, matrix.Host(r.Histogram).Bytes, matrix.Host(e.report[:]).Bytes} {
		if err := pull(ctx, e.outs[i], into); err != nil {
			return err
		}
	}
	r.Number, r.Mean, r.Threshold, r.Share = n, e.report[0], e.report[1], e.report[2]
	return nil
}
