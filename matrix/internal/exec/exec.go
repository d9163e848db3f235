// SPDX-License-Identifier: Apache-2.0

// Package exec evaluates expressions on a device: it has each one planned once for its shape, binds the buffers of the
// operands, and launches the plan's kernels, which it compiles and keeps.
package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/recent"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
	"github.com/sublet-gpu/sublet/internal/turn"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// Dense is a matrix in a buffer.
type Dense struct {
	expr.Layout
	Type fuse.Type
	Buf  *buffer.Buffer
}

// Source is what the leaves of an expression are to this package.
type Source interface {
	// Current returns the matrix as it is now, or why an expression cannot read it.
	Current() (Dense, error)
}

// Current implements [Source].
func (d Dense) Current() (Dense, error) { return d, nil }

// Woven is a matrix of complex64 as the one of float32 that it is in memory, read row by row; transposed says that those were columns.
func (d Dense) Woven() (w Dense, transposed bool) {
	transposed = d.ColMajor
	w.Layout, w.Type, w.Buf = d.Layout, fuse.F32, d.Buf
	if transposed {
		w.Layout = d.T()
	}
	w.Cols, w.Offset, w.Stride = 2*w.Cols, 2*w.Offset, 2*w.Stride
	return w, transposed
}

// woven is a source of complex64 as one of float32.
type woven struct{ Source }

// Current implements [Source].
func (s woven) Current() (Dense, error) {
	d, err := s.Source.Current()
	d, _ = d.Woven()
	return d, err
}

// lower makes an assignment of complex numbers one of real ones.
func lower(dst Dense, n *expr.Node) (Dense, *expr.Node, error) {
	if dst.Type != fuse.C64 {
		return dst, n, nil
	}
	w, transposed := dst.Woven()
	if transposed {
		n = expr.NewTranspose("Assign", n)
	}
	n = n.Woven("Assign")
	return w, n, n.Err
}

// Leaf is a source as an expression. d is the matrix that it is now.
func Leaf(dev *gpu.Device, s Source, d Dense) *expr.Node {
	if d.Type == fuse.C64 {
		return complexLeaf(dev, s, d)
	}
	return &expr.Node{Kind: expr.Leaf, Type: d.Type, Rows: d.Rows, Cols: d.Cols, Dev: dev, Source: s}
}

func complexLeaf(dev *gpu.Device, s Source, d Dense) *expr.Node {
	const op = "Leaf"
	w, transposed := d.Woven()
	n := expr.NewUnwoven(op, Leaf(dev, woven{s}, w))
	if n.Dev = dev; transposed {
		n = expr.NewTranspose(op, n)
	}
	if n.Err == nil {
		n.Source = s
	}
	return n
}

// Executor evaluates expressions on one device.
type Executor struct {
	turn       turn.Lock // one expression at a time
	dev        *gpu.Device
	info       plan.Device
	generation uint32 // of the device, that the kernels are for
	kernels    recent.Map[string, *gpu.Kernel]
	asked      map[string]int // how often kernels that are not there were asked for
	plans      recent.Map[string, *plan.Plan]
	planned    int // plans made
	run        Run
}

type executorKey struct{}

// Began, unless it is nil, is called in a goroutine of its own when a device is to have an executor, perhaps more than once. A tuner
// sets it when the program starts.
var Began func(dev *gpu.Device)

// Of returns the executor of a device.
func Of(dev *gpu.Device) *Executor {
	return dev.Attach(executorKey{}, func() any {
		if gpu.RunsNative && Began != nil {
			go Began(dev)
		}
		return &Executor{turn: turn.New(), dev: dev, info: describe(dev)}
	}).(*Executor)
}

// describe is what plans depend on of a device. Kernels count elements, of two bytes and more, with 32 bits.
func describe(dev *gpu.Device) plan.Device {
	i, l := dev.Info(), dev.Info().Limits
	software, storage := i.Kind == driver.KindCPU, int(l.MaxStorageBuffers)
	if l.MaxLoopsPerInvoking > 0 {
		storage-- // drivers take a binding to watch loops of the user's
	}
	var family *kernels.Special
	if gpu.RunsSIMD && i.Backend == "wasm" {
		family = kernels.SIMD
	}
	swiftShader := software && strings.Contains(strings.ToLower(i.Vendor+" "+i.Name), "swiftshader")
	return plan.Device{
		Binding: min(l.MaxBindingSize, 1<<33), Buffer: l.MaxBufferSize, Storage: storage, Scratch: 64 << 20,
		Device: kernels.Device{
			Software: software, SwiftShader: swiftShader, Quads: swiftShader && i.Features.Has(driver.FeatureSubgroups),
			Integrated: i.Kind == driver.KindIntegrated, SIMD: family, Native: i.Backend == "wasm" && gpu.RunsNative, MaxInvocations: int(l.MaxInvocations), MaxMemory: int(l.MaxWorkgroupMemory),
		},
	}
}

// Tune lets a tuner and tests change what kernels are chosen for. It waits for the expression that is being queued at most.
func (x *Executor) Tune(fn func(info *plan.Device)) {
	_ = x.turn.Take(context.Background()) // which does not end
	defer x.turn.Give()
	fn(&x.info)
	x.plans.Clear()
}

// Inspect shows tests how many kernels are kept and how many plans were made.
func (x *Executor) Inspect(fn func(kept *int, planned int)) {
	_ = x.turn.Take(context.Background()) // which does not end
	defer x.turn.Give()
	fn(&x.kernels.Most, x.planned)
}

// Assign queues the computation of n into dst, whose size is n's. Kernels are compiled under the context.
func (x *Executor) Assign(ctx context.Context, dst Dense, n *expr.Node) error {
	return x.During(ctx, func(r *Run) error { return r.Assign(dst, n) })
}

// During runs fn as one evaluation, with temporaries that end with it.
func (x *Executor) During(ctx context.Context, fn func(r *Run) error) error {
	if ctx == nil {
		return fault.Ended(ctx, "matrix: Assign")
	}
	if err := x.turn.Take(ctx); err != nil {
		return fault.Fail("matrix: Assign", err)
	}
	defer x.turn.Give()
	if err := x.dev.Ready(ctx); err != nil {
		return fault.Fail("matrix: Assign", err)
	}
	if generation := x.dev.Generation(); generation != x.generation { // it came back without kernels, but for those compiled since
		x.kernels.Each(func(k *gpu.Kernel) { _ = k.Close() }) // never fails
		x.kernels.Clear()
		x.asked, x.generation = nil, generation
	}
	r := &x.run
	r.x, r.ctx = x, ctx
	err := fn(r)
	for _, b := range r.temps {
		if cerr := b.Close(); err == nil {
			err = cerr
		}
	}
	clear(r.temps)
	r.temps, r.ctx = r.temps[:0], nil
	r.forget()
	return err
}

// kernel finds the kernel of a step, or builds and compiles it.
func (x *Executor) kernel(ctx context.Context, s *plan.Step) (*gpu.Kernel, error) {
	if k := x.kernels.Get(s.Key); k != nil {
		k.CountHit()
		return k, nil
	}
	k, err := x.compile(ctx, s, false)
	if err != nil {
		return nil, err
	}
	x.keep(s.Key, k)
	return k, nil
}

func (x *Executor) compile(ctx context.Context, s *plan.Step, ahead bool) (*gpu.Kernel, error) {
	p := s.Program(s.Func)
	bindings := slices.Repeat([]driver.Access{driver.AccessRead}, 2+p.Own+p.Inputs)
	bindings[0], bindings[1+p.Own] = driver.AccessParams, driver.AccessReadWrite
	users := s.Func != nil && len(s.Func.Calls) > 0 // those functions may do anything
	desc := gpu.KernelDesc{Label: p.Name, Source: p.Source, Bindings: bindings, Bounded: !users, Fused: users, Exact: gpu.RunsSIMD && s.Exact(s.Func), Ahead: ahead}
	if gpu.RunsReferences && p.Reference != nil {
		desc.Reference = p.Reference.Run
	}
	if gpu.RunsNative && p.Native != nil {
		desc.Native = p.Native.RunNative
	}
	k, err := x.dev.Kernel(ctx, desc)
	blamed := func(d wgsl.Diagnostic) string { return fuse.Blamed(d, p.Source) }
	return k, wgsl.Translate("matrix: Apply", err, p.Source, blamed)
}

// keep holds a compiled kernel for later, in the place of the one not used for longest.
func (x *Executor) keep(key string, k *gpu.Kernel) {
	if old, gone := x.kernels.Put(key, k); gone {
		_ = old.Close() // never fails
	}
}

// ready reports whether the kernel of a step is compiled. One that is not is compiled in the background when it is asked for the
// second time; if that fails, those who want it go on with another one and ask again.
func (x *Executor) ready(s *plan.Step) bool {
	if x.kernels.Peek(s.Key) != nil {
		return true
	}
	if x.asked == nil || len(x.asked) >= recent.Most {
		x.asked = map[string]int{}
	}
	if x.asked[s.Key]++; x.asked[s.Key] == 2 {
		go x.prepare(s)
	}
	return false
}

func (x *Executor) prepare(s *plan.Step) {
	k, err := x.compile(context.Background(), s, true)
	_ = x.turn.Take(context.Background()) // which does not end
	defer x.turn.Give()
	delete(x.asked, s.Key)
	if err == nil && x.kernels.Peek(s.Key) == nil && x.generation == x.dev.Generation() {
		x.keep(s.Key, k)
	} else {
		_ = k.Close() // never fails
	}
}

// Explain plans the computation of n into a new matrix, as it is computed when nothing is compiled ahead.
func (x *Executor) Explain(ctx context.Context, n *expr.Node) (p *plan.Plan, err error) {
	err = x.During(ctx, func(r *Run) error {
		p, err = r.explained(n)
		return err
	})
	return p, err
}
