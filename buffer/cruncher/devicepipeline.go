// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
)

// DevicePipeline is a chain of stages on one device. Each [DevicePipeline.Feed] brings the stages' inputs up, runs all stages
// and brings outputs back. What passes from stage to stage stays on the device.
//
// In parallel mode, the one at first, no stage waits for another: each computes what the one before it computed at the feed before,
// and outputs come back one feed after they were computed, while kernels run. With S stages the results of a feed come S feeds
// later. In serial mode the stages run one after the other and results come with the same feed.
//
// It is DevicePipeline of Cekirdekler's namespace SingleGPUPipeline, file ClPipeline.cs. There inputs have double buffers of their
// own, and results come later still; a queue of WebGPU keeps the data of an upload itself.
type DevicePipeline struct {
	dev  *gpu.Device
	cr   *Cruncher
	life life

	mu     sync.Mutex
	stages []*DeviceStage
	slots  map[slotKey]*slot
	serial bool
	count  int // of feeds, since the last change
	queued int // stages of this feed that have been
	feed   *feeding
}

type slotKey struct {
	array *Any
	kind  ArrayKind
}

// feeding is a feed that has begun.
type feeding struct {
	stop  context.CancelFunc
	reads []arrival
	done  chan struct{} // closed when all have come back
	err   error
}

// arrival is an output that comes back.
type arrival struct {
	slot   *slot
	parity int
}

// NewDevicePipeline makes a pipeline without stages on the device, which stays the caller's, for kernels of the source. The context
// is as for [New].
func NewDevicePipeline(ctx context.Context, dev *gpu.Device, wgsl string) (*DevicePipeline, error) {
	cr, err := New(ctx, []*gpu.Device{dev}, wgsl)
	if err != nil {
		return nil, err
	}
	return &DevicePipeline{dev: dev, cr: cr, life: newLife(), slots: map[slotKey]*slot{}}, nil
}

// AddStage puts a stage at the end. Data on their way are lost. An array is a transition of two stages that follow each other, and
// an output of one.
func (p *DevicePipeline) AddStage(s *DeviceStage) error {
	const op = "AddStage"
	if p == nil || s == nil || s.kernels == "" {
		return fail(op, gpu.ErrInvalid, "no pipeline, or no stage: NewDeviceStage makes one")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.idle(op); err != nil {
		return err
	}
	if s.owner != nil {
		return fail(op, gpu.ErrInvalid, "the stage is part of a pipeline")
	}
	for _, b := range s.bound {
		old := p.slots[slotKey{b.array, b.kind}]
		if old == nil || b.array == nil {
			continue
		}
		number := len(p.stages)
		if b.kind == Output || b.kind == Internal || b.kind == Transition && !slices.Equal(old.stages, []int{number - 1}) {
			return fail(op, gpu.ErrInvalid, b.array.name, " belongs to other stages")
		}
	}
	for i := range s.bound {
		b := &s.bound[i]
		if b.array == nil {
			continue
		}
		key := slotKey{b.array, b.kind}
		if p.slots[key] == nil {
			p.slots[key] = newSlot(b.array, b.kind)
		}
		b.slot = p.slots[key]
		b.slot.stages = append(b.slot.stages, len(p.stages))
	}
	s.owner = p
	p.stages = append(p.stages, s)
	p.restart()
	return nil
}

// idle refuses what cannot be done while a feed is under way.
func (p *DevicePipeline) idle(op string) error {
	if p.life.over() {
		return fail(op, gpu.ErrClosed, "the pipeline")
	}
	if p.feed != nil {
		return fail(op, gpu.ErrInvalid, "FeedEnd is missing")
	}
	return nil
}

// restart begins anew, without data on their way. Arrays that a lost device had begin as zeros.
func (p *DevicePipeline) restart() {
	p.count, p.queued = 0, 0
	p.cr.evictStale()
}

// SetSerial chooses between serial and parallel mode. Data on their way are lost, and with a device that was lost and came back,
// see [gpu.Device.Reopen], what it had of arrays that stay there: without that, feeds that need it are [ErrStale].
func (p *DevicePipeline) SetSerial(on bool) error {
	if p == nil {
		return fail("SetSerial", gpu.ErrInvalid, "nil pipeline")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.idle("SetSerial"); err != nil {
		return err
	}
	p.serial = on
	p.restart()
	return nil
}

// Latency returns how many feeds after that of its data a result comes.
func (p *DevicePipeline) Latency() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.serial {
		return 0
	}
	return len(p.stages)
}

// Traffic returns what moved between the arrays and the device.
func (p *DevicePipeline) Traffic() Traffic {
	if p == nil {
		return Traffic{}
	}
	return p.cr.Traffic()
}

// Feed does everything for the data that the input arrays hold now, and reports whether the outputs of the last stage hold
// results. A feed that fails has written no output; the next one goes on where it stopped.
func (p *DevicePipeline) Feed(ctx context.Context) (bool, error) { return p.FeedAsync(ctx, nil) }

// FeedAsync is Feed with a function called while the device is at work. It must not use the arrays.
func (p *DevicePipeline) FeedAsync(ctx context.Context, host func()) (bool, error) {
	if err := p.FeedBegin(ctx); err != nil {
		return false, err
	}
	if host != nil {
		host()
	}
	return p.FeedEnd(ctx)
}

// FeedBegin begins a feed and returns while the device is at work. The inputs have been copied. [DevicePipeline.FeedEnd] ends it.
func (p *DevicePipeline) FeedBegin(ctx context.Context) error {
	const op = "FeedBegin"
	if p == nil || ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil pipeline or context")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.idle(op); err != nil {
		return err
	}
	if err := p.check(op); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f := &feeding{done: make(chan struct{})}
	var reading context.Context
	reading, f.stop = context.WithCancel(p.life.ctx)
	ctx, free := p.life.within(ctx)
	defer free()
	if !p.serial { // ahead of the kernels, so that they need not be waited for
		p.read(reading, f)
	}
	err := p.enqueue(ctx)
	if err != nil {
		f.stop()
		if !p.serial {
			<-f.done
		}
		return p.closed(op, err)
	}
	if p.serial {
		p.read(reading, f)
	}
	p.feed = f
	return nil
}

func (p *DevicePipeline) closed(op string, err error) error {
	if p.life.over() {
		return fail(op, gpu.ErrClosed, "the pipeline")
	}
	return err
}

// check refuses to feed a pipeline that is not whole.
func (p *DevicePipeline) check(op string) error {
	if len(p.stages) == 0 {
		return fail(op, ErrKernel, "no stage")
	}
	for key, s := range p.slots {
		if err := s.array.usable(op); err != nil {
			return err
		}
		if key.kind == Transition && len(s.stages) != 2 {
			return fail(op, gpu.ErrInvalid, s.array.name, " is the transition of one stage")
		}
	}
	return nil
}

// enqueue queues the stages that have data.
func (p *DevicePipeline) enqueue(ctx context.Context) error {
	if p.queued == 0 {
		for key, s := range p.slots {
			if key.kind == Input {
				s.twins[0].MarkDirty()
			}
		}
	}
	for ; p.queued < len(p.stages); p.queued++ {
		s := p.stages[p.queued]
		if !p.serial && p.queued > p.count {
			continue
		}
		if err := p.cr.enqueue(ctx, p.queued, s.kernels, s.r, s.group(p.queued, p.count%2, p.serial)); err != nil {
			return err
		}
	}
	return p.dev.Flush()
}

// read brings outputs back on a goroutine: what was computed at the feed before, in serial mode at this one.
func (p *DevicePipeline) read(ctx context.Context, f *feeding) {
	parity := 0
	if !p.serial {
		parity = (p.count + 1) % 2
	}
	for i, s := range p.stages {
		if s.stopped.Load() || !p.serial && i >= p.count {
			continue
		}
		for _, b := range s.bound {
			if b.kind == Output && b.slot != nil {
				f.reads = append(f.reads, arrival{b.slot, parity})
			}
		}
	}
	var list []*Any
	for _, a := range f.reads {
		list = append(list, a.slot.twins[a.parity])
	}
	fetch := p.cr.fetcher(list)
	go func() {
		defer close(f.done)
		f.err = fetch(ctx)
	}()
}

// FeedEnd ends a feed: it returns when the device has done everything. It reports whether the outputs of the last stage hold
// results. If it fails no output was written, and the next feed goes on where this one stopped.
func (p *DevicePipeline) FeedEnd(ctx context.Context) (bool, error) {
	const op = "FeedEnd"
	if p == nil || ctx == nil {
		return false, fail(op, gpu.ErrInvalid, "nil pipeline or context")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.feed
	if p.life.over() {
		return false, fail(op, gpu.ErrClosed, "the pipeline")
	}
	if f == nil {
		return false, fail(op, gpu.ErrInvalid, "FeedBegin is missing")
	}
	p.feed = nil
	ctx, free := p.life.within(ctx)
	defer free()
	err := ctx.Err()
	select {
	case <-f.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.stop()
	<-f.done // soon
	if err == nil {
		err = f.err
	}
	if err == nil {
		err = p.dev.Sync(ctx)
	}
	if err != nil {
		return false, p.closed(op, err)
	}
	writes := make([]func([]byte), len(f.reads))
	for i, a := range f.reads {
		if writes[i], err = gpu.HostWriter(a.slot.array.host); err != nil {
			return false, err
		}
	}
	for i, a := range f.reads {
		a.slot.commit(a.parity, writes[i])
	}
	came := !p.stages[len(p.stages)-1].stopped.Load() && (p.serial || p.count >= len(p.stages))
	p.count++
	p.queued = 0
	return came, nil
}

// Close stops what is under way and gives the device memory of the arrays back. The arrays and the device stay. Later calls do
// nothing.
func (p *DevicePipeline) Close() error {
	if p == nil || p.cr == nil {
		return nil
	}
	p.life.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feed != nil {
		<-p.feed.done // soon: it was cancelled with the life
		p.feed.stop()
		p.feed = nil
	}
	return p.cr.Close()
}
