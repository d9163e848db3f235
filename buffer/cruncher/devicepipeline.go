// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// DevicePipeline is a chain of stages on one device. Each [DevicePipeline.Feed] brings the stages' inputs up, runs all stages
// and brings outputs back. An output of a stage that is an input of the next one is a transition: it stays on the device.
//
// In parallel mode, the one at first, no stage waits for another: each computes what the one before it computed at the feed before,
// and outputs come back one feed after they were computed, while kernels run. With S stages the results of a feed come S feeds
// later. In serial mode the stages run one after the other and results come with the same feed.
//
// It is DevicePipeline of Cekirdekler's namespace SingleGPUPipeline, file ClPipeline.cs. There inputs have double buffers of their
// own, and results come later still; a queue of WebGPU keeps the data of an upload itself.
type DevicePipeline struct {
	dev    *gpu.Device
	cr     *Cruncher
	life   lifetime
	stages []*deviceStage
	slots  []*slot

	mu     sync.Mutex
	serial bool
	count  int // of feeds, since the last change
	queued int // stages of this feed that have been
	step   int // and steps of the next one
	feed   *feeding
}

// deviceStage is a stage with its arrays.
type deviceStage struct {
	steps   []Step
	bound   []binding
	stopped bool
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

// NewDevicePipeline makes a pipeline of stages on a device, which stays the caller's, for kernels of the source. Stages name no devices
// of their own and have no initializers; Blobs of their ranges have no effect. An array is hidden in one stage, or an output of
// one; a transition belongs to two. The context is as for [New].
func NewDevicePipeline(ctx context.Context, dev *gpu.Device, wgsl string, stages ...Stage) (*DevicePipeline, error) {
	const op = "NewDevicePipeline"
	cr, err := New(ctx, []*gpu.Device{dev}, wgsl)
	if err != nil {
		return nil, err
	}
	p := &DevicePipeline{dev: dev, cr: cr, life: newLifetime()}
	if len(stages) == 0 {
		err = fail(op, kernel.ErrKernel, "no stage")
	}
	var params []stageParams
	for i := range stages {
		var of stageParams
		if err == nil {
			of, err = p.add(&stages[i])
		}
		params = append(params, of)
	}
	for i := range stages {
		if err == nil {
			err = p.bind(i, params)
		}
	}
	if err != nil {
		_ = p.Close() // the first error says more
		return nil, err
	}
	return p, nil
}

// add checks a stage and puts it at the end.
func (p *DevicePipeline) add(s *Stage) (stageParams, error) {
	const op = "NewDevicePipeline"
	if len(s.Devices)+len(s.Options)+len(s.Initializers) > 0 || s.WGSL != "" {
		return stageParams{}, fail(op, gpu.ErrInvalid, "a stage with devices, a source, options or initializers of its own")
	}
	list, err := steps(op, p.cr.source, s.Kernels)
	if err != nil {
		return stageParams{}, err
	}
	if len(list) == 0 {
		return stageParams{}, fail(op, kernel.ErrKernel, "a stage without kernels")
	}
	for i := range list {
		list[i].Range.Blobs = 1 // what is resident or whole does not move by pieces
	}
	p.stages = append(p.stages, &deviceStage{steps: list})
	return s.params(op)
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

// Serial chooses serial mode. Data on their way are lost, and with a device that was lost and came back, see [gpu.Device.Reopen],
// what it had of arrays that stay there, which begin as zeros: without that, feeds that need it are [ErrStale].
func (p *DevicePipeline) Serial() error { return p.restart("Serial", true) }

// Parallel chooses parallel mode, as [DevicePipeline.Serial] chooses the other one.
func (p *DevicePipeline) Parallel() error { return p.restart("Parallel", false) }

func (p *DevicePipeline) restart(op string, serial bool) error {
	if p == nil {
		return fail(op, gpu.ErrInvalid, "nil pipeline")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.idle(op); err != nil {
		return err
	}
	p.serial = serial
	p.count, p.queued, p.step = 0, 0, 0
	p.cr.evictStale()
	return nil
}

// StopTransmission makes the inputs of stages, counted from 0, stay what they are on the device and their outputs stay there, from
// the next feed on. The data of all other stages are moved again: of all of them where none is named.
func (p *DevicePipeline) StopTransmission(stages ...int) error {
	const op = "StopTransmission"
	if p == nil {
		return fail(op, gpu.ErrInvalid, "nil pipeline")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range stages {
		if s < 0 || s >= len(p.stages) {
			return fail(op, gpu.ErrInvalid, "no such stage")
		}
	}
	if err := p.idle(op); err != nil {
		return err
	}
	for i := range p.stages {
		p.stages[i].stopped = slices.Contains(stages, i)
	}
	return nil
}

// Feed does everything for the data that the input arrays hold now, and reports whether the outputs of the last stage hold
// results. A feed that fails has written no output; the next one goes on where it stopped.
func (p *DevicePipeline) Feed(ctx context.Context) (bool, error) {
	if err := p.FeedBegin(ctx); err != nil {
		return false, err
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
	for _, s := range p.slots {
		if err := s.array.usable(op); err != nil {
			return err
		}
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

// enqueue queues the stages that have data.
func (p *DevicePipeline) enqueue(ctx context.Context) error {
	if p.queued == 0 {
		for _, s := range p.slots {
			if s.kind == inputSlot {
				s.replicas[0].MarkDirty()
			}
		}
	}
	for ; p.queued < len(p.stages); p.queued++ {
		if !p.serial && p.queued > p.count {
			continue
		}
		for list := p.stages[p.queued].steps; p.step < len(list); p.step++ {
			if err := p.cr.enqueue(ctx, p.queued, list[p.step].Kernels, list[p.step].Range, p.group(p.queued)); err != nil {
				return err
			}
		}
		p.step = 0
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
		if s.stopped || !p.serial && i >= p.count {
			continue
		}
		for _, b := range s.bound {
			if b.slot != nil && b.slot.kind == outputSlot {
				f.reads = append(f.reads, arrival{b.slot, parity})
			}
		}
	}
	var list []*Any
	for _, a := range f.reads {
		list = append(list, a.slot.replicas[a.parity])
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
		if writes[i], err = a.slot.array.host.Writer(); err != nil {
			return false, err
		}
	}
	for i, a := range f.reads {
		writes[i](a.slot.replicas[a.parity].host.Bytes)
		a.slot.array.MarkDirty()
	}
	came := !p.stages[len(p.stages)-1].stopped && (p.serial || p.count >= len(p.stages))
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
		<-p.feed.done // soon: it was cancelled with the pipeline
		p.feed.stop()
		p.feed = nil
	}
	return p.cr.Close()
}
