// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// crunch is a cruncher of some devices with arrays.
type crunch struct {
	devs []*device
	cr   *cruncher.Cruncher
	x    *cruncher.Array[uint32] // two elements for each item
	y    *cruncher.Array[int16]
	z    *cruncher.Array[uint8]
	vx   []uint32
	vy   []int16
	vz   []uint8
}

const crunchItems = 500

const crunchSource = `
fn scale(i: u32) { for (var k = i * 2u; k < i * 2u + 2u; k++) { x[k] = x[k] * 3u + by; } }
fn blend(i: u32) { y[i] = y[i] + i32(x[2u * i] & 0xffu) - 7; z[i] = z[i] + u32(y[i]); }
`

// kernelDevices returns one to three devices that compile WGSL, some of them twice.
func (p *player) kernelDevices() (list []*device, devs []*gpu.Device) {
	for range 1 + p.intn(3) {
		d := p.some(true)
		list, devs = append(list, d), append(devs, d.Device)
	}
	return list, devs
}

func (p *player) anyOk(list []*device, err error) bool {
	return p.ok(&device{name: "several", limited: slices.ContainsFunc(list, func(d *device) bool { return d.limited })}, err)
}

func newCrunch(p *player) object {
	list, devs := p.kernelDevices()
	cr, err := cruncher.New(p.ctx, devs, crunchSource)
	if !p.anyOk(list, err) {
		return nil
	}
	c := &crunch{devs: list, cr: cr, vx: make([]uint32, 2*crunchItems), vy: make([]int16, crunchItems), vz: make([]uint8, crunchItems)}
	for i := range c.vx {
		c.vx[i] = p.rng.Uint32()
	}
	c.x = must[*cruncher.Array[uint32]](p)(cruncher.Wrap("x", slices.Clone(c.vx)))
	c.y = must[*cruncher.Array[int16]](p)(cruncher.NewArray[int16]("y", crunchItems))
	c.z = must[*cruncher.Array[uint8]](p)(cruncher.NewArray[uint8]("z", crunchItems))
	return c
}

func (c *crunch) uses(dev *device) bool { return slices.Contains(c.devs, dev) }

// calls makes some calls, each on what the one before left, and does the same to the model.
func (c *crunch) calls(p *player, ctx context.Context, n int, compute func(context.Context, int, string, cruncher.Range, ...cruncher.Param) error) error {
	for range n {
		by := uint32(p.intn(5))
		offset := p.intn(crunchItems)
		r := cruncher.Range{Offset: offset, Global: 1 + p.intn(crunchItems-offset), Local: []int{1, 8, 64}[p.intn(3)], Blobs: p.intn(3), Repeat: 1 + p.intn(2)}
		kernels := []string{"scale", "blend", "scale blend"}[p.intn(3)]
		if err := compute(ctx, p.intn(3), kernels, r, c.x, c.y, c.z, cruncher.NewScalar("by", by)); err != nil {
			return err
		}
		for range max(r.Repeat, 1) {
			c.model(kernels, r, by)
		}
	}
	return nil
}

func (c *crunch) model(kernels string, r cruncher.Range, by uint32) {
	for i := r.Offset; i < r.Offset+r.Global; i++ {
		if kernels != "blend" {
			c.vx[2*i], c.vx[2*i+1] = c.vx[2*i]*3+by, c.vx[2*i+1]*3+by
		}
		if kernels != "scale" {
			c.vy[i] += int16(c.vx[2*i]&0xff) - 7
			c.vz[i] += uint8(c.vy[i])
		}
	}
}

// flags says for all arrays whether they go up and come back.
func (c *crunch) flags(p *player, read, write bool) {
	for _, a := range []*cruncher.Any{c.x.Any, c.y.Any, c.z.Any} {
		f := a.Flags()
		f.Read, f.PartialRead, f.Write = false, false, write
		if read {
			f.Read, f.PartialRead = p.chance(2), true
		}
		if f.ElementsPerItem = 1; a == c.x.Any {
			f.ElementsPerItem = 2
		}
		p.must(a.SetFlags(f))
	}
}

// resident has the devices keep everything for some calls, and fetches it then.
func (c *crunch) resident(p *player, n int) error {
	c.flags(p, true, false)
	r := cruncher.Range{Global: crunchItems}
	if err := c.cr.Compute(p.ctx, 5, "scale", r, c.x, c.y, c.z, cruncher.NewScalar("by", uint32(1))); err != nil {
		return err
	}
	c.model("scale", r, 1)
	c.flags(p, false, false)
	if err := c.calls(p, p.ctx, n, c.cr.Compute); err != nil {
		return err
	}
	return c.cr.Fetch(p.ctx, c.x.Any, c.y.Any, c.z.Any)
}

func (c *crunch) act(p *player) string {
	how, n := p.intn(5), 1+p.intn(3)
	p.note("crunch %d, %d calls on %d devices", how, n, len(c.devs))
	var err error
	switch how {
	case 0, 1:
		c.flags(p, true, true)
		err = c.calls(p, p.ctx, n, c.cr.Compute)
	case 2:
		c.flags(p, true, true)
		err = c.cr.Batch(p.ctx, func(b *cruncher.Batch) error { return c.calls(p, p.ctx, n, b.Compute) })
	case 3:
		err = c.resident(p, n)
	default:
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		c.flags(p, true, true)
		p.refused("a cancelled call", c.calls(p, ctx, 1, c.cr.Compute), context.Canceled)
		p.refused("no kernel", c.cr.Compute(p.ctx, 1, "none", cruncher.Range{Global: 1}, c.x), kernel.ErrKernel)
	}
	if !p.anyOk(c.devs, err) { // in a batch, or with results on devices, some calls may have been made
		p.must(c.cr.Evict())
		copy(c.vx, c.x.Data())
		copy(c.vy, c.y.Data())
		copy(c.vz, c.z.Data())
	}
	c.check(p)
	return fmt.Sprintf("crunch %d, %d calls on %d devices", how, n, len(c.devs))
}

func (c *crunch) check(p *player) {
	if !slices.Equal(c.x.Data(), c.vx) || !slices.Equal(c.y.Data(), c.vy) || !slices.Equal(c.z.Data(), c.vz) {
		p.fail("the arrays of a cruncher on %d devices have other elements", len(c.devs))
	}
}

func (c *crunch) close(p *player) {
	closers := []func() error{c.x.Close, c.y.Close, c.z.Close, c.cr.Close}
	p.rng.Shuffle(len(closers), func(i, j int) { closers[i], closers[j] = closers[j], closers[i] })
	for _, f := range closers {
		p.must(f())
	}
}

// stages is a pipeline of two stages and a pool of devices.
type stages struct {
	devs   []*device
	pipe   *cruncher.Pipeline
	pool   *cruncher.DevicePool
	in     *cruncher.Array[uint32]
	out    *cruncher.Array[uint32]
	arrays []*cruncher.Array[uint32]
	queue  [][]uint32
}

const stageItems = 100

func newStages(p *player) object {
	list, devs := p.kernelDevices()
	s := &stages{devs: list}
	array := func(name string) *cruncher.Array[uint32] {
		a := must[*cruncher.Array[uint32]](p)(cruncher.NewArray[uint32](name, stageItems))
		s.arrays = append(s.arrays, a)
		return a
	}
	stage := func(kernel string) cruncher.Stage {
		return cruncher.Stage{
			Devices: devs[:1], WGSL: "fn f(i: u32) { b[i] = " + kernel + "; }", Inputs: []cruncher.Param{array("a")}, Outputs: []cruncher.Param{array("b")},
			Kernels: []cruncher.Step{{Kernels: "f", Range: cruncher.Range{Global: stageItems}}},
		}
	}
	var err error
	if s.pipe, err = cruncher.NewPipeline(p.ctx, stage("a[i] * 3u"), stage("a[i] + 7u")); p.anyOk(list, err) {
		if s.pool, err = cruncher.NewDevicePool(p.ctx, cruncher.Greedy, "fn f(i: u32) { a[i] = a[i] * 5u + 1u; }"); p.anyOk(list, err) {
			s.in, s.out = array("a"), array("b")
			for _, d := range devs {
				if err = s.pool.AddDevice(d); !p.anyOk(list, err) {
					break
				}
			}
			if err == nil {
				return s
			}
		}
	}
	s.close(p)
	return nil
}

func (s *stages) uses(dev *device) bool { return slices.Contains(s.devs, dev) }

func (s *stages) act(p *player) string {
	if p.chance(2) {
		return s.tasks(p)
	}
	p.note("push")
	for i := range s.in.Data() {
		s.in.Data()[i] = p.rng.Uint32()
	}
	s.in.MarkDirty()
	came, err := s.pipe.Push(p.ctx, cruncher.Params(s.in), cruncher.Params(s.out))
	if !p.anyOk(s.devs, err) {
		return "push refused"
	}
	s.queue = append(s.queue, slices.Clone(s.in.Data()))
	if came {
		for i, v := range s.out.Data() {
			if want := s.queue[0][i]*3 + 7; v != want {
				p.fail("element %d out of the pipeline is %d, want %d", i, v, want)
			}
		}
		s.queue = s.queue[1:]
	}
	return "pushed"
}

// tasks has the pool compute parts of an array.
func (s *stages) tasks(p *player) string {
	p.note("tasks")
	want := slices.Clone(s.in.Data())
	p.must(s.in.SetFlags(cruncher.Flags{PartialRead: true, Write: true}))
	defer func() { p.must(s.in.SetFlags(cruncher.DefaultFlags())) }()
	var tasks []*cruncher.Task
	for at := 0; at < stageItems; at += 25 {
		if p.chance(4) {
			continue
		}
		tasks = append(tasks, must[*cruncher.Task](p)(cruncher.NewTask(1, "f", cruncher.Range{Global: 25, Offset: at}, s.in, cruncher.TaskOptions{})))
		for i := at; i < at+25; i++ {
			want[i] = want[i]*5 + 1
		}
	}
	p.must(s.pool.Enqueue(tasks...))
	if _, err := s.pool.Finish(p.ctx); p.anyOk(s.devs, err) && !slices.Equal(s.in.Data(), want) {
		p.fail("tasks left other elements")
	}
	return fmt.Sprintf("%d tasks", len(tasks))
}

func (s *stages) check(*player) {}

func (s *stages) close(p *player) {
	p.must(errors.Join(s.pipe.Close(), s.pool.Close()))
	for _, a := range s.arrays {
		p.must(a.Close())
	}
}

// graphs is a graph of two tasks that runs.
type graphs struct {
	devs []*device
	g    *graph.Graph
	m    *graph.Template
	in   *graph.Input
	out  *graph.Output
}

func newGraph(p *player) object {
	o := &graphs{devs: []*device{p.some(false)}}
	if d := p.some(false); d != o.devs[0] {
		o.devs = append(o.devs, d)
	}
	var devs []*gpu.Device
	for _, d := range o.devs {
		if d.limited {
			return nil // a dispatch that is refused fails its blocks for good
		}
		devs = append(devs, d.Device)
	}
	g := must[*graph.Graph](p)(graph.New(devs, graph.Config{Sync: p.chance(3), Trace: p.intn(2) * 100}))
	m := g.Template("m", 4, 4, dtype.Float32)
	layer := g.Task("layer", graph.Eval[float32]("relu(x*w)"), graph.In("x", m), graph.Sticky("w", m), graph.Out("y", m))
	host := g.Task("host", graph.Host(func(d *graph.Dispatch) error {
		return d.Update("y", func(b []byte) error { return nil })
	}), graph.In("x", m), graph.Out("y", m, graph.PortConfig{InPlace: "x"}))
	o.g, o.m, o.in = g, m, g.Input("x", layer.Port("x"))
	g.Connect(layer.Port("y"), host.Port("x"))
	o.out = g.Output("y", host.Port("y"))
	w := must[*graph.Block](p)(graph.FromSlice(m, float32s.slice([]int64{2, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 3})))
	p.must(errors.Join(layer.Port("w").Set(w), g.Run(p.ctx)))
	return o
}

func (o *graphs) uses(dev *device) bool { return slices.Contains(o.devs, dev) }

func (o *graphs) act(p *player) string {
	n := 1 + p.intn(4)
	p.note("%d blocks", n)
	var sent [][]float32
	for range n {
		x := make([]int64, 16)
		for i := range x {
			x[i] = int64(p.intn(9)) - 4
		}
		sent = append(sent, float32s.slice(x))
		p.must(o.in.Push(p.ctx, must[*graph.Block](p)(graph.FromSlice(o.m, sent[len(sent)-1]))))
	}
	for _, x := range sent {
		b := must[*graph.Block](p)(o.out.Pull(p.ctx))
		got := must[[]float32](p)(graph.Values[float32](p.ctx, b))
		b.Release()
		for i, v := range got {
			if want := max(0, x[i]*[]float32{2, 1, -1, 3}[i%4]); v != want {
				p.fail("element %d out of the graph is %v, want %v", i, v, want)
			}
		}
	}
	return fmt.Sprintf("%d blocks", n)
}

func (o *graphs) check(*player) {}

func (o *graphs) close(p *player) {
	if p.chance(2) {
		p.must(o.g.Stop(p.ctx))
	}
	p.must(errors.Join(o.g.Teardown(), o.g.Teardown()))
	if n := o.g.Stats().Blocks; n != 0 {
		p.fail("%d blocks are left", n)
	}
}
