// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Graph is tasks, the channels between them, and what runs them. Make one with [New], add tasks, [Graph.Connect] their ports,
// and Run it. Its methods may be called from several goroutines.
type Graph struct {
	devices   []*gpu.Device
	conf      config
	rng       *rand.Rand
	largest   uint64          // bytes of a block on the host: more than Go can have ends a program
	deaths    []atomic.Uint64 // by device: one more than the life in which it was last found lost
	live      atomic.Int64    // blocks that somebody holds
	uids      atomic.Uint64
	clones    atomic.Uint64
	releasing atomic.Int32 // goroutines that release blocks
	watched   atomic.Bool  // somebody waits for that
	moved     struct{ up, down atomic.Uint64 }
	mu        sync.Mutex
	trash     []interface{ Release() } // blocks and kernels
	state     Phase
	faults    []error
	templates []*Template
	tasks     []*Task
	inputs    []*Input
	channels  []*Channel
	wordTypes [TemplateChannel + 1]*Template

	run      *run
	past     []*run // that have ended, but for dispatches and goroutines
	epoch    uint64 // counts Teardowns
	inflight int    // dispatches of all runs
	stopped  bool
	stepping bool
	over     chan struct{} // closed by Teardown
	cause    error         // of the last teardown, nil after a call of Teardown
	quiet    bell          // something may have come to its end
	ready    lanes
	started  uint64 // dispatches ever
	orders   uint64 // how often tasks became ready
	ageing   *time.Timer
	page     pageTurn
	waits    time.Duration // decaying averages of how long tasks wait and run
	works    time.Duration
	trace    tracer
	lanes    []LaneStats
}

// Phase is where a graph is in its life.
type Phase uint8

// Option is an option of [New].
type Option func(*config) error

type config struct {
	mode      Mode
	threshold int
	hosts     int
	single    bool
	sync      bool
	seed      uint64
	events    int
	clock     func() time.Duration
}

// WithMode sets how the next task is chosen. [DataAware] is the default.
func WithMode(m Mode) Option {
	return func(c *config) error {
		if m > FIFO {
			return fail("New", gpu.ErrInvalid, "unknown mode")
		}
		c.mode = m
		return nil
	}
}

// WithThreshold sets the effective priority above which a task no longer waits for the device that has its data. 6 is the
// default; 10 makes tasks wait for ever.
func WithThreshold(n int) Option {
	return func(c *config) error {
		if n < LowestPriority || n > HighestPriority {
			return fail("New", gpu.ErrInvalid, "a threshold of ", itoa(n))
		}
		c.threshold = n
		return nil
	}
}

// WithHostWorkers sets how many tasks that need no device run at once. 1 is the default.
func WithHostWorkers(n int) Option {
	return func(c *config) error {
		if n < 1 || n > maxWorkers {
			return fail("New", gpu.ErrInvalid, itoa(n), " workers")
		}
		c.hosts = n
		return nil
	}
}

// Deterministic makes everything run in the goroutines that call Run, Push, Pull and Stop, one task at a time, in an order
// that the seed decides: the same calls give the same order.
func Deterministic(seed uint64) Option {
	return func(c *config) error { c.single, c.seed = true, seed; return nil }
}

// WithTrace keeps the last n dispatches for [Graph.WriteTrace].
func WithTrace(n int) Option {
	return func(c *config) error {
		if n < 0 || n > 1<<24 {
			return fail("New", gpu.ErrInvalid, itoa(n), " events")
		}
		c.events = n
		return nil
	}
}

// WithSync makes each dispatch on a device last until the device has done its work. Without it a body queues work and
// returns. Traces and times are then those of the work; what it costs is that a device idles while the host prepares its next task.
func WithSync() Option {
	return func(c *config) error { c.sync = true; return nil }
}

// maxWorkers is how many devices, and host workers with them, a graph can have.
const maxWorkers = 60

// leastHost is how large blocks can be on the host where no device has larger buffers.
const leastHost = 1 << 30

// New makes a graph on the devices, which stay the caller's and may be of one adapter. Without any it runs tasks of the host's
// only.
func New(devices []*gpu.Device, opts ...Option) (*Graph, error) {
	const op = "New"
	g := &Graph{conf: config{mode: DataAware, threshold: 6, hosts: 1}, over: make(chan struct{})}
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
	if len(devices)+g.conf.hosts > maxWorkers {
		return nil, fail(op, gpu.ErrLimit, itoa(len(devices)), " devices")
	}
	g.largest = leastHost
	for _, d := range devices {
		g.largest = max(g.largest, d.Limits().MaxBufferSize)
	}
	g.deaths = make([]atomic.Uint64, len(devices))
	g.rng = rand.New(rand.NewPCG(g.conf.seed, 1))
	if g.conf.clock == nil {
		begin := time.Now()
		g.conf.clock = func() time.Duration { return time.Since(begin) }
	}
	g.trace.limit = g.conf.events
	g.lanes = make([]LaneStats, len(devices)+1)
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

// unlock lets others go on, and releases blocks that were dropped: that may call functions of the program's.
func (g *Graph) unlock() {
	trash := g.trash
	if len(trash) == 0 {
		g.mu.Unlock()
		return
	}
	g.trash = nil
	g.releasing.Add(1)
	g.mu.Unlock()
	defer g.released()
	for _, b := range trash {
		b.Release()
	}
}

// drop releases a block at the next unlock.
func (g *Graph) drop(b *Block) {
	if b != nil {
		g.trash = append(g.trash, b)
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
	if g.state > Runnable || g.inflight > 0 {
		err := fail("build", ErrState, "the graph is ", g.state.String(), ", or a task has not returned")
		g.faults = append(g.faults, err)
		return err
	}
	g.state = Building
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

// words returns the template of blocks with a property.
func (g *Graph) words(p Property) *Template {
	g.mu.Lock()
	t := g.wordTypes[p]
	g.mu.Unlock()
	if t != nil {
		return t
	}
	n := map[Property]int{Dims: 3, UID: 2, TemplateChannel: 6}[p]
	opts := []TemplateOption{}
	if p == MetaChannel {
		opts = append(opts, Records())
	}
	t = g.Template("words", max(n, 1), 1, matrix.Uint32, opts...)
	g.mu.Lock()
	g.wordTypes[p] = t
	g.mu.Unlock()
	return t
}

// Devices returns the devices.
func (g *Graph) Devices() []*gpu.Device {
	if g == nil {
		return nil
	}
	return slices.Clone(g.devices)
}

// Phase returns where the graph is in its life.
func (g *Graph) Phase() Phase {
	if g == nil {
		return TornDown
	}
	g.lock()
	defer g.unlock()
	return g.state
}

// Connect makes a channel from an output to an input. Mistakes are faults of the graph's. The result may be ignored.
func (g *Graph) Connect(from, to *Port, opts ...ChannelOption) *Channel {
	c := g.channel(internalChannel, from.Name()+"-"+to.Name(), opts)
	if g.exits(c, from) && g.enters(c, to) {
		g.agree(c, from.tmpl, to.tmpl)
		g.bind(c, &from.out, to)
	}
	return c
}

// Discard lets an output's blocks go nowhere.
func (g *Graph) Discard(from *Port) {
	c := g.channel(nullChannel, from.Name()+"-null", nil)
	if g.exits(c, from) {
		_ = g.change(func() { // has become a fault
			c.from = &from.out
			from.out.channels = append(from.out.channels, c)
			g.channels = append(g.channels, c)
		})
	}
}

// Initialize gives an input, beside its other channel, new blocks with the template's initial value while the predicate of
// [WhenPulled] is open; see [ControlledBy]. With [AsControl] they come before the other channel's.
func (g *Graph) Initialize(to *Port, opts ...ChannelOption) *Channel {
	c := g.channel(initialChannel, to.Name()+"-init", opts)
	if g.enters(c, to) {
		if c.leave.kind == passAsked || c.judge == nil && !c.leave.open(0) || c.judge != nil && (c.judge == to || c.judge.task != to.task || c.judge.kind != inputPort) {
			g.fault(fail("Initialize", gpu.ErrInvalid, to.name, ": a predicate without signals to look at"))
		}
		g.bind(c, c.from, to)
	}
	return c
}

func (g *Graph) channel(kind channelKind, name string, opts []ChannelOption) *Channel {
	c := &Channel{g: g, name: name, kind: kind, capacity: DefaultCapacity, from: &source{}}
	for _, o := range opts {
		if o != nil {
			o(c)
		}
	}
	if c.capacity < 1 && g != nil {
		g.fault(fail("Connect", ErrCapacity, name, ": ", itoa(c.capacity)))
	}
	return c
}

// exits checks the end of a channel where blocks enter it.
func (g *Graph) exits(c *Channel, from *Port) bool {
	if g == nil {
		return false
	}
	if from == nil || from.task == nil || from.task.g != g || from.kind != outputPort {
		g.fault(fail("Connect", gpu.ErrInvalid, c.name, ": ", from.Name(), " is no output of the graph's tasks"))
		return false
	}
	return true
}

// enters checks the other end.
func (g *Graph) enters(c *Channel, to *Port) bool {
	if g == nil {
		return false
	}
	if to == nil || to.task == nil || to.task.g != g || to.kind != inputPort {
		g.fault(fail("Connect", gpu.ErrInvalid, c.name, ": ", to.Name(), " is no input of the graph's tasks"))
		return false
	}
	return true
}

func (g *Graph) agree(c *Channel, from, to *Template) {
	if from != nil && to != nil && !from.agrees(to) {
		g.fault(fail("Connect", ErrTemplate, c.name, ": ", from.name, " to ", to.name))
	}
}

// bind makes a channel the port's, unless it has one. Mistakes have become faults.
func (g *Graph) bind(c *Channel, from *source, to *Port) {
	_ = g.change(func() {
		end := &to.data
		if c.first {
			end = &to.control
		}
		if *end != nil {
			g.faults = append(g.faults, fail("Connect", ErrBound, to.task.name, ".", to.name))
			return
		}
		*end, c.from, c.to = c, from, to
		from.channels = append(from.channels, c)
		g.channels = append(g.channels, c)
	})
}
