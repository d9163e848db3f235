// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// DeviceGroup is a group of devices that compute one assignment together, each some rows of the result. Make one with [On]. Its methods
// may be called from several goroutines.
type DeviceGroup struct {
	devices  []*gpu.Device
	balancer balance.Balancer
	last     atomic.Pointer[[]Share]
}

// Share is the part of a [DeviceGroup]'s last assignment that one device computed.
type Share struct {
	Device  int     `json:"device"`  // its place in the call of On
	Count   int     `json:"count"`   // rows of the result, or columns of one that is divided by those
	Seconds float64 `json:"seconds"` // with its transfers
}

// On makes a group of devices that computes large products and element-wise expressions together. It does not close the devices.
//
//	group, err := matrix.On(devices...)
//	err = group.Assign(ctx, matrix.Into(c, matrix.Mul(a, b).Relu()))
//
// The devices may be of different drivers, and a device may be listed several times. A nil device, no device and more than 1024 are
// [gpu.ErrInvalid], a closed one is [gpu.ErrClosed].
func On(devices ...*gpu.Device) (*DeviceGroup, error) {
	const op = "On"
	if len(devices) == 0 || len(devices) > maxGroup || slices.Contains(devices, nil) {
		return nil, fail(op, gpu.ErrInvalid, "1 to ", itoa(maxGroup), " devices are needed, none of them nil")
	}
	for _, d := range devices {
		if err := d.Usable(); err != nil {
			return nil, named(op, err)
		}
	}
	return &DeviceGroup{devices: slices.Clone(devices), balancer: balance.New()}, nil
}

const (
	maxGroup  = 1024 // what balancers take
	groupStep = 64   // rows that stay together, so that tiles are whole
	probeStep = 16   // and those of the parts that find the speeds out
	probing   = 32   // a first call finds the speeds out with two such parts of the result
)

// Assign is [Dense.Assign] on all devices of the group. Each computes some rows of the result (or columns, if it has few rows), as many as
// fit its speed in former calls. Assign returns when the result is in its matrix: in the caller's memory if the matrix wraps some, so that
// no [Dense.Sync] is needed, else on the matrix's device, which need not belong to the group. All operands are on one device, as those of
// any expression, which need not be that of the result and need not belong to the group either. They are copied through the host to
// the devices that need them: some rows of element-wise operands and of the left factor of a product, and all of the right factor. A
// device keeps these copies until the operand is closed, and later calls copy only what has changed. In a page, operands on another
// device have to wrap memory and be synced.
//
// The rows must be independent of each other: decompositions, sparse matrices, stacks and reshaped matrices are [gpu.ErrUnsupported];
// assign such a part of the expression by itself before.
//
// If a device is lost, the others compute its rows. The error is [gpu.ErrDeviceLost] only if no device is left, or if elements were on the
// lost device alone. After an error, and if the context ends, the result's matrix is as it was.
func (g *DeviceGroup) Assign(ctx context.Context, s Step) error {
	const op = "Assign"
	err := fault.Ended(ctx, "matrix: ", op)
	switch {
	case g == nil || len(g.devices) == 0:
		return fail(op, buffer.ErrNil, "a group that On did not make")
	case err != nil || s.err != nil:
		return firstError(err, s.err)
	case s.to == nil || s.n == nil:
		return fail(op, buffer.ErrNil, "a step that nobody made")
	}
	if err = s.to.usable(op); err != nil {
		return err
	}
	t := fuse.F32
	if s.to.typed != 0 {
		t = s.to.t
	}
	n := promoted(s.n.Typed(t), t)
	id, err := surveyed(op, n)
	if err != nil {
		return err
	}
	home := cmp.Or(s.to.dev, n.Dev)
	if home == nil {
		home = g.devices[max(slices.IndexFunc(g.devices, func(d *gpu.Device) bool { return d.Usable() == nil }), 0)]
	}
	return s.to.store(op, home, n.Type, n.Rows, n.Cols, func(dst exec.Dense) error {
		if dst.Empty() {
			return nil
		}
		if dst.Buf.Accessed() {
			return fail(op, gpu.ErrMapped, "a function of Access runs")
		}
		j := &groupJob{DeviceGroup: g, ctx: ctx, n: n, id: id, dst: dst, home: home}
		defer j.close()
		return j.run()
	})
}

// Last returns what each device computed of the last assignment, in the order of [On]. Before the first assignment it is empty.
func (g *DeviceGroup) Last() []Share {
	if g == nil || g.last.Load() == nil {
		return nil
	}
	return slices.Clone(*g.last.Load())
}

// surveyed refuses expressions whose rows are not computed by themselves, and returns a number that expressions of the same operations and
// sizes have in common.
func surveyed(op string, root *node) (id int, err error) {
	if root.Err != nil {
		return 0, root.Err
	}
	hash, seen := uint64(14695981039346656037), map[*node]bool{} // FNV-1a
	var visit func(n *node)
	visit = func(n *node) {
		for _, v := range []int{int(n.Kind), int(n.Op), int(n.Type), n.Rows, n.Cols, len(n.Args)} {
			hash = (hash ^ uint64(v)) * 1099511628211
		}
		if seen[n] {
			return
		}
		seen[n] = true
		switch n.Kind {
		case expr.Factor, expr.Reshape, expr.Sparse, expr.SparseProduct, expr.StackProduct, expr.Words:
			err = fail(op, gpu.ErrUnsupported, "rows of the result are not independent of each other; assign the decomposition, ",
				"sparse matrix, stack or other shape in the expression by itself first")
		}
		for _, a := range n.Args {
			visit(a)
		}
	}
	visit(root)
	return int(hash >> 1), err
}

// groupJob is one assignment of a group.
type groupJob struct {
	*DeviceGroup
	ctx     context.Context //nolint:containedctx // ends with the call
	n       *node
	id      int
	dst     exec.Dense
	home    *gpu.Device // of the result
	columns bool        // parts are columns
	life    []uint32    // the devices' generations
	parts   []*groupPart
}

// groupPart is a device's part of the result: the rows (columns) from from to to-1.
type groupPart struct {
	device   int
	from, to int
	m        core   // on that device
	host     []byte // in the order of m, where they have to go elsewhere
	took     time.Duration
}

// run computes the parts and, after all of them succeeded, copies them to the result.
func (j *groupJob) run() error {
	const op = "Assign"
	if k := j.n.Kind; k != expr.Softmax && k != expr.Sort && k != expr.Scan { // whose rows are computed whole
		j.columns = j.dst.Rows < 4*len(j.devices) && j.dst.Cols > j.dst.Rows
	}
	for _, d := range j.devices {
		j.life = append(j.life, d.Generation())
	}
	todo, cold := j.spans(), j.balancer.Stats(j.id).Calls == 0
	for len(todo) > 0 {
		s := todo[0]
		again, err := j.attempt(op, s[0], s[1], cold)
		if err != nil {
			return err
		}
		todo, cold = append(again, todo[1:]...), false
	}
	if err := fault.Ended(j.ctx, "matrix: ", op); err != nil {
		return err
	}
	slices.SortFunc(j.parts, func(a, b *groupPart) int { return a.from - b.from })
	if err := j.land(op); err != nil {
		return err
	}
	shares := make([]Share, len(j.devices))
	for i := range shares {
		shares[i].Device = i
	}
	for _, p := range j.parts {
		shares[p.device].Count += p.to - p.from
		shares[p.device].Seconds += p.took.Seconds()
	}
	j.last.Store(&shares)
	return nil
}

// spans divides the result into spans that fit into the devices' memory. If the speeds are not known, two small ones come first: the
// first compiles kernels and copies the operands that all parts need, the second measures the speeds.
func (j *groupJob) spans() (list [][2]int) {
	n, length := j.dst.Rows, j.dst.Cols
	if j.columns {
		n, length = length, n
	}
	most := n
	for _, d := range j.devices {
		if l := d.Info().Limits; l.MaxBufferSize > 0 { // of one that is open
			most = min(most, max(int(min(l.MaxBufferSize, l.MaxBindingSize, 1<<30))/max(length*j.dst.Type.Size(), 1), 1))
		}
	}
	at := 0
	add := func(count int) {
		list = append(list, [2]int{at, at + count})
		at += count
	}
	if first := len(j.devices) * probeStep; len(j.devices) > 1 && j.balancer.Stats(j.id).Calls == 0 && n >= probing/2*first {
		first = max(n/probing/first, 1) * first
		add(first)
		add(first)
	}
	for at < n {
		add(min(n-at, most))
	}
	return list
}

// attempt computes a span, divided among the devices that are not lost. It returns the parts of devices that were lost meanwhile.
func (j *groupJob) attempt(op string, from, to int, cold bool) (again [][2]int, err error) {
	alive := make([]bool, len(j.devices))
	for i := range alive {
		alive[i] = !j.lost(i)
	}
	if !slices.Contains(alive, true) {
		return nil, fail(op, gpu.ErrDeviceLost, "all devices of the group")
	}
	step := groupStep // fewer where a device would get too few of them
	for step > 4 && (to-from)/step < 4*len(alive) {
		step /= 2
	}
	counts, err := j.balancer.Split(balance.Request{ID: j.id, Global: to - from, Step: step, Devices: len(alive), Alive: alive})
	if err != nil {
		return nil, named(op, err)
	}
	var list []*groupPart
	for i, n := range counts {
		if n > 0 {
			list = append(list, &groupPart{device: i, from: from, to: from + n})
			from += n
		}
	}
	errs := j.together(op, list)
	samples := make([]balance.Sample, len(alive))
	for i, p := range list {
		switch e := errs[i]; {
		case e == nil:
			j.parts = append(j.parts, p)
			samples[p.device] = balance.Sample{Count: p.to - p.from, Seconds: p.took.Seconds()}
			continue
		case j.lost(p.device):
			again = append(again, [2]int{p.from, p.to})
		case err == nil || errors.Is(err, context.Canceled):
			err = e
		}
		_ = p.m.close() // what failed is the error
	}
	if err = firstError(fault.Ended(j.ctx, "matrix: ", op), err); err == nil && !cold {
		j.balancer.Observe(j.id, samples)
	}
	return again, err
}

// together computes parts at the same time. The first one that fails ends the others, unless its device was lost.
func (j *groupJob) together(op string, list []*groupPart) []error {
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() {
			if errs[i] = j.part(ctx, op, p); errs[i] != nil && !j.lost(p.device) {
				cancel()
			}
		})
	}
	wg.Wait()
	return errs
}

// lost reports whether a device is lost, or was in this call.
func (j *groupJob) lost(i int) bool {
	d := j.devices[i]
	return d.Usable() != nil || d.Generation() != j.life[i]
}

// block is the rows and columns of a part.
func (j *groupJob) block(p *groupPart) (i, k, l, m int) {
	if j.columns {
		return 0, j.dst.Rows, p.from, p.to
	}
	return p.from, p.to, 0, j.dst.Cols
}

// part computes a part on its device and brings it to the host, unless it stays there.
func (j *groupJob) part(ctx context.Context, op string, p *groupPart) error {
	start, dev := time.Now(), j.devices[p.device]
	i, k, l, m := j.block(p)
	n := onDevice(windowNode(op, j.n, i, k, l, m), dev, map[*node]*node{})
	p.m = core{t: n.Type, typed: 1, dev: dev, Layout: expr.Layout{ColMajor: j.dst.ColMajor}}
	err := firstError(n.Err, fault.Ended(ctx, "matrix: ", op))
	if err == nil {
		err = p.m.assign(ctx, op, n)
	}
	switch {
	case err != nil:
	case dev == j.home && !j.dst.Buf.HasHost():
		err = p.m.buf.Sync(ctx)
	default:
		p.host = make([]byte, p.m.Span()*n.Type.Size())
		err = p.m.buf.Read(ctx, p.m.Region(n.Type.Size()), gpu.HostBytes(p.host), 0)
		_ = p.m.close() // it was read
	}
	p.took = time.Since(start)
	return named(op, err)
}

// onDevice is an expression on another device, which gets replicas of the operands' memory.
func onDevice(n *node, dev *gpu.Device, done map[*node]*node) *node {
	if n.Err != nil || n.Dev == dev {
		return n
	}
	if done[n] == nil {
		moved := *n
		moved.Dev, moved.Args = dev, make([]*node, len(n.Args))
		for i, a := range n.Args {
			moved.Args[i] = onDevice(a, dev, done)
		}
		done[n] = &moved
	}
	return done[n]
}

// land copies the parts to the result. Everything that may fail happens before the first write, and it cannot be cancelled after that.
func (j *groupJob) land(op string) error {
	if j.dst.Buf.HasHost() {
		return j.landOnHost(op)
	}
	axis, list := fuse.AxisRows, make([]*node, len(j.parts))
	if j.columns {
		axis = fuse.AxisCols
	}
	for i, p := range j.parts {
		if p.host != nil {
			rows, cols := p.m.Rows, p.m.Cols
			mem := &memory{host: gpu.HostBytes(p.host), isHost: true, copied: true}
			c, err := newCore(op, j.home, &Options{Type: p.m.t, ColMajor: p.m.ColMajor}, rows, cols, mem, new(origin))
			if err != nil {
				return err
			}
			p.m = c
		}
		list[i] = p.m.node()
	}
	all := expr.NewConcat(op, axis, list...)
	if all.Err != nil {
		return all.Err
	}
	return exec.Of(j.home).Assign(context.WithoutCancel(j.ctx), j.dst, all)
}

// landOnHost copies the parts to the caller's memory.
func (j *groupJob) landOnHost(op string) error {
	ctx, size := context.WithoutCancel(j.ctx), j.dst.Type.Size()
	for _, p := range j.parts {
		i, k, l, m := j.block(p)
		r := j.dst.Slice(i, k, l, m).Region(size)
		if err := j.dst.Buf.Touch(r); err != nil { // what the memory lacks there is no longer wanted
			return named(op, err)
		}
		for row := range r.Count {
			err := j.dst.Buf.Access(ctx, buffer.Range(r.Offset+row*r.Pitch, r.Width), buffer.Replaces, func(mem []byte) error {
				copy(mem, p.host[row*r.Width:])
				return nil
			})
			if err != nil {
				return named(op, err)
			}
		}
	}
	return nil
}

func (j *groupJob) close() {
	for _, p := range j.parts {
		_ = p.m.close() // the result has what was in it
	}
}
