// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
	"github.com/sublet-gpu/sublet/internal/shaders/product"
)

// host is the product in an expression whose kernel takes the rest as its tail, and the transposes above it.
type host struct {
	n    *node
	flip bool
}

// product computes a matrix product with an element-wise tail.
func (r *run) product(dst *Any, n *node, flip bool, h host) error {
	turn := turned(dst)
	b := r.newBuilder(dst, n.t, turn)
	b.host = host{h.n, h.flip != turn}
	again := func(m *Any) error { return r.product(m, n, flip, h) }
	if dst.t == fuse.F16 && b.storeClass() != fuse.Vector {
		return r.viaTemp(dst, n, again)
	}
	x, y, err := r.factors(b.host)
	if err != nil {
		return err
	}
	if err := b.build(n, flip != turn); err != nil {
		return err
	}
	if b.hazard() || x.m.buf.Same(dst.buf) || y.m.buf.Same(dst.buf) {
		return r.viaTemp(dst, n, again)
	}
	if err := b.bind(r.g.maxSlots(2)); err != nil {
		return err
	}
	return r.multiply(b, x, y)
}

// factors returns the operands of the product that the kernel computes: of a transposed one, the transposes in the other
// order.
func (r *run) factors(h host) (x, y load, err error) {
	a, b := h.n.args[0], h.n.args[1]
	if h.flip {
		a, b = b, a
	}
	if x, err = r.operand(a, h.flip); err == nil {
		y, err = r.operand(b, h.flip)
	}
	return x, y, err
}

// multiply plans the passes of a product and launches them.
func (r *run) multiply(b *builder, x, y load) error {
	var own [plan.Buffers]gpu.Arg
	var err error
	if own[plan.A], err = x.arg(); err != nil {
		return err
	}
	if own[plan.B], err = y.arg(); err != nil {
		return err
	}
	request := product.Request{
		M: b.rows, N: b.cols, K: x.l.cols, A: x.factor(), B: y.factor(), Compute: b.f.Type, Device: r.g.device(),
	}
	p, err := r.plan(b, &request)
	if err != nil {
		return fail("Mul", ErrLimit, err.Error())
	}
	if p.Scratch > 0 {
		if own[plan.Scratch], err = r.scratch(b.f.Type, p.Scratch); err != nil {
			return err
		}
	}
	for i := range p.Passes {
		if err := r.pass(b, &p.Passes[i], &own); err != nil {
			return err
		}
	}
	b.wrote()
	return nil
}

// plan chooses the kernels of a product. Where the best ones take long to compile, the first product is computed by others
// and so are those that follow until the best ones are there; they are compiled in the background when a second product
// asks for them.
func (r *run) plan(b *builder, request *product.Request) (product.Plan, error) {
	g := r.g
	best, err := product.Pick(request)
	if err != nil || !g.narrow || len(best.Passes) == 0 || g.compiled(b.passKey(&best.Passes[0])) {
		return best, err
	}
	first := &best.Passes[0]
	if g.wanted(b.passKey(first)) {
		f := copyFunc(first.Func(&b.f, b.f.Type))
		g.prepare(b.passKey(first), func() (shaders.Program, error) { return product.Build(first.Spec, f) })
	}
	return product.PickNow(request, func(s product.Spec, parts int) bool {
		p := product.Pass{Spec: s}
		if parts > 1 {
			p.To = plan.Scratch
		}
		return g.compiled(b.passKey(&p))
	})
}

// passKey identifies the kernel of a pass, until the next call.
func (b *builder) passKey(p *product.Pass) []byte {
	g := b.run.g
	g.key = p.Func(&b.f, b.f.Type).Key(p.Spec.Key(append(g.key[:0], 'p')))
	return g.key
}

// pass launches one pass of a product.
func (r *run) pass(b *builder, p *product.Pass, own *[plan.Buffers]gpu.Arg) error {
	g := r.g
	f := p.Func(&b.f, b.f.Type)
	k, err := g.kernel(b.passKey(p), func() (shaders.Program, error) { return product.Build(p.Spec, copyFunc(f)) })
	if err != nil {
		return err
	}
	g.args = g.args[:0]
	for _, o := range p.Own {
		g.args = append(g.args, own[o])
	}
	g.params = append(g.params[:0], p.Shape...)
	if p.To == plan.Result {
		if g.args, err = b.args(g.args, b.covers()); err != nil {
			return err
		}
		g.params = b.params(g.params)
	} else {
		g.args = append(g.args, own[p.To])
		g.params = f.Params(g.params, p.Place(fuse.Place{}), nil, nil)
	}
	return k.Dispatch(p.Groups, g.params, g.args...)
}

// factor describes an operand of a product.
func (ld load) factor() product.Operand {
	return product.Operand{
		Type: ld.m.t, ColMajor: ld.l.order == ColMajorOrder, Offset: ld.l.offset, Stride: ld.l.stride, Scalars: !ld.m.vectors(),
	}
}

// arg brings an operand that a kernel reads by itself up to date and binds it: the whole buffer, or of one larger than a
// binding may be the part that is needed, from which on the layout then counts.
func (ld *load) arg() (gpu.Arg, error) {
	a, shift, err := ld.m.bindRange(ld.l.offset, ld.l.offset+ld.l.span(), false, false)
	ld.l.offset -= shift
	return a, err
}

// part binds elements lo to hi-1 of a buffer, and tells how many elements before lo the binding begins.
func part(mem *gpu.Buffer, lo, hi, size int) (a gpu.Arg, shift int, err error) {
	from := lo * size / 256 * 256
	to := min((hi*size+15)/16*16, int(mem.Size()))
	limit := bindingLimit(mem.Device())
	if uint64(to-from) > limit {
		return a, 0, fail("Assign", ErrLimit, itoa(to-from), " bytes bound at once, the device allows ", itoa(int(limit)))
	}
	return gpu.Arg{Buffer: mem, Offset: uint64(from), Size: uint64(to - from)}, from / size, nil
}

// scratch takes memory for partial results, until the end of the evaluation.
func (r *run) scratch(t fuse.Type, size int) (gpu.Arg, error) {
	m, err := r.newTemp(&node{t: t}, 1, size/t.Size())
	if err != nil {
		return gpu.Arg{}, err
	}
	mem, err := m.buf.Writable(true)
	return gpu.Arg{Buffer: mem}, err
}

// device describes the device to those who choose kernels.
func (g *engine) device() plan.Device {
	l := g.dev.Limits()
	return plan.Device{Software: g.software, SwiftShader: g.narrow, MaxInvocations: int(l.MaxInvocations), MaxMemory: int(l.MaxWorkgroupMemory)}
}
