// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/recent"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// engine runs expressions on one device: it holds the compiled kernels by the shape of what they compute.
type engine struct {
	mu      sync.Mutex // one expression at a time, in the order of the calls
	dev     *gpu.Device
	kernels recent.Map[string, *gpu.Kernel]
	life    uint32         // of the device that the kernels are for
	asked   map[string]int // how often kernels that are not there were asked for

	software bool // barriers and workgroup memory are to be avoided
	narrow   bool // the adapter is SwiftShader, which has vectors of four and few registers

	key    []byte // scratch of the expression in progress
	params []byte
	args   []gpu.Arg
	run    run
}

type engineKey struct{}

func engineOf(dev *gpu.Device) *engine {
	return dev.Attach(engineKey{}, func() any {
		i := dev.Info()
		cpu := i.Kind == gpu.KindCPU
		return &engine{
			dev: dev, kernels: recent.Map[string, *gpu.Kernel]{Most: maxKernels}, software: cpu,
			narrow: cpu && strings.Contains(strings.ToLower(i.Vendor+" "+i.Name), "swiftshader"),
		}
	}).(*engine)
}

// kernel finds the kernel with the key, or builds and compiles it.
func (g *engine) kernel(key []byte, build func() (shaders.Program, error)) (*gpu.Kernel, error) {
	if k := recent.Find(&g.kernels, key); k != nil {
		k.CountHit()
		return k, nil
	}
	k, err := g.compile(build, false)
	if err != nil {
		return nil, err
	}
	g.keep(string(key), k)
	return k, nil
}

func (g *engine) compile(build func() (shaders.Program, error), ahead bool) (*gpu.Kernel, error) {
	p, err := build()
	if err != nil {
		return nil, fail("Assign", ErrInvalid, err.Error())
	}
	access := make([]gpu.Access, len(p.Access))
	for i, a := range p.Access {
		access[i] = [...]gpu.Access{0, gpu.AccessRead, gpu.AccessReadWrite, gpu.AccessParams}[a&3]
	}
	desc := gpu.KernelDesc{Label: p.Name, Source: p.Source, Bindings: access, Ahead: ahead}
	if gpu.RunsReferences && p.Reference != nil {
		desc.Reference = p.Reference.Run
	}
	k, err := g.dev.Kernel(context.Background(), desc)
	return k, blamed(err, p.Source)
}

// blamed makes an error about a kernel's text one about the function of the user's that is to blame for it.
func blamed(err error, source string) error {
	old, ok := errors.AsType[*gpu.OpError](err)
	if !ok || !errors.Is(err, gpu.ErrCompile) {
		return err
	}
	if detail := fuse.Complaints(old.Detail, source); detail != "" {
		return fail("Apply", gpu.ErrCompile, detail)
	}
	return err
}

// keep holds a compiled kernel for later, in the place of the one not used for longest.
func (g *engine) keep(key string, k *gpu.Kernel) {
	if old, gone := g.kernels.Put(key, k); gone {
		_ = old.Close() // never fails
	}
}

// compiled reports whether the kernel with the key is there.
func (g *engine) compiled(key []byte) bool {
	return recent.Find(&g.kernels, key) != nil
}

// wanted reports whether the kernel with the key, which is not there, is asked for the second time.
func (g *engine) wanted(key []byte) bool {
	if g.asked == nil || len(g.asked) >= maxKernels {
		g.asked = map[string]int{}
	}
	g.asked[string(key)]++
	return g.asked[string(key)] == 2
}

// prepare compiles a kernel in the background. If that fails, those who want it go on with another one and ask again.
func (g *engine) prepare(key []byte, build func() (shaders.Program, error)) {
	name := string(key)
	go func() {
		k, err := g.compile(build, true)
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.asked, name)
		if err == nil && g.kernels.Peek(name) == nil && g.life == g.dev.Generation() {
			g.keep(name, k)
		} else {
			_ = k.Close() // never fails
		}
	}()
}

// maxKernels bounds the kernels that are held, for programs that run long and keep making new expressions.
const maxKernels = 512

// run is one evaluation: its temporaries and the scratch memory of its builders.
type run struct {
	g      *engine
	temps  []temp
	cuts   map[*node]bool
	owners []*Any
	places []fuse.Place
	budget int // nodes that the search for a host may still visit
}

type temp struct {
	n *node
	m *Any
}

// assign queues the computation of n into dst, whose size is n's.
func (g *engine) assign(dst *Any, n *node) error {
	return g.during(func(r *run) error {
		r.cuts = cuts(n, int(g.dev.Limits().MaxStorageBuffers))
		return r.evaluate(dst, n)
	})
}

// during runs fn as one evaluation, with temporaries that end with it.
func (g *engine) during(fn func(r *run) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if life := g.dev.Generation(); life != g.life { // it came back without them, but for those compiled since
		g.kernels.Each(func(k *gpu.Kernel) { _ = k.Close() }) // never fails
		g.kernels.Clear()
		g.asked, g.life = nil, life
	}
	r := &g.run
	r.g, r.cuts = g, nil
	err := fn(r)
	for _, t := range r.temps {
		err = firstError(err, t.m.buf.Close())
	}
	clear(r.temps)
	clear(r.owners[:cap(r.owners)]) // the device keeps the engine, which must not keep matrices that nobody closes
	r.temps, r.cuts = r.temps[:0], nil
	return err
}

// newTemp makes a contiguous temporary of n's size.
func (r *run) newTemp(n *node, rows, cols int) (*Any, error) {
	t := n.t.Compute()
	if err := checkDims("Assign", rows, cols); err != nil {
		return nil, err
	}
	buf, err := buffer.New(r.g.dev, rows*cols*t.Size())
	if err != nil {
		return nil, err
	}
	m := &Any{layout: layout{rows: rows, cols: cols, stride: cols}, t: t, dev: r.g.dev, buf: buf}
	r.temps = append(r.temps, temp{n, m})
	return m, nil
}

// materialise evaluates a node into a temporary, or returns the matrix it is.
func (r *run) materialise(n *node) (*Any, error) {
	if n.kind == kindLeaf {
		return n.leaf, n.current()
	}
	for _, t := range r.temps {
		if t.n == n {
			return t.m, nil
		}
	}
	m, err := r.newTemp(n, n.rows, n.cols)
	if err != nil {
		return nil, err
	}
	at := len(r.temps) - 1
	r.temps[at].n = nil // not to be found before it is computed
	if err := r.evaluate(m, n); err != nil {
		return nil, err
	}
	r.temps[at].n = n
	return m, nil
}

// operand resolves a product's or a reduction's operand to a matrix, with the transposes above it applied.
func (r *run) operand(n *node, flip bool) (load, error) {
	n, flip = resolve(n, flip)
	m, err := r.materialise(n)
	if err != nil {
		return load{}, err
	}
	l := m.layout
	if flip {
		l = l.t()
	}
	return load{m, l}, nil
}

// cut reports whether a node is evaluated by itself because the tree around it is too large for one kernel.
func (r *run) cut(n *node) bool { return len(r.cuts) > 0 && r.cuts[n] }

// evaluate computes n into dst.
func (r *run) evaluate(dst *Any, n *node) error {
	if dst.empty() {
		return nil
	}
	n, flip := resolve(n, false)
	if n.large || dst.large() {
		return r.inBlocks(dst, n, flip)
	}
	switch n.kind {
	case kindReduce:
		return r.reduce(dst, n, flip)
	case kindSoftmax:
		return r.softmax(dst, n, flip)
	}
	r.budget = hostBudget
	if h, ok := r.findHost(n, flip, dst.rows, dst.cols); ok && n.t.Compute() == h.n.t.Compute() {
		return r.product(dst, n, flip, h)
	}
	return r.mapped(dst, n, flip)
}

// viaTemp computes n into a temporary and copies it to dst: for results that share elements with their operands.
func (r *run) viaTemp(dst *Any, n *node, compute func(*Any) error) error {
	m, err := r.newTemp(n, dst.rows, dst.cols)
	if err != nil {
		return err
	}
	if dst.order == ColMajorOrder {
		m.order, m.stride = ColMajorOrder, dst.rows
	}
	at := len(r.temps) - 1
	r.temps[at].n = nil
	if err := compute(m); err != nil {
		return err
	}
	return r.evaluate(dst, m.node())
}
