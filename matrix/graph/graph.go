// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// Graph is tasks, the channels between them, and what runs them. Make one with [New], add tasks, [Graph.Connect] their ports,
// and Run it. Its methods may be called from several goroutines.
type Graph struct {
	devices   []*gpu.Device
	hosts     int // how many tasks of the host run at once
	conf      config
	rng       *rand.Rand
	largest   uint64          // bytes of a block on the host: more than Go can have ends a program
	lostIn    []atomic.Uint64 // by device: one more than the generation in which it was last found lost
	live      atomic.Int64    // blocks with references
	uids      atomic.Uint64
	clones    atomic.Uint64
	releasing atomic.Int32 // goroutines that release blocks
	watched   atomic.Bool  // somebody waits for that
	moved     struct{ up, down atomic.Uint64 }

	mu        sync.Mutex
	dropped   []func() // releases of blocks and kernels, for the next unlock
	state     phase
	faults    []error
	templates []*Template
	tasks     []*Task
	inputs    []*Input
	channels  []*channel

	run      *run   // the last one
	epoch    uint64 // counts Teardowns
	inflight int    // dispatches
	stopped  bool
	stepping bool
	over     chan struct{} // closed by Teardown
	cause    error         // of the last teardown, nil after a call of Teardown
	quiet    condition     // a dispatch, a run or a teardown has ended
	ready    readyQueues
	started  uint64 // dispatches ever
	orders   uint64 // how often tasks became ready
	ageing   *time.Timer
	page     pageTurn
	waits    time.Duration // decaying averages of how long tasks wait and run
	works    time.Duration
	trace    tracer
	stats    []DeviceStats
}

// Option is an option of [New].
type Option func(*config) error

type config struct {
	mode      Mode
	threshold int
	single    bool
	sync      bool
	seed      uint64
	events    int
	clock     func() time.Duration
}

// WithMode sets how the next task is chosen. [DataAware] is the default.
func WithMode(m Mode) Option {
	return option("mode", int(m), int(FIFO), func(c *config) { c.mode = m })
}

// WithThreshold sets the effective priority above which a task no longer waits for the device that has its data. 6 is the
// default; 10 makes tasks wait for ever.
func WithThreshold(n int) Option {
	return option("threshold", n, highestPriority, func(c *config) { c.threshold = n })
}

// WithTrace keeps the last n dispatches for [Graph.WriteTrace].
func WithTrace(n int) Option {
	return option("trace", n, maxEvents, func(c *config) { c.events = n })
}

// Deterministic makes everything run in the goroutines that call Run, Push, Pull and Stop, one task at a time, in an order
// that the seed decides: the same calls give the same order.
func Deterministic(seed uint64) Option {
	return func(c *config) error { c.single, c.seed = true, seed; return nil }
}

// WithSync makes each dispatch on a device last until the device has done its work. Without it a body queues work and
// returns. Traces and times are then those of the work; what it costs is that a device idles while the host prepares its next task.
func WithSync() Option {
	return func(c *config) error { c.sync = true; return nil }
}

// option sets a number between 0 and a limit.
func option(name string, n, most int, set func(*config)) Option {
	return func(c *config) error {
		if n < 0 || n > most {
			return fail("New", gpu.ErrInvalid, "a ", name, " of ", itoa(n))
		}
		set(c)
		return nil
	}
}

// maxEvents bounds the memory of a trace.
const maxEvents = 1 << 24

// maxWorkers is how many devices and workers of the host a graph can have, maxHosts how many of them are the host's.
const (
	maxWorkers = 60
	maxHosts   = 16
)

// leastHost is how large blocks can be on the host where no device has larger buffers.
const leastHost = 1 << 30

// New makes a graph on the devices, which stay the caller's and may be of one adapter. Without any it runs only tasks of the host,
// of which as many run at once as Go uses processors.
func New(devices []*gpu.Device, opts ...Option) (*Graph, error) {
	const op = "New"
	g := &Graph{conf: config{mode: DataAware, threshold: 6}, hosts: min(runtime.GOMAXPROCS(0), maxHosts), over: make(chan struct{})}
	for i, d := range devices {
		if d == nil || slices.Contains(devices[:i], d) {
			return nil, fail(op, gpu.ErrInvalid, "a device that is nil or there twice")
		}
		if err := d.Usable(); err != nil {
			return nil, err
		}
		g.devices = append(g.devices, d)
	}
	for _, o := range opts {
		if o == nil {
			return nil, fail(op, gpu.ErrInvalid, "nil option")
		}
		if err := o(&g.conf); err != nil {
			return nil, err
		}
	}
	if len(devices)+g.hosts > maxWorkers {
		return nil, fail(op, gpu.ErrLimit, itoa(len(devices)), " devices")
	}
	g.largest = leastHost
	for _, d := range devices {
		g.largest = max(g.largest, d.Info().Limits.MaxBufferSize)
	}
	g.lostIn = make([]atomic.Uint64, len(devices))
	g.rng = rand.New(rand.NewPCG(g.conf.seed, 1))
	if g.conf.clock == nil {
		begin := time.Now()
		g.conf.clock = func() time.Duration { return time.Since(begin) }
	}
	g.trace.limit = g.conf.events
	g.stats = make([]DeviceStats, len(devices)+1)
	return g, nil
}

// unmade reports whether New did not make the graph.
func (g *Graph) unmade() bool { return g == nil || g.rng == nil }

// now is the time for decisions. In the deterministic mode it passes by the dispatch.
func (g *Graph) now() time.Duration {
	if g.conf.single {
		return time.Duration(g.started) * time.Millisecond
	}
	return g.conf.clock()
}

func (g *Graph) lock() { g.mu.Lock() }

// unlock also releases blocks that were dropped: that may call functions of the program.
func (g *Graph) unlock() {
	dropped := g.dropped
	if len(dropped) == 0 {
		g.mu.Unlock()
		return
	}
	g.dropped = nil
	g.releasing.Add(1)
	g.mu.Unlock()
	defer g.released()
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

func (g *Graph) fault(err error) {
	g.mu.Lock()
	g.faults = append(g.faults, err)
	g.mu.Unlock()
}

// change changes the structure, which must not be in use.
func (g *Graph) change(fn func()) error {
	g.lock()
	defer g.unlock()
	if g.state > runnable || g.inflight > 0 {
		err := fail("build", ErrState, "the graph is ", g.state.String(), ", or a task has not returned")
		g.faults = append(g.faults, err)
		return err
	}
	g.state = building
	fn()
	return nil
}

// place returns the number of a device's place, or with nil that of the host.
func (g *Graph) place(op string, dev *gpu.Device) (int, error) {
	if dev == nil {
		return hostPlace, nil
	}
	if i := slices.Index(g.devices, dev); i >= 0 {
		return i + 1, nil
	}
	return 0, fail(op, gpu.ErrForeign, "a device that is not the graph's")
}
