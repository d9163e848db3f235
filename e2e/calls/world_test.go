// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package calls

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/gonum"
	"github.com/sublet-gpu/sublet/matrix/graph"
	"github.com/sublet-gpu/sublet/matrix/graph/pipelines"
	"github.com/sublet-gpu/sublet/native/dlpack"
	"github.com/sublet-gpu/sublet/native/mapfile"
	"github.com/sublet-gpu/sublet/native/oliver"
)

// excluded has what random callers leave out, and why.
var excluded = map[string]string{
	"gpu.Register":             "lasts as long as the process",
	"oliver.FromRaw":           "takes an address, which is the caller's word",
	"(dlpack.Tensor).Trust":    "takes the caller's word for a handle; a wrong one ends the process, as its documentation says",
	"dlpack.Export":            "the caller has to see that its result is consumed: helpers.lend",
	"dlpack.ExportLegacy":      "like Export",
	"dlpack.Import":            "takes an address of C, which has one consumer: helpers.exchange",
	"dlpack.ImportLegacy":      "like Import",
	"(mapfile.File).Share":     "memory that must not be used after its release: helpers.share",
	"gpu.Open":                 "helpers.open limits the memory",
	"(gpu.Adapter).Open":       "like gpu.Open",
	"(gpu.Selection).Open":     "like gpu.Open",
	"(driver.Objects).SetLost": "helpers.lose",
}

// largest are functions that take Go's own memory of a size that the machine may have or not.
var largest = map[string]bool{"cruncher.NewArray": true, "helpers.convert": true}

// zeroOnly are types whose fields are the caller's word on addresses.
var zeroOnly = map[reflect.Type]bool{
	reflect.TypeFor[dlpack.Tensor](): true,
}

// concurrent are the types whose methods may be called from several goroutines, as their documentation says.
var concurrent = []reflect.Type{
	deviceType, reflect.TypeFor[*gpu.Buffer](), reflect.TypeFor[*gpu.Kernel](), reflect.TypeFor[*gpu.Adapter](),
	reflect.TypeFor[*buffer.Buffer](), reflect.TypeFor[*kernel.Source](), reflect.TypeFor[*kernel.Program](),
	reflect.TypeFor[*cruncher.Cruncher](), reflect.TypeFor[*cruncher.DevicePool](),
	reflect.TypeFor[*ndarray.Array](), reflect.TypeFor[*graph.Graph](), reflect.TypeFor[*graph.Block](),
	reflect.TypeFor[*graph.Input](), reflect.TypeFor[*graph.Output](), reflect.TypeFor[*graph.Task](), reflect.TypeFor[*graph.Port](),
	reflect.TypeFor[*graph.Template](), reflect.TypeFor[driver.Device](), reflect.TypeFor[*mapfile.File](),
}

// words are texts that make sense to some function.
var words = []string{
	"", "x", "y", "a", "b", "w", "arr", "add", "inc", "main", "in", "out", "inc add", "cpu", "oliver", "llvmpipe", "float32", "<f4", "uint8",
	"x+y", "relu(x*w + y)", "sum(x)", "T(x)*y", "x[", "((((((((((", "fn main", "\x00\xff", "日本",
	"fn inc(i: u32) { arr[i] = arr[i] + 1; }", "fn add(i: u32) { y[i] = x[i] + x[i]; }",
	"fn inc(i: u32) { arr[i] = arr[i] + 1; } fn add(i: u32) { arr[i] = arr[i] + arr[i]; }",
	"@group(0) @binding(0) var<storage, read_write> arr: array<f32>;\n" +
		"@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) i: vec3<u32>) { arr[i.x] = 1; }",
	"@compute @workgroup_size(1) fn main() {}",
}

// streams are files, and what is none. They and the paths among the words are made by [prepare].
var streams = []string{"", "PK", "\x93NUMPY", "garbage that is no file of any kind at all, whatever reads it"}

// prepare makes files.
func prepare(dir string) error {
	data := make([]byte, 4096)
	path := filepath.Join(dir, "data.bin")
	words = append(words, path, dir)
	one := file.Header{Name: "x", Type: dtype.Float32, Shape: []int64{2, 3}}
	none := file.Header{Name: "y", Type: dtype.Float32, Shape: []int64{0}}
	write := func(f func(b *bytes.Buffer) (file.Writer, error)) error {
		var b bytes.Buffer
		w, err := f(&b)
		if err == nil {
			_, err = w.Write(data[:24])
			err = errors.Join(err, w.Close())
		}
		streams = append(streams, b.String(), b.String()[:b.Len()/2], b.String()[:b.Len()-1])
		return err
	}
	list := []file.Header{one, none}
	return errors.Join(os.WriteFile(path, data, 0o600),
		write(func(b *bytes.Buffer) (file.Writer, error) { return npy.NewZipWriter(b, list, zip.Deflate) }),
		write(func(b *bytes.Buffer) (file.Writer, error) { return npy.NewZipWriter(b, list, zip.Store) }),
		write(func(b *bytes.Buffer) (file.Writer, error) {
			return npy.NewWriter(b, npy.Header{Type: dtype.Float32, Shape: one.Shape})
		}),
		write(func(b *bytes.Buffer) (file.Writer, error) { return params.NewWriter(b, list, params.Options{}) }),
		write(func(b *bytes.Buffer) (file.Writer, error) { return safetensors.NewWriter(b, list, nil) }))
}

// helpers make what random arguments seldom do, and call what is in fields.
var helpers = []function{
	{"helpers.share", share},
	{"helpers.stages", stages},
	{"helpers.open", open},
	{"helpers.open", connected},
	{"helpers.train", train},
	{"helpers.sparse", sparseMatrix},
	{"helpers.adopted", adopted},
	{"helpers.lose", lose},
	{"helpers.adapters", adapters},
	{"helpers.connect", connect},
	{"helpers.adopt", adopt},
	{"helpers.foreign", foreign},
	{"helpers.exchange", exchange},
	{"helpers.exchange", exchangeLegacy},
	{"helpers.lend", lend},
	{"helpers.pipeline", pipeline},
	{"helpers.crunch", crunch},
	{"helpers.crunch", dense},
	{"helpers.crunch", array},
	{"helpers.convert", convert},
	{"helpers.reader", reader},
	{"helpers.release", func(f func()) {
		if f != nil {
			f()
		}
	}},
	{"helpers.kernel", compiled},
	{"helpers.block", block},
}

// samples are values that make sense, of types that random fields seldom make sense of.
var samples = map[reflect.Type]func(c *caller) any{
	reflect.TypeFor[dtype.Type](): func(c *caller) any {
		return pick(c, []dtype.Type{dtype.Float32, dtype.Float32, dtype.Int32, dtype.Uint8, dtype.Float16, dtype.Uint32, dtype.Float64})
	},
	reflect.TypeFor[matrix.Options](): func(c *caller) any { return matrix.Options{ColMajor: c.IntN(2) == 0} },
	reflect.TypeFor[matrix.Format]():  func(c *caller) any { return matrix.Format(c.IntN(4)) },
	reflect.TypeFor[mat.Matrix]():     func(c *caller) any { return mat.NewDense(1+c.IntN(4), 1+c.IntN(4), nil) },
	reflect.TypeFor[npy.Header](): func(c *caller) any {
		return npy.Header{Type: dtype.Float32, Shape: []int64{int64(c.IntN(4)), 2}}
	},
	reflect.TypeFor[cruncher.Range](): func(c *caller) any {
		return cruncher.Range{Global: c.IntN(300), Local: c.IntN(65), Blobs: c.IntN(3), Repeat: c.IntN(3)}
	},
	reflect.TypeFor[buffer.Region](): func(c *caller) any { return buffer.Range(4*c.IntN(5), 4*c.IntN(5)) },
	reflect.TypeFor[buffer.Intent](): func(c *caller) any { return buffer.Intent(c.IntN(4)) },
}

// limit is what devices of random callers may take.
const limit = 64 << 20

// open opens a device of some driver.
func open(ctx context.Context, i uint, opts ...gpu.Option) (*gpu.Device, error) {
	names := devtest.Drivers()
	return gpu.Open(ctx, append(opts, gpu.WithDriver(names[i%uint(len(names))]), gpu.WithMemory(limit))...)
}

// connected opens a device that can be lost.
func connected(ctx context.Context, i uint) (*gpu.Device, driver.Device, error) {
	names := devtest.Drivers()
	for a, err := range gpu.Adapters(ctx) {
		if err == nil && a.Info.Driver == names[i%uint(len(names))] {
			for _, d := range []driver.Driver{cpu.New(), oliver.New()} {
				list, _ := d.Adapters(ctx)
				if d.Name != a.Info.Driver || len(list) == 0 {
					continue
				}
				drv, err := list[0].Open(ctx)
				if err != nil {
					return nil, nil, err
				}
				dev, err := gpu.Open(ctx, gpu.WithDevice(drv), gpu.WithMemory(limit))
				return dev, drv, err
			}
		}
	}
	return nil, nil, errUser
}

// train makes and runs a pipeline.
func train(ctx context.Context, devices []*gpu.Device, c pipelines.TrainConfig, steps int8) (*pipelines.Train, error) {
	c.Classes, c.Features, c.Labels = 2, make([]float32, 12), []uint8{0, 1, 0, 1}
	t, err := pipelines.NewTrain(devices, c)
	if err != nil {
		return t, err
	}
	return t, t.Run(ctx, int(steps), func(pipelines.Step) (bool, error) { return true, nil })
}

func sparseMatrix(dev *gpu.Device, f matrix.Format, opts ...matrix.Options) (*matrix.Sparse[float32], error) {
	return matrix.NewSparse(dev, f, 3, 3, []float32{1, 2}, []int32{0, 2}, []int32{0, 1, 1, 2}, opts...)
}

// adopted opens the device of another device.
func adopted(ctx context.Context, d *gpu.Device) (*gpu.Device, error) {
	h := d.Handle()
	if h == nil {
		return nil, nil
	}
	return gpu.Open(ctx, gpu.WithDevice(h), gpu.WithMemory(limit))
}

// lose opens a device that somebody can lose, and loses it if asked to.
func lose(ctx context.Context, d driver.Device, now bool) (*gpu.Device, error) {
	if d == nil {
		return nil, nil
	}
	dev, err := gpu.Open(ctx, gpu.WithDevice(d), gpu.WithMemory(limit))
	if l, ok := d.(interface{ SetLost(string) }); ok && now {
		l.SetLost("a test")
	}
	return dev, err
}

func adapters(ctx context.Context, d driver.Driver) ([]driver.Adapter, error) {
	if d.Adapters == nil {
		return nil, nil
	}
	return d.Adapters(ctx)
}

func connect(ctx context.Context, a driver.Adapter) (driver.Device, error) {
	if a.Open == nil {
		return nil, nil
	}
	return a.Open(ctx)
}

func adopt(ctx context.Context, d driver.Driver, handle any) (driver.Device, error) {
	if d.Adopt == nil {
		return nil, nil
	}
	return d.Adopt(ctx, handle)
}

// alone says that there is one caller, so that no other closes a device whose handle is in use.
var alone bool

// foreign makes a buffer that is not the library's.
func foreign(d *gpu.Device, size, usage uint8) (any, error) {
	if !alone || d.Info().Driver != devtest.Native() || d.Handle() == nil {
		return nil, nil
	}
	return devtest.User.Buffer(d.Handle(), 4*(1+uint64(size)), usage%4 == 1)
}

func exchange(dev *gpu.Device, t *dlpack.Tensor) (*dlpack.Tensor, *ndarray.Array, error) {
	m, err := dlpack.Export(t)
	if err != nil {
		return nil, nil, err
	}
	back, err := dlpack.Import(m)
	if err != nil {
		return nil, nil, err
	}
	a, err := dlpack.ToArray(dev, back)
	return back, a, err
}

func exchangeLegacy(dev *gpu.Device, t *dlpack.Tensor) (*dlpack.Tensor, *ndarray.Array, error) {
	m, err := dlpack.ExportLegacy(t)
	if err != nil {
		return nil, nil, err
	}
	back, err := dlpack.ImportLegacy(m)
	if err != nil {
		return nil, nil, err
	}
	a, err := dlpack.ToArray(dev, back)
	return back, a, err
}

// lend exports a tensor, and returns what gives it back: by importing and closing it, as nobody else consumes it.
func lend(t *dlpack.Tensor, legacy bool) (back func(), err error) {
	var m *dlpack.Managed
	var old *dlpack.Legacy
	if legacy {
		old, err = dlpack.ExportLegacy(t)
	} else {
		m, err = dlpack.Export(t)
	}
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		var back *dlpack.Tensor
		if legacy {
			back, _ = dlpack.ImportLegacy(old)
		} else {
			back, _ = dlpack.Import(m)
		}
		_ = back.Close()
	}), nil
}

// pipeline makes a graph that runs.
func pipeline(ctx context.Context, devices []*gpu.Device, body graph.Body, deterministic, runs bool, opts ...graph.TaskOption) (
	*graph.Graph, *graph.Template, *graph.Task, *graph.Input, *graph.Output, *graph.Port, *graph.Block, error,
) {
	g, err := graph.New(devices, graph.Config{Deterministic: deterministic})
	if err != nil {
		return nil, nil, nil, nil, nil, nil, nil, err
	}
	m := g.Template("m", 2, 3, dtype.Float32)
	task := g.Task("task", body, append(opts, graph.In("x", m), graph.Sticky("w", m), graph.Out("y", m))...)
	in, out := g.Input("in", task.Port("x")), g.Output("out", task.Port("y"))
	err = graph.SetValues(task.Port("w"), 1, 2, 3, 4, 5, float32(6))
	if runs {
		err = errors.Join(err, g.Run(ctx))
	}
	b, _ := graph.FromSlice(m, make([]float32, 6))
	return g, m, task, in, out, task.Port("w"), b, err
}

// share wraps memory of a file, which gives it back.
func share(dev *gpu.Device, f *mapfile.File, offset int64) (*buffer.Buffer, error) {
	mem, release, err := f.Share(offset)
	if err != nil {
		return nil, err
	}
	b, err := buffer.Wrap(dev, mem, release)
	if err != nil {
		release()
	}
	return b, err
}

// stages makes pipelines of the cruncher's.
func stages(ctx context.Context, dev *gpu.Device, n uint8) (
	*cruncher.Pipeline, *cruncher.DevicePipeline, *cruncher.DevicePool, *cruncher.Task, error,
) {
	x, err := cruncher.NewArray[float32]("x", int(n))
	y, err2 := cruncher.NewArray[float32]("y", int(n))
	r := cruncher.Range{Global: int(n)}
	const twice = "fn add(i: u32) { y[i] = x[i] + x[i]; }"
	s := cruncher.Stage{
		Kernels: []cruncher.Step{{Kernels: "add", Range: r}}, Inputs: []cruncher.Param{x}, Outputs: []cruncher.Param{y},
		Devices: []*gpu.Device{dev}, WGSL: twice,
	}
	p, err3 := cruncher.NewPipeline(ctx, s)
	s.Devices, s.WGSL = nil, ""
	d, err4 := cruncher.NewDevicePipeline(ctx, dev, twice, s)
	q, err5 := cruncher.NewDevicePool(ctx, cruncher.Greedy, twice)
	t, err6 := cruncher.NewTask(1, "add", r, cruncher.Params(x, y), cruncher.TaskOptions{})
	return p, d, q, t, errors.Join(err, err2, err3, err4, err5, q.AddDevice(dev), err6)
}

func block(t *graph.Template) (*graph.Block, error) { return t.New() }

const source = "fn inc(i: u32) { arr[i] = arr[i] + 1; } fn add(i: u32) { arr[i] = arr[i] + arr[i]; }"

func crunch(ctx context.Context, devices []*gpu.Device, n uint8) (*cruncher.Cruncher, *cruncher.Array[float32], error) {
	cr, err := cruncher.New(ctx, devices, source)
	a, err2 := cruncher.NewArray[float32]("arr", int(n))
	return cr, a, errors.Join(err, err2)
}

func dense(dev *gpu.Device, rows, cols uint8) (*matrix.Dense[float32], error) {
	return matrix.New[float32](dev, int(rows%16), int(cols%16))
}

func array(dev *gpu.Device, rows, cols uint8) (*ndarray.Array, error) {
	return ndarray.Alloc(dev, dtype.Float32, int(rows%16), int(cols%16))
}

func compiled(ctx context.Context, dev *gpu.Device, b *gpu.Buffer) (*gpu.Kernel, error) {
	k, err := dev.Kernel(ctx, gpu.KernelDesc{
		Source:   "@group(0) @binding(0) var<storage, read_write> a: array<u32>;\n@compute @workgroup_size(1) fn main() { a[0] = 1; }",
		Bindings: []driver.Access{driver.AccessReadWrite}, Reference: func([3]uint32, []byte, [][]byte) {},
	})
	if err == nil {
		err = k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: b})
	}
	return k, err
}

// odd is a matrix that is not what it says.
type odd struct {
	rows, cols int
	panics     bool
}

func (o odd) Dims() (r, c int) { return o.rows, o.cols }
func (o odd) T() mat.Matrix    { return o }
func (o odd) At(int, int) float64 {
	if o.panics {
		panic(userPanic)
	}
	return 1e300
}

func convert(dev *gpu.Device, rows, cols int, kind uint8, opts ...matrix.Options) (*matrix.Dense[float32], error) {
	var m mat.Matrix
	switch kind % 4 {
	case 0:
		m = mat.NewDense(int(kind)+1, 3, nil)
	case 1:
		m = odd{rows, cols, false}
	case 2:
		m = odd{int(kind), 2, true}
	case 3:
		m = (*mat.Dense)(nil)
	}
	d, _, err := gonum.Convert(dev, m, opts...)
	return d, err
}

var turn atomic.Int64

func reader() (file.Reader, error) {
	s := streams[int(turn.Add(1))%len(streams)]
	if r, err := npy.NewZipReader(bytes.NewReader([]byte(s)), int64(len(s))); err == nil {
		return r, nil
	}
	if r, err := safetensors.NewReader(bytes.NewReader([]byte(s))); err == nil {
		return r, nil
	}
	return params.NewReader(bytes.NewReader([]byte(s)), params.Options{})
}
