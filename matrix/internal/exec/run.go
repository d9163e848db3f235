// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/recent"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	shaderplan "github.com/sublet-gpu/sublet/internal/shaders/plan"
	"github.com/sublet-gpu/sublet/internal/shaders/product"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// Run is one evaluation.
type Run struct {
	x     *Executor
	ctx   context.Context //nolint:containedctx // ends with the evaluation
	temps []*buffer.Buffer
	tree
	known  []plan.Memory // of the plan in progress
	places []fuse.Place  // scratch memory of launches
	bits   []uint32
	params []byte
	args   []gpu.Arg
	pass   []byte
}

// Assign queues the computation of n into dst, whose size is n's.
func (r *Run) Assign(dst Dense, n *expr.Node) error {
	p, err := r.planned(dst, n)
	if err != nil {
		return err
	}
	if len(p.Steps) > 1 && r.overlapped() {
		return r.assignByTemp(dst, n)
	}
	r.known = p.Memories
	for len(r.buffers) < len(p.Memories) {
		r.buffers = append(r.buffers, nil) // made when it is first used
	}
	for i := range p.Steps {
		if err := r.step(&p.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// overlapped reports whether an operand wraps host memory that overlaps the result's: it would get what the plan's first kernels
// write before the last ones have read it. The planner, which compares buffers, does not know of that.
func (r *Run) overlapped() bool {
	return slices.ContainsFunc(r.buffers[1:], func(b *buffer.Buffer) bool { return !b.Same(r.buffers[0]) && b.Overlaps(r.buffers[0]) })
}

// assignByTemp is Assign by way of memory that overlaps nothing.
func (r *Run) assignByTemp(dst Dense, n *expr.Node) error {
	l := expr.Layout{Rows: dst.Rows, Cols: dst.Cols, Order: dst.Order}
	l.Stride = l.Minor()
	temp := Dense{Layout: l, Type: dst.Type}
	size := l.Major() * l.Stride * dst.Type.Size()
	var err error
	if uint64(size) <= r.x.dev.Info().Limits.MaxBufferSize {
		temp.Buf, err = buffer.New(r.x.dev, size)
	} else { // only memory of the host's is used in windows
		temp.Buf, err = buffer.Wrap(r.x.dev, gpu.HostBytes(make([]byte, size)), nil)
	}
	if err != nil {
		return err
	}
	r.temps = append(r.temps, temp.Buf)
	if err := r.Assign(temp, n); err != nil {
		return err
	}
	return r.Assign(dst, temp.Leaf(r.x.dev))
}

// planned reads an expression and finds its plan, or makes one.
func (r *Run) planned(dst Dense, n *expr.Node) (*plan.Plan, error) {
	if err := r.read(dst, n); err != nil {
		return nil, err
	}
	p := recent.Find(&r.x.plans, r.key)
	if p == nil {
		var err error
		if p, err = r.plan(dst, n); err != nil {
			return nil, err
		}
		if len(r.key) <= maxKey {
			r.x.plans.Put(string(r.key), p)
		}
	}
	return p, nil
}

// plan makes a plan of the expression that was read.
func (r *Run) plan(dst Dense, n *expr.Node) (*plan.Plan, error) {
	r.x.planned++
	return plan.New(plan.Input{
		Device: r.x.info, Root: n, To: plan.Operand{Layout: dst.Layout, Type: dst.Type}, Memories: slices.Clone(r.memories),
		Operand: func(source any) plan.Operand {
			at, _ := r.leaves.add(source)
			return r.operands[at]
		},
		Number: func(bits uint32) (int, bool) {
			at := slices.Index(r.numbers, bits)
			return at, at >= 0
		},
	})
}

// Temp makes a temporary matrix.
func (r *Run) Temp(t fuse.Type, l expr.Layout) (Dense, error) {
	b, err := r.temp(l.Major() * l.Stride * t.Size())
	return Dense{l, t, b}, err
}

func (r *Run) temp(size int) (*buffer.Buffer, error) {
	b, err := buffer.New(r.x.dev, size)
	if err != nil {
		return nil, err
	}
	r.temps = append(r.temps, b)
	return b, nil
}

// Input begins the input of a plan that package plan makes for sparse matrices, of one step: the result and the other
// buffers are its memories, in this order.
func (r *Run) Input(to Dense, buffers ...*buffer.Buffer) plan.Input {
	r.forget()
	in := plan.Input{Device: r.x.info, To: r.operand(to)}
	for _, b := range buffers {
		r.memory(b)
	}
	in.Memories = r.memories
	return in
}

// Memory returns the number of a buffer among those of the last [Run.Input].
func (r *Run) Memory(b *buffer.Buffer) int { return r.memory(b) }

// Launch queues a step over the memories of the last [Run.Input].
func (r *Run) Launch(s plan.Step) error {
	r.known = r.memories
	return r.step(&s)
}

// Prepare compiles the kernel of a step.
func (r *Run) Prepare(s plan.Step) error {
	_, err := r.x.kernel(r.ctx, s.Key, s.Build)
	return err
}

// step queues a step of a plan.
func (r *Run) step(s *plan.Step) error {
	switch {
	case s.Reserve:
		_, _, err := r.bind(window(s.To), true, false)
		return err
	case s.Product != nil:
		return r.product(s)
	}
	k, err := r.x.kernel(r.ctx, s.Key, s.Build)
	if err != nil {
		return err
	}
	r.args = r.args[:0]
	for _, w := range s.Own {
		if _, err := r.own(r.whole(w)); err != nil {
			return err
		}
	}
	return r.dispatch(k, s, s.Groups, s.Shape)
}

// whole makes a window of windowed memory all of it, for kernels that were told already where it begins.
func (r *Run) whole(w plan.Window) plan.Window {
	if r.known[w.Mem].Windowed {
		w.Lo, w.Hi = 0, r.known[w.Mem].Size/w.Size
	}
	return w
}

func window(op plan.Operand) plan.Window {
	return plan.Window{Mem: op.Mem, Lo: op.Offset, Hi: op.Offset + op.Span(), Size: op.Type.Size()}
}

// own appends the binding of a window that a kernel reads by itself. It returns how many elements before the window's memory
// the binding begins.
func (r *Run) own(w plan.Window) (shift int, err error) {
	a, shift, err := r.bind(w, false, false)
	r.args = append(r.args, a)
	return shift, err
}

// dispatch appends the bindings and parameters of the step's function, queues the kernel, and marks what it writes.
func (r *Run) dispatch(k *gpu.Kernel, s *plan.Step, groups [3]uint32, shape []byte) error {
	r.params = append(r.params[:0], shape...)
	var err error
	if s.Func != nil {
		err = r.function(s)
	} else {
		var a gpu.Arg
		a, _, err = r.bind(r.whole(window(s.To)), true, false)
		r.args = append(r.args, a)
	}
	if err != nil {
		return err
	}
	if err := k.Dispatch(groups, r.params, r.args...); err != nil {
		return err
	}
	r.buffers[s.To.Mem].Wrote(r.buffers[s.To.Mem].Device(), s.To.Region(s.To.Type.Size()))
	return nil
}

// function binds the slots of a step's function and appends its parameters, which count from where the bindings begin.
func (r *Run) function(s *plan.Step) error {
	var shifts [fuse.MaxSlots + 1]int
	for k, w := range s.Slots {
		a, shift, err := r.bind(w, k == 0, s.Whole && k == 0)
		if err != nil {
			return err
		}
		shifts[k] = shift
		r.args = append(r.args, a)
	}
	r.places, r.bits = r.places[:0], r.bits[:0]
	for k, l := range s.Loads {
		r.places = append(r.places, l.At(shifts[s.Func.Loads[k].Slot]))
	}
	for _, n := range s.Numbers {
		if n.Index >= 0 {
			n.Bits = r.numbers[n.Index]
		}
		r.bits = append(r.bits, n.Bits)
	}
	r.params = s.Func.Params(r.params, s.Store.At(shifts[0]), r.places, r.bits)
	return nil
}

// bind binds a window for reading or, with write set, for writing too; whole says that all of its memory is written. It
// returns how many elements of the memory lie before the binding.
func (r *Run) bind(w plan.Window, write, whole bool) (a gpu.Arg, shift int, err error) {
	b := r.buffers[w.Mem]
	if b == nil {
		if b, err = r.temp(r.known[w.Mem].Size); err != nil {
			return a, 0, err
		}
		r.buffers[w.Mem] = b
	}
	mem, base, from, to := (*gpu.Buffer)(nil), 0, 0, b.Size()
	if r.known[w.Mem].Windowed {
		to = min((w.Hi*w.Size+3)/4*4, to)
		from = min(w.Lo*w.Size, to) // a matrix without elements may begin behind the memory
	}
	intent := buffer.Reads
	switch {
	case write && whole:
		intent = buffer.Replaces
	case write:
		intent = buffer.Writes
	}
	mem, base, err = b.Use(b.Device(), buffer.Range(from, to-from), intent)
	if err != nil {
		return a, 0, err
	}
	limit := r.x.info.Binding
	if mem.Size() <= limit {
		return gpu.Arg{Buffer: mem}, base / w.Size, nil
	}
	first := w.Lo * w.Size / 256 * 256
	end := min((w.Hi*w.Size+15)/16*16, int(mem.Size()))
	if uint64(end-first) > limit {
		detail := strconv.Itoa(end-first) + " bytes bound at once, the device allows " + strconv.Itoa(int(limit))
		return a, 0, expr.Fail("Assign", gpu.ErrLimit, detail)
	}
	return gpu.Arg{Buffer: mem, Offset: uint64(first), Size: uint64(end - first)}, first / w.Size, nil
}

// product queues the passes of a product.
func (r *Run) product(s *plan.Step) error {
	var own [shaderplan.Buffers]gpu.Arg
	var shifts [2]int
	r.args = r.args[:0]
	for k, w := range s.Own {
		var err error
		if shifts[k], err = r.own(w); err != nil {
			return err
		}
	}
	own[shaderplan.A], own[shaderplan.B] = r.args[0], r.args[1]
	p, err := r.passes(s, shifts)
	if err != nil {
		return expr.Fail("Mul", gpu.ErrLimit, err.Error())
	}
	if p.Scratch > 0 {
		b, err := r.temp(p.Scratch)
		if err != nil {
			return err
		}
		if own[shaderplan.Scratch].Buffer, err = b.Memory(buffer.Replaces); err != nil {
			return err
		}
	}
	for i := range p.Passes {
		if err := r.launchPass(s, &p.Passes[i], &own); err != nil {
			return err
		}
	}
	return nil
}

// passes chooses the kernels of a product. Where the best ones take long to compile, the first product is computed by
// others and so are those that follow until the best ones are there; they are compiled in the background when a second
// product asks for them.
func (r *Run) passes(s *plan.Step, shifts [2]int) (product.Plan, error) {
	x, best, request := r.x, s.Product.Best, s.Product.Request
	for k, o := range []*product.Operand{&request.A, &request.B} {
		if w := s.Own[k]; r.known[w.Mem].Windowed {
			o.Offset = w.Lo - shifts[k]
		}
	}
	if request != s.Product.Request {
		var err error
		if best, err = product.Pick(&request); err != nil {
			return best, err
		}
	}
	if !x.info.SwiftShader || len(best.Passes) == 0 || r.compiled(s, &best.Passes[0]) {
		return best, nil
	}
	first := &best.Passes[0]
	if x.wanted(r.pass) {
		x.prepare(string(r.pass), func() (shaders.Program, error) { return s.BuildPass(first) })
	}
	return product.PickNow(&request, func(spec product.Spec, parts int) bool {
		p := product.Pass{Spec: spec}
		if parts > 1 {
			p.To = shaderplan.Scratch
		}
		return r.compiled(s, &p)
	})
}

// compiled reports whether the kernel of a pass is there, and leaves its key in r.pass.
func (r *Run) compiled(s *plan.Step, p *product.Pass) bool {
	r.pass = s.PassKey(r.pass[:0], p)
	return recent.Find(&r.x.kernels, r.pass) != nil
}

// launchPass queues one pass of a product.
func (r *Run) launchPass(s *plan.Step, p *product.Pass, own *[shaderplan.Buffers]gpu.Arg) error {
	r.pass = s.PassKey(r.pass[:0], p)
	k, err := r.x.kernel(r.ctx, string(r.pass), func() (shaders.Program, error) { return s.BuildPass(p) })
	if err != nil {
		return err
	}
	r.args = r.args[:0]
	for _, o := range p.Own {
		r.args = append(r.args, own[o])
	}
	if p.To == shaderplan.Result {
		return r.dispatch(k, s, p.Groups, p.Shape)
	}
	r.args = append(r.args, own[p.To])
	r.params = append(r.params[:0], p.Shape...)
	r.params = p.Func(s.Func, s.Func.Type).Params(r.params, p.Place(fuse.Place{}), nil, nil)
	return k.Dispatch(p.Groups, r.params, r.args...)
}
