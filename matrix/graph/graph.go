// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Graph is a dataflow graph with its scheduler. Make one with [New], add tasks, [Graph.Connect] their ports, and Run it. Its methods may
// be called from several goroutines.
type Graph struct {
	devices []*gpu.Device
	hosts   int // how many tasks of the host run at once
	conf    Config
	rng     *rand.Rand
	largest uint64          // bytes of a block on the host: more than Go can have ends a program
	lostIn  []atomic.Uint64 // by device: one more than the generation in which it was last found lost
	live    atomic.Int64    // blocks with references
	blocks  atomic.Uint64   // blocks ever
	clones  atomic.Uint64
	pooling atomic.Bool // released memory is kept
	moved   struct{ up, down atomic.Uint64 }

	mu        sync.Mutex
	dropped   []func() // calls for the next unlock: releases of blocks and kernels, and Reconsider
	releasing int      // goroutines that release blocks
	state     phase
	faults    []error // of templates, and of calls that came while the graph ran
	templates []*Template
	tasks     []*Task
	channels  []*channel

	run      *run   // the last one
	epoch    uint64 // counts Teardowns
	inflight int    // dispatches
	stopped  bool
	stepping bool
	cause    error     // of the last teardown, nil after a call of Teardown
	quiet    condition // a dispatch, a run or a teardown has ended
	ready    []*line   // of tasks that are ready, or were
	chosen   []*line   // memory of candidates
	started  uint64    // dispatches ever
	orders   uint64    // how often tasks became ready
	ageing   *time.Timer
	page     pageTurn
	waits    time.Duration // decaying averages of how long tasks wait and run
	works    time.Duration
	trace    queue[*Dispatch] // the last ones
	work     []Work           // by device, and at last the host's
}

// Config says how a graph runs. The zero value has the usual settings.
type Config struct {
	Mode Mode // how the next task is chosen

	// Threshold is the effective priority above which a task no longer waits for the device that has its data. 0 stands for 6; 10
	// makes tasks wait for ever.
	Threshold int

	// Trace is the number of latest dispatches that are kept for [Graph.WriteTrace].
	Trace int

	// Sync makes each dispatch on a device wait until the device has done its work, so that traces and times are those of the work, but
	// a device idles while the host prepares its next task. Without it a dispatch ends when its body has queued the work.
	Sync bool

	// Deterministic runs one task at a time in the goroutines that call Run, Push, Pull and Stop, in an order that depends on Seed: the
	// same calls give the same order. Such a call does not return before the task that it runs, even if its context ends.
	Deterministic bool
	Seed          uint64

	clock func() time.Duration // that of tests
}

const (
	defaultThreshold = 6
	maxTrace         = 1 << 24 // bounds the memory of a trace
	maxWorkers       = 60      // devices and workers of the host
	maxHosts         = 16      // workers of the host
	leastHost        = 1 << 30 // bytes of a block on the host where no device has larger buffers
)

// New makes a graph on the devices, which it does not close and which may be of one adapter. Without devices it runs only tasks of the
// host. As many of these run at once as Go uses processors.
func New(devices []*gpu.Device, config ...Config) (*Graph, error) {
	const op = "New"
	c := last(config)
	if c.Mode > FIFO || c.Threshold < 0 || c.Threshold > highestPriority || c.Trace < 0 || c.Trace > maxTrace {
		return nil, fail(op, gpu.ErrInvalid, "mode ", itoa(int(c.Mode)), ", a threshold of ", itoa(c.Threshold), ", a trace of ", itoa(c.Trace))
	}
	c.Threshold = cmp.Or(c.Threshold, defaultThreshold)
	if c.clock == nil {
		begin := time.Now()
		c.clock = func() time.Duration { return time.Since(begin) }
	}
	n := len(devices)
	g := &Graph{
		devices: slices.Clone(devices), hosts: min(runtime.GOMAXPROCS(0), maxHosts), conf: c, rng: rand.New(rand.NewPCG(c.Seed, 1)),
		largest: leastHost, lostIn: make([]atomic.Uint64, n), work: make([]Work, n+1),
	}
	g.pooling.Store(true)
	if n+g.hosts > maxWorkers {
		return nil, fail(op, gpu.ErrLimit, itoa(n), " devices")
	}
	for i, d := range devices {
		if d == nil || slices.Contains(devices[:i], d) {
			return nil, fail(op, gpu.ErrInvalid, "a device that is nil or there twice")
		}
		if err := d.Usable(); err != nil {
			return nil, fail(op, err)
		}
		g.largest = max(g.largest, d.Info().Limits.MaxBufferSize)
	}
	return g, nil
}

// last returns the last of some configurations, or the zero value.
func last[T any](list []T) (v T) {
	if n := len(list); n > 0 {
		v = list[n-1]
	}
	return v
}

// unmade reports whether New did not make the graph.
func (g *Graph) unmade() bool { return g == nil || g.rng == nil }

// now is the time that the scheduler uses. In the deterministic mode it is a millisecond for each dispatch so far.
func (g *Graph) now() time.Duration {
	if g.conf.Deterministic {
		return time.Duration(g.started) * time.Millisecond
	}
	return g.conf.clock()
}

func (g *Graph) lock() { g.mu.Lock() }

// unlock also releases dropped blocks, which may call functions of the program.
func (g *Graph) unlock() {
	dropped := g.dropped
	if g.dropped = nil; len(dropped) == 0 {
		g.mu.Unlock()
		return
	}
	g.releasing++
	g.mu.Unlock()
	g.release(dropped)
}

// release calls functions that release blocks. g.releasing counts such calls.
func (g *Graph) release(dropped []func()) {
	defer func() {
		g.mu.Lock()
		g.releasing--
		g.quiet.broadcast()
		g.mu.Unlock()
	}()
	for _, release := range dropped {
		release()
	}
}

// drop releases a block at the next unlock.
func (g *Graph) drop(b *Block) {
	if b != nil {
		g.dropped = append(g.dropped, b.Release)
	}
}

// change changes the structure of the graph, or records a fault if the graph is in use.
func (g *Graph) change(fn func()) {
	g.lock()
	defer g.unlock()
	if g.state > runnable || g.inflight > 0 {
		g.faults = append(g.faults, fail("build", ErrState, "the graph is ", g.state.name(), ", or a task has not returned"))
		return
	}
	g.state = building
	fn()
}

// place returns the number of a device's place, or with nil that of the host.
func (g *Graph) place(op string, dev *gpu.Device) (int, error) {
	if dev == nil {
		return hostPlace, nil
	}
	if i := slices.Index(g.devices, dev); i >= 0 {
		return i, nil
	}
	return 0, fail(op, gpu.ErrForeign, "a device that is not the graph's")
}

// The errors of this package, beside those of the packages below. A call that fails changes nothing.
var (
	ErrAffinity = fault.New("ErrAffinity", "no device of the graph may run the task")
	ErrBound    = fault.New("ErrBound", "a port without a channel, or with too many")
	ErrBusy     = fault.New("ErrBusy", "a task has not returned")
	ErrCycle    = fault.New("ErrCycle", "a cycle that nothing starts")
	ErrName     = fault.New("ErrName", "no such name, or one that is taken")
	ErrPanic    = fault.New("ErrPanic", "a task panicked")
	ErrShared   = fault.New("ErrShared", "the block has other references")
	ErrState    = fault.New("ErrState", "not in this state of the graph")
	ErrStopped  = fault.New("ErrStopped", "the graph was stopped")
	ErrTemplate = fault.New("ErrTemplate", "blocks of another template")
	ErrTornDown = fault.New("ErrTornDown", "the graph was torn down")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("graph: "+op, err, detail...)
}

// because adds the reason why the graph was torn down, unless Teardown was called.
func (g *Graph) because(err error) error {
	if g.cause == nil {
		return err
	}
	return errors.Join(err, g.cause)
}

func itoa(i int) string { return strconv.Itoa(i) }
