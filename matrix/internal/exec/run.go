// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/host"
	"github.com/sublet-gpu/sublet/internal/recent"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// Run is one evaluation.
type Run struct {
	x     *Executor
	ctx   context.Context //nolint:containedctx // ends with the evaluation
	temps []*buffer.Buffer
	aside state // of an evaluation that computes a temporary and then copies that to the destination
	hold  bool  // an evaluation in ranges has memory for all of the result
	tree
	known     []plan.Memory // of the plan in progress
	elsewhere bool          // some memory did not begin with its buffer
	params    []byte        // of the launch in progress
	args      []gpu.Arg
}

// state of an evaluation that may go by way of a temporary.
type state uint8

const (
	direct state = iota
	computing
	copying
)

// Assign queues the computation of n into dst, whose size is n's.
func (r *Run) Assign(dst Dense, n *expr.Node) error {
	dst, n, err := lower(dst, n)
	if err != nil {
		return err
	}
	p, err := r.planned(dst, n)
	if err != nil {
		return err
	}
	if len(p.Steps) > 1 && r.aside == direct && (r.overlapped() || streams && divided(r, p, dst)) {
		return r.apart(dst, func(temp Dense) error { return r.Assign(temp, n) })
	}
	if err = r.prepared(p); err == nil {
		if streams {
			err = replace(r, p, dst)
		} else {
			_, err = r.perform(p)
		}
	}
	if err != nil {
		r.refused()
	}
	return err
}

// Refusable is a [Source] that wants to know of evaluations that failed.
type Refusable interface{ Refused() }

// refused tells the leaves that the evaluation failed.
func (r *Run) refused() {
	for n := range r.nodes {
		if s, ok := n.Source.(Refusable); ok {
			s.Refused()
		}
	}
}

// prepared compiles the kernels that write more of the result once a first one has: if one cannot be compiled, nothing is changed.
func (r *Run) prepared(p *plan.Plan) error {
	first := slices.IndexFunc(p.Steps, func(s *plan.Step) bool { return s.To.Mem == 0 })
	for _, s := range p.Steps[first+1:] {
		if s.Launch == nil || s.Sooner != nil || r.x.kernels.Get(s.Key) != nil {
			continue
		}
		if _, err := r.x.kernel(r.ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// begin makes a plan the one in progress.
func (r *Run) begin(p *plan.Plan) {
	r.known = p.Memories
	for len(r.buffers) < len(p.Memories) {
		r.buffers = append(r.buffers, nil) // made when it is first used
	}
}

// perform queues the steps of a plan, and returns how many it has queued.
func (r *Run) perform(p *plan.Plan) (done int, err error) {
	r.begin(p)
	for i, s := range p.Steps {
		if err = r.step(s); err != nil {
			return i, err
		}
	}
	return len(p.Steps), nil
}

// overlapped reports whether an operand wraps host memory that overlaps the result's: it would get what the plan's first kernels
// write before the last ones have read it. The planner, which compares buffers, does not know of that.
func (r *Run) overlapped() bool {
	return slices.ContainsFunc(r.buffers[1:], func(b *buffer.Buffer) bool { return !b.Same(r.buffers[0]) && b.Overlaps(r.buffers[0]) })
}

// apart has compute write a temporary that is then copied to dst.
func (r *Run) apart(dst Dense, compute func(Dense) error) error {
	temp, err := r.Temp(dst.Type, dst.Layout)
	if err != nil {
		return err
	}
	if streams {
		defer func() { r.aside = direct }()
		r.aside = computing
	}
	if err = compute(temp); err != nil {
		return err
	}
	if streams {
		r.aside = copying
	}
	return r.Assign(dst, Leaf(r.x.dev, temp, temp))
}

// planned reads an expression and finds its plan, or makes one.
func (r *Run) planned(dst Dense, n *expr.Node) (*plan.Plan, error) {
	r.forget()
	to := r.operand(dst)
	if err := r.node(n); err != nil {
		return nil, err
	}
	room := uint64(0)
	if streams {
		var err error
		if room, err = makeRoom(r, dst); err != nil {
			return nil, err
		}
		r.put(int(room))
	}
	if p := recent.Find(&r.x.plans, r.key); p != nil {
		return p, nil
	}
	r.x.planned++
	for n := range r.nodes { // the plan may keep them
		if n.Passing {
			n.Passing = false
		}
	}
	p, err := plan.New(plan.Input{
		Device: r.x.info, Root: n, To: to,
		Memories: slices.Clone(r.memories), Numbers: r.numbers, Free: room,
		Operand: func(n *expr.Node) plan.Operand { return r.operands[r.nodes[n]] },
	})
	if err == nil && len(r.key) <= maxKey && len(p.Steps) <= maxSteps {
		r.x.plans.Put(string(r.key), p)
	}
	return p, err
}

// Temp makes a temporary matrix without gaps, of the size and order of l.
func (r *Run) Temp(t fuse.Type, l expr.Layout) (Dense, error) {
	l.Offset, l.Stride = 0, l.Minor()
	b, err := r.temp(l.Major() * l.Stride * t.Size())
	return Dense{l, t, b}, err
}

// temp makes temporary memory. What is too large for the device is the host's, which is used in windows.
func (r *Run) temp(size int) (b *buffer.Buffer, err error) {
	most := r.x.info.Buffer
	if streams {
		most = largest(r.x)
	}
	if uint64(size) <= most {
		b, err = buffer.New(r.x.dev, size)
	} else {
		b, err = buffer.Wrap(r.x.dev, gpu.HostBytes(make([]byte, size)), nil)
	}
	if err == nil {
		r.temps = append(r.temps, b)
	}
	return b, err
}

// own makes memory of a plan.
func (r *Run) own(m *plan.Memory) (b *buffer.Buffer, err error) {
	if !streams || !m.Windowed {
		return r.temp(m.Size)
	}
	if b, err = buffer.WrapRanged(r.x.dev, gpu.HostBytes(make([]byte, m.Size))); err == nil {
		r.temps = append(r.temps, b)
	}
	return b, err
}

// step queues a step of a plan.
func (r *Run) step(s *plan.Step) (err error) {
	if s.Sooner != nil && !r.x.ready(s) {
		s = s.Sooner
	}
	var k *gpu.Kernel
	if s.Launch != nil {
		if k, err = r.x.kernel(r.ctx, s); err != nil {
			return err
		}
	}
	return r.launch(s, k)
}

// launch queues a step with its kernel, which is nil where the step only binds, and marks what it writes.
func (r *Run) launch(s *plan.Step, k *gpu.Kernel) error {
	r.args, r.params = r.args[:0], append(r.params[:0], s.Params...)
	for i := range s.Bindings {
		if err := r.bind(&s.Bindings[i]); err != nil {
			return err
		}
	}
	if k == nil {
		return nil
	}
	for _, n := range s.Numbers {
		binary.LittleEndian.PutUint32(r.params[4*n.Word:], r.numbers[n.Index])
	}
	if err := k.Dispatch(s.Groups, r.params, r.args...); err != nil {
		return err
	}
	r.buffers[s.To.Mem].Wrote(r.x.dev, s.To.Region(s.To.Type.Size()))
	return nil
}

// bind appends a binding's memory to the arguments and makes the words that count from its beginning do so.
func (r *Run) bind(w *plan.Binding) error {
	b := r.buffers[w.Mem]
	if b == nil {
		var err error
		if b, err = r.own(&r.known[w.Mem]); err != nil {
			return err
		}
		r.buffers[w.Mem] = b
	}
	size := w.Type.Size()
	lo, hi := 0, b.Size()
	if r.known[w.Mem].Windowed || b.Device() != r.x.dev { // of which the device has as much as is used
		hi = min((w.Hi*size+3)/4*4, hi)
		lo = min(w.Lo*size, hi) // a matrix without elements may begin behind the memory
	}
	mem, base, err := b.Use(r.ctx, r.x.dev, buffer.Range(lo, hi-lo), w.Intent)
	if err != nil {
		return err
	}
	r.elsewhere = r.elsewhere || base != 0
	a := gpu.Arg{Buffer: mem}
	if limit := r.x.info.Binding; mem.Size() > limit {
		base = w.Lo * size / 256 * 256
		end := min((w.Hi*size+15)/16*16, int(mem.Size()))
		a.Offset, a.Size = uint64(base), uint64(end-base)
		if !streams && a.Size > limit { // else the planner has seen to it
			return expr.Fail("Assign", gpu.ErrLimit, "more bytes bound at once than the device allows")
		}
	}
	r.args = append(r.args, a)
	for _, k := range w.Words {
		word := r.params[4*k:]
		binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)-uint32(base/size/w.Unit))
	}
	return nil
}

// The longest key and the most steps of a plan that is kept, and how many nodes the table of a tree is kept for.
const (
	maxKey   = 1 << 14
	maxSteps = 1 << 12
	maxTable = 1 << 12
)

// tree is an expression as its plan sees it: the operands in their memories, the distinct numbers, and a key that is the same
// for all expressions with the same plan.
type tree struct {
	key      []byte
	buffers  []*buffer.Buffer // of memories
	memories []plan.Memory
	nodes    map[*expr.Node]int // numbers them
	operands []plan.Operand     // of the nodes that are leaves
	numbers  []uint32
}

// forget drops everything that belongs to the caller's matrices, so that the device keeps none of them.
func (t *tree) forget() {
	clear(t.buffers)
	t.key, t.buffers, t.memories = t.key[:0], t.buffers[:0], t.memories[:0]
	t.operands, t.numbers = t.operands[:0], t.numbers[:0]
	if t.nodes == nil || len(t.nodes) > maxTable {
		t.nodes = map[*expr.Node]int{}
	}
	clear(t.nodes)
}

func (t *tree) put(v ...int) {
	for _, x := range v {
		t.key = binary.AppendUvarint(t.key, uint64(x))
	}
}

// operand appends a matrix to the key.
func (t *tree) operand(d Dense) plan.Operand {
	mem := t.memory(d.Buf)
	t.put(int(d.Type), d.Rows, d.Cols, d.Offset, d.Stride, shaders.Bit(d.ColMajor))
	return plan.Operand{Layout: d.Layout, Type: d.Type, Mem: mem}
}

// memory appends the number of a buffer to the key, and what plans depend on of one that is new. The buffer of an empty
// matrix may be nil.
func (t *tree) memory(b *buffer.Buffer) int {
	at := slices.IndexFunc(t.buffers, b.Same)
	if at >= 0 {
		t.put(at)
		return at
	}
	at = len(t.buffers)
	m := plan.Memory{Vectors: true}
	if b != nil {
		m = plan.Memory{
			Size: b.Size(), Vectors: b.Mode() != buffer.External || b.HasHost() || b.Size()%16 == 0, Windowed: b.Windowed(),
		}
	}
	t.buffers = append(t.buffers, b)
	t.memories = append(t.memories, m)
	t.put(at, m.Size, shaders.Bit(m.Vectors), shaders.Bit(m.Windowed))
	return at
}

// node appends a node to the key: its number if it was there already.
func (r *Run) node(n *expr.Node) error {
	t := &r.tree
	if at, seen := t.nodes[n]; seen {
		t.put(1 + at)
		return nil
	}
	t.nodes[n] = len(t.operands)
	t.operands = append(t.operands, plan.Operand{})
	t.put(0, int(n.Kind), int(n.Type))
	switch n.Kind {
	case expr.Leaf, expr.Words:
		return r.leaf(n)
	case expr.Scalar:
		bits := n.Bits()
		k := slices.Index(t.numbers, bits)
		if k < 0 {
			k = len(t.numbers)
			t.numbers = append(t.numbers, bits)
		}
		t.put(n.Rows, n.Cols, k)
		return nil
	case expr.Call:
		t.put(len(n.Call.Name), len(n.Call.WGSL))
		t.key = append(append(t.key, n.Call.Name...), n.Call.WGSL...)
	}
	if n.Kind == expr.Sort {
		t.put(n.Cols)
	}
	if n.Kind == expr.Factor {
		t.put(int(n.Routine), n.Form.Bits(), int(n.Value))
	}
	if n.Kind == expr.Index || n.Kind == expr.Reshape || n.Kind == expr.Sparse {
		t.put(n.Rows, n.Cols)
	}
	if n.Kind == expr.StackProduct {
		s := n.Stack
		t.put(n.Rows, n.Cols, s.Count, shaders.Bit(s.Turned[0])|2*shaders.Bit(s.Turned[1]))
	}
	if n.Kind == expr.Reduce || n.Kind == expr.Index {
		t.key = binary.LittleEndian.AppendUint64(t.key, math.Float64bits(n.Value))
	}
	t.put(int(n.Op), int(n.Red), int(n.Axis), shaders.Bit(n.Log)|2*shaders.Bit(n.Hard)|4*shaders.Bit(n.Down)|8*shaders.Bit(n.Index), len(n.Args))
	for _, a := range n.Args {
		if err := r.node(a); err != nil {
			return err
		}
	}
	return nil
}

// Lister is a [Source] of int32 that the host has and that the device is to have during the evaluation.
type Lister interface {
	// List returns the numbers, after Current; none where the device has them.
	List() []int32
}

// fitsBefore is what a matrix needs that was resized.
const fitsBefore = "a matrix has to keep the size that it was used with"

// leaf appends a matrix of the expression, which may have changed since the expression was built, but not its size.
func (r *Run) leaf(n *expr.Node) error {
	d, err := n.Source.(Source).Current()
	if l, ok := n.Source.(Lister); ok && err == nil {
		if list := l.List(); len(list) > 0 {
			d, err = r.upload(list)
		}
	}
	if err != nil {
		return err
	}
	if n.Kind == expr.Leaf && (d.Rows != n.Rows || d.Cols != n.Cols) {
		return expr.ShapeError("Assign", fitsBefore, n.Shape(), d.Shape())
	}
	r.operands[r.nodes[n]] = r.operand(d)
	return nil
}

// upload is a temporary row of numbers.
func (r *Run) upload(list []int32) (Dense, error) {
	d, err := r.Temp(fuse.I32, expr.Layout{Rows: 1, Cols: len(list)})
	if err == nil {
		err = d.Buf.Write(0, gpu.HostBytes(host.BytesOf(list)))
	}
	return d, err
}

// explained plans the computation of a node into memory that there is not.
func (r *Run) explained(n *expr.Node) (*plan.Plan, error) {
	r.forget()
	d, n, err := lower(Dense{Layout: expr.Layout{Rows: n.Rows, Cols: n.Cols, Stride: n.Cols}, Type: n.Type}, n)
	if err != nil {
		return nil, err
	}
	to := r.operand(d)
	r.memories[to.Mem].Size = n.Rows * n.Cols * n.Type.Size()
	if err := r.node(n); err != nil {
		return nil, err
	}
	return plan.New(plan.Input{
		Device: r.x.info, Root: n, To: to, Memories: slices.Clone(r.memories), Numbers: r.numbers,
		Operand: func(n *expr.Node) plan.Operand { return r.operands[r.nodes[n]] },
	})
}
