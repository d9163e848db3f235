// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/recent"
)

// Cruncher computes kernels on several devices at once. It is made by [New]. Its methods may be called from several
// goroutines; calls run one after the other.
type Cruncher struct {
	workers []*worker
	source  *kernel.Source
	conf    config

	mu       gate // guards what follows
	closed   bool
	batch    *Batch // the open one
	arrays   map[*body]*residency
	programs recent.Map[string, *kernel.Program]

	converters map[dtype.Type]*converter
	fixed      recent.Map[shareKey, *[]int]

	uses uint64 // of arrays
	mark uint64 // those up to it are not of the call or the batch

	room sync.Mutex // of all devices of a call, for arrays that are not part of it

	account memory.Account
	down    atomic.Int64
	last    atomic.Pointer[Report]
}

// gate is a mutex for calls that wait no longer than their contexts.
type gate chan struct{}

func (g gate) lock()   { g <- struct{}{} }
func (g gate) unlock() { <-g }

// begun refuses contexts that are nil or have ended.
func begun(ctx context.Context, op string) error {
	if ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil context")
	}
	return named(op, ctx.Err())
}

// begin locks a cruncher for a call in batch b, which must be the open one, or for a call outside of batches if b is nil.
func (cr *Cruncher) begin(ctx context.Context, op string, b *Batch) error {
	if !cr.made() {
		return fail(op, gpu.ErrInvalid, "a cruncher that New did not make")
	}
	err := begun(ctx, op)
	if err != nil {
		return err
	}
	select {
	case cr.mu <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case cr.closed:
		err = fail(op, gpu.ErrClosed, "the cruncher")
	case cr.batch == b:
		return nil
	case b != nil:
		err = fail(op, gpu.ErrClosed, "the batch has ended")
	default:
		err = fail(op, ErrBatch, "")
	}
	cr.mu.unlock()
	return err
}

// Coherence says what happens to elements that stay on the devices when the division of the range changes.
type Coherence uint8

// The kinds of coherence.
const (
	Migrate Coherence = iota // elements move to the devices that need them
	Pin                      // the division of an id's first call is kept while no device is lost
	Strict                   // a call that would have to move elements is ErrMigration
)

type config struct {
	balancer  balance.Balancer
	coherence Coherence
	memory    uint64
}

// Option is an option of [New].
type Option func(*config) error

// WithBalancer sets the balancer that divides ranges among the devices. [balance.New] is the default, [balance.NewLegacy] Cekirdekler's.
func WithBalancer(b balance.Balancer) Option {
	return func(c *config) error {
		if b == nil {
			return fail("New", gpu.ErrInvalid, "nil balancer")
		}
		c.balancer = b
		return nil
	}
}

// WithCoherence sets what happens to elements that stay on the devices when the division of the range changes.
func WithCoherence(m Coherence) Option {
	return func(c *config) error {
		if m > Strict {
			return fail("New", gpu.ErrInvalid, "unknown coherence")
		}
		c.coherence = m
		return nil
	}
}

// New makes a cruncher that runs kernels of a WGSL source on the devices. It does not close them, and a device may be listed more than
// once. The source has functions
//
//	fn name(i: u32) { ... }
//
// that use arrays and scalars by the names of the parameters, without declaring them, or it is a complete module; see [kernel.Parse].
//
// The context is for this call only: the cruncher can be used after it has ended.
func New(ctx context.Context, devices []*gpu.Device, wgsl string, opts ...Option) (*Cruncher, error) {
	const op = "New"
	if err := begun(ctx, op); err != nil {
		return nil, err
	}
	if len(devices) == 0 {
		return nil, fail(op, ErrDevices, "")
	}
	cr := &Cruncher{
		conf: config{balancer: balance.New()}, mu: make(gate, 1),
		arrays: map[*body]*residency{}, converters: map[dtype.Type]*converter{},
	}
	for i, d := range devices {
		if d == nil {
			return nil, fail(op, gpu.ErrInvalid, "nil device")
		}
		if err := d.Usable(); err != nil {
			return nil, named(op, err)
		}
		if !d.Info().Features.Has(driver.FeatureWGSL) {
			return nil, fail(op, gpu.ErrUnsupported, d.Info().Name, " compiles no WGSL")
		}
		cr.workers = append(cr.workers, &worker{index: i, dev: d, life: d.Generation()})
	}
	for _, o := range opts {
		if o == nil {
			return nil, fail(op, gpu.ErrInvalid, "nil option")
		}
		if err := o(&cr.conf); err != nil {
			return nil, err
		}
	}
	cr.account.Limit = cr.conf.memory
	var err error
	if cr.source, err = kernel.Parse(wgsl); err != nil {
		return nil, named(op, err)
	}
	return cr, nil
}

// Kernels lists the kernels of the source.
func (cr *Cruncher) Kernels() []string {
	if !cr.made() {
		return nil
	}
	return cr.source.Kernels()
}

// made reports whether New has made the cruncher.
func (cr *Cruncher) made() bool { return cr != nil && cr.mu != nil }

// Compute runs kernels, whose names are separated by blanks or commas, one after the other over the range; each device runs all of
// them on its part. It returns when the results are in the host memory of the arrays. id identifies the computation: the cruncher
// improves the division of the range from call to call with the same id. It remembers the 1,024 ids used last.
//
// A call that fails or is cancelled leaves host memory as it was. Elements that exist on devices only and that its kernels write are
// undefined then.
func (cr *Cruncher) Compute(ctx context.Context, id int, kernels string, r Range, ps ...Param) error {
	return named("Compute", cr.compute(ctx, nil, id, kernels, r, ps))
}

// compute is Compute, in a batch or not.
func (cr *Cruncher) compute(ctx context.Context, b *Batch, id int, kernels string, r Range, ps []Param) error {
	if err := cr.begin(ctx, "Compute", b); err != nil {
		return err
	}
	defer cr.mu.unlock()
	cr.refresh()
	c := &call{id: id, r: r, single: -1, batch: b}
	defer func() { closeAll(c.displaced) }()
	if err := cr.plan(c, kernels, ps); err != nil || c.r.Global == 0 {
		return err
	}
	if err := cr.compile(ctx, c); err != nil {
		closeAll(c.programs())
		return err
	}
	cr.adopt(c)
	defer func() {
		for i := range c.arrays {
			cr.tell(c.arrays[i].residency)
		}
	}()
	return cr.run(ctx, c)
}

// compile compiles the kernels of a call on all devices. The balancer does not see the time that this takes.
func (cr *Cruncher) compile(ctx context.Context, c *call) error {
	return cmp.Or(together(len(cr.workers), func(i int) error {
		w := cr.workers[i]
		for _, p := range c.programs() {
			if _, err := p.Compile(ctx, w.dev); err != nil && !w.lost() {
				return err
			}
		}
		return nil
	})...)
}

// together calls fn for 0 to n-1, at least one number, at the same time, and returns what each returned.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n - 1 {
		wg.Go(func() { errs[i] = fn(i) })
	}
	errs[n-1] = fn(n - 1) // needs no goroutine of its own
	wg.Wait()
	return errs
}

// Close waits for a call in progress, then releases the compiled kernels and the arrays' memory on the devices. It does not close the
// arrays and devices. Later calls do nothing.
func (cr *Cruncher) Close() error {
	if !cr.made() {
		return nil
	}
	cr.mu.lock()
	defer cr.mu.unlock()
	cr.closed = true
	cr.programs.Each((*kernel.Program).Close)
	cr.programs.Clear()
	for _, c := range cr.converters {
		c.unpack.Close()
		c.pack.Close()
	}
	return cr.evictIf(func(*residency) bool { return true })
}

// Traffic is how many bytes moved between the host memory of arrays and the devices, and between devices.
type Traffic struct{ Up, Down, Migrated int64 }

// Traffic returns the bytes moved since the cruncher was made.
func (cr *Cruncher) Traffic() Traffic {
	if cr == nil {
		return Traffic{}
	}
	return Traffic{cr.account.Up.Load(), cr.down.Load(), cr.account.Moved.Load()}
}

// Stats returns the division of an id's last call among the devices and the measurements behind it.
func (cr *Cruncher) Stats(id int) balance.Stats {
	if !cr.made() {
		return balance.Stats{}
	}
	return cr.conf.balancer.Stats(id)
}

// Report describes what a call did.
type Report struct {
	// Shares has one entry for each device, in the order of [New], also for devices without items.
	Shares []Share
	// Traffic is the number of bytes that the call moved.
	Traffic Traffic
}

// Share is the part of a call's range that one device computed.
type Share struct {
	Device  int     `json:"device"`  // its number among those given to [New]
	Offset  int     `json:"offset"`  // the first item; in two and three dimensions, of the slowest one
	Count   int     `json:"count"`   // how many from there on
	Seconds float64 `json:"seconds"` // with its transfers and without waiting for others
}

// Last reports on the last call that computed something and did not fail. Before the first one it is empty. It never waits
// for a call in progress.
func (cr *Cruncher) Last() Report {
	if cr == nil {
		return Report{}
	}
	r := cr.last.Load()
	if r == nil {
		return Report{}
	}
	return Report{slices.Clone(r.Shares), r.Traffic}
}

// publish makes the report of a call. before is the traffic when the call began.
func (cr *Cruncher) publish(pieces []*piece, before Traffic) {
	now := cr.Traffic()
	r := &Report{
		Shares:  make([]Share, len(cr.workers)),
		Traffic: Traffic{now.Up - before.Up, now.Down - before.Down, now.Migrated - before.Migrated},
	}
	for _, p := range pieces {
		r.Shares[p.worker.index] = Share{Count: p.part.count, Seconds: p.took.Seconds()}
	}
	next := pieces[0].part.base
	for i := range r.Shares {
		r.Shares[i].Device, r.Shares[i].Offset = i, next
		next += r.Shares[i].Count
	}
	cr.last.Store(r)
}

// The errors of this package, beside those of package gpu. The next call is not affected by one that failed.
var (
	ErrAccess    = fault.New("ErrAccess", "the array was first used in another way")
	ErrBatch     = fault.New("ErrBatch", "a batch is open")
	ErrCallback  = fault.New("ErrCallback", "the callback panicked")
	ErrDevices   = fault.New("ErrDevices", "no device")
	ErrLength    = fault.New("ErrLength", "the array is too short for the range")
	ErrMigration = fault.New("ErrMigration", "elements would have to move between devices")
	ErrName      = fault.New("ErrName", "not a name")
	ErrRange     = fault.New("ErrRange", "out of range")
	ErrStale     = fault.New("ErrStale", "only devices have the newest elements, or one that is lost had them")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("cruncher: "+op, err, detail...)
}

// named is an error of a lower package, or nil, as one of this package's call.
func named(op string, err error) error { return fault.In("cruncher: ", op, err) }

func itoa(i int) string { return strconv.Itoa(i) }
