// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"cmp"
	"context"
	_ "embed" // the kernels
	"errors"
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

//go:embed edges.wgsl
var edgesWGSL string

//go:embed histogram.wgsl
var histogramWGSL string

const (
	levels    = 256     // of brightness, in a histogram
	maxPixels = 1 << 25 // of a frame, so that no buffer is beyond what devices commonly allow
	maxSigma  = 16      // keeps kernels short
)

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
	frame  *graph.Template
	outs   [4]*graph.Output // blurred, edges, histogram, report
	result EdgesFrame
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
func NewEdges(devices []*gpu.Device, c EdgesConfig, config ...graph.Config) (*Edges, error) {
	const op = "NewEdges"
	c.Sigma, c.Gain, c.InFlight = cmp.Or(c.Sigma, 1.5), cmp.Or(c.Gain, 0.7), cmp.Or(c.InFlight, defaultInFlight)
	switch {
	case c.Width < 1 || c.Height < 1 || c.Width > maxPixels || c.Height > maxPixels/c.Width:
		return nil, fail(op, gpu.ErrInvalid, "frames of ", itoa(c.Width), "x", itoa(c.Height))
	case !(c.Sigma > 0 && c.Sigma <= maxSigma):
		return nil, fail(op, gpu.ErrInvalid, "a blur of less than nothing, or of more than 16 pixels")
	case !(c.Gain > 0 && c.Gain <= math.MaxFloat32):
		return nil, fail(op, gpu.ErrInvalid, "a gain that is not positive")
	case c.InFlight < 1 || c.InFlight > maxInFlight:
		return nil, fail(op, gpu.ErrInvalid, itoa(c.InFlight), " frames in flight")
	}
	n := c.Width * c.Height
	e := &Edges{result: EdgesFrame{Blurred: make([]byte, 4*n), Edges: make([]byte, 4*n), Histogram: make([]uint32, levels)}}
	e.inFlight = c.InFlight
	if err := e.init(devices, config, func() { e.build(c) }); err != nil {
		return nil, err
	}
	return e, nil
}

// gaussian returns the weights of a blur, which sum up to one. Beyond three standard deviations there is next to nothing.
func gaussian(sigma float64) []float32 {
	if sigma < 0.2 {
		return []float32{0, 1, 0} // one weight alone would be a number, not an array
	}
	radius := int(math.Ceil(3 * sigma))
	out, sum := make([]float32, 2*radius+1), 0.0
	weight := func(i int) float64 { d := float64(i-radius) / sigma; return math.Exp(-d * d / 2) }
	for i := range out {
		sum += weight(i)
	}
	for i := range out {
		out[i] = float32(weight(i) / sum)
	}
	return out
}

// build adds the tasks.
func (e *Edges) build(c EdgesConfig) {
	g, weights := e.Graph, gaussian(float64(c.Sigma))
	e.frame = g.Template("frame", c.Height, c.Width, dtype.Uint32, graph.Format{Pool: 2 * c.InFlight})
	image := g.Template("image", c.Height, c.Width, dtype.Float32, graph.Format{Pool: 4 * c.InFlight})
	counts := g.Template("counts", 1, levels, dtype.Uint32)
	filter := g.Template("weights", 1, len(weights), dtype.Float32)

	source := "const width = " + itoa(c.Width) + "u; const height = " + itoa(c.Height) + "u; const taps = " + itoa(len(weights)) +
		"u; const gain = f32(" + strconv.FormatFloat(float64(c.Gain), 'e', -1, 32) + ");\n" + edgesWGSL
	kernel := func(name, function string, ports ...graph.TaskOption) *graph.Task {
		return g.Task(name, graph.Kernel(source, function, func(*graph.Dispatch) [3]int { return [3]int{c.Width, c.Height, 1} }), ports...)
	}
	blur := func(name, function string) *graph.Task {
		return kernel(name, function, graph.In("image", image), graph.Sticky("weights", filter), graph.Out("blurred", image))
	}
	paint := func(name string) *graph.Task {
		return g.Task(name, graph.Kernel(source, "paint", nil), graph.In("image", image), graph.Out("pixels", e.frame))
	}
	// web/demo/pipelines.html quotes what is between the marks.
	// [code]
	brightness := kernel("Brightness", "brightness", graph.In("frame", e.frame), graph.Out("grey", image))
	across, down := blur("BlurAcross", "blur_across"), blur("BlurDown", "blur_down")
	sobel := kernel("Sobel", "sobel", graph.In("image", image), graph.Out("edges", image))
	paintBlur, paintEdges := paint("PaintBlur"), paint("PaintEdges")
	groups := (c.Width*c.Height + levels*16 - 1) / (levels * 16)
	histogram := g.Task("Histogram", graph.Kernel(histogramWGSL, "histogram", func(*graph.Dispatch) [3]int {
		return [3]int{groups * levels, 1, 1}
	}), graph.In("pixels", e.frame), graph.Out("counts", counts))
	measure := g.Task("Measure", graph.Host(measure), graph.In("counts", counts), graph.Out("report", g.Template("report", 1, 3, dtype.Float32)))

	flight := graph.Channel{Capacity: c.InFlight}
	e.in = g.Input("frame", brightness.Port("frame"), flight)
	g.Connect(brightness.Port("grey"), across.Port("image"))
	g.Connect(across.Port("blurred"), down.Port("image"))
	g.Connect(down.Port("blurred"), sobel.Port("image"))
	g.Connect(down.Port("blurred"), paintBlur.Port("image"))
	g.Connect(sobel.Port("edges"), paintEdges.Port("image"))
	g.Connect(paintEdges.Port("pixels"), histogram.Port("pixels"))
	g.Connect(histogram.Port("counts"), measure.Port("counts"))
	// [end]
	e.outs = [...]*graph.Output{
		g.Output("blurred", paintBlur.Port("pixels"), flight), g.Output("edges", paintEdges.Port("pixels"), flight),
		g.Output("histogram", histogram.Port("counts"), flight), g.Output("report", measure.Port("report"), flight),
	}
	e.prepare = func() error {
		return errors.Join(graph.SetValues(across.Port("weights"), weights...), graph.SetValues(down.Port("weights"), weights...))
	}
}

// measure is the task that looks at the histogram on the host. It finds the level for which the variance between the pixels above it
// and the others is largest.
func measure(d *graph.Dispatch) error {
	counts, err := words(d, "counts")
	if err != nil {
		return err
	}
	var total, sum float64
	for level, n := range counts {
		total += float64(n)
		sum += float64(level) * float64(n)
	}
	report := []float32{float32(sum / total), 0, 0}
	var below, belowSum, best float64
	for level, n := range counts {
		below += float64(n)
		belowSum += float64(level) * float64(n)
		above := total - below
		if below == 0 || above == 0 {
			continue
		}
		difference := belowSum/below - (sum-belowSum)/above
		if between := below * above * difference * difference; between > best {
			best, report[1], report[2] = between, float32(level), float32(above/total)
		}
	}
	return update(d, "report", report)
}

// Run sends frames through the pipeline until next has no more or show has seen enough, and then stops the graph. next fills in
// frame n, with red, green, blue and opacity of each pixel, and reports whether there is one; show gets the results in the order
// of the frames and reports whether it wants more. An error of either, or of a task, ends it. One Run at a time: else it is
// [graph.ErrBusy].
func (e *Edges) Run(ctx context.Context, next func(n int, frame []byte) (bool, error), show func(*EdgesFrame) (bool, error)) error {
	if e == nil || e.Graph == nil || ctx == nil || next == nil || show == nil {
		return fail("Run", gpu.ErrInvalid, "nil argument")
	}
	send := func(n int, stop bool) (b *graph.Block, more bool, err error) {
		if stop {
			return nil, false, nil
		}
		if b, err = e.frame.New(); err != nil {
			return nil, false, err
		}
		err = b.Update(ctx, func(mem []byte) error {
			more, err = next(n, mem)
			return err
		})
		if err != nil || !more {
			b.Release()
			return nil, false, err
		}
		return b, true, nil
	}
	return e.stream(ctx, send, func(n int) (bool, error) {
		r, report := &e.result, [3]float32{}
		for i, into := range [...][]byte{r.Blurred, r.Edges, matrix.Host(r.Histogram).Bytes, matrix.Host(report[:]).Bytes} {
			if err := pull(ctx, e.outs[i], into); err != nil {
				return false, err
			}
		}
		r.Number, r.Mean, r.Threshold, r.Share = n, report[0], report[1], report[2]
		return show(r)
	})
}
