// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type portKind uint8

const (
	inputPort     portKind = iota
	stickyPort             // an input that keeps its last block
	initialPort            // an input that makes blocks
	describedPort          // gets words about an input's block
	outputPort
)

// Port is where blocks enter or leave a task. [Task.Port] finds one by its name.
type Port struct {
	PortConfig
	task     *Task
	index    int
	name     string
	kind     portKind
	tmpl     *Template
	describe func(*Block) []uint32

	wiring
	kept *Block // see [Port.Set]
}

// wiring is the part of a port that Finalize resolves from names and channels.
type wiring struct {
	control, data *channel   // of inputs
	outs          []*channel // of outputs
	written       bool       // an output is made in place of the input
	ofPort        *Port
	inPlacePort   *Port
	gatePort      *Port
	signalPorts   []*Port // whose signals the output's blocks get
}

// PortConfig has further settings of a port. Names are those of other ports of the task.
type PortConfig struct {
	// Of inputs. The graph reads the blocks of the first two; templates have words.

	Sizes    string // the first word is how many bytes the block of this output has, a stream of records
	Iterates bool   // the body is called as often as the word says; or from the first of three words to the second in steps of the third
	Of       string // the input that decides whether an [Init] port makes a block: it does if the next block there has one of
	On       Signals

	// Of outputs.

	InPlace        string   // the block is that of this input, which the task changes where it is
	SignalsFrom    []string // inputs whose signals the blocks get; nil stands for all that are not sticky
	SuppressClones bool     // tasks that write the block share it, too, and see each other's changes
	Optional       bool     // no channel has to take the blocks

	// OpenedBy and ClosedBy name another output. Its block opens, or closes, this output for the dispatch if it is the end of the
	// stream or begins with a word other than 0. Otherwise it is the opposite.
	OpenedBy, ClosedBy string
}

// TaskOption is a port or another property of a task.
type TaskOption func(*Task)

func port(name string, t *Template, kind portKind, c PortConfig, describe func(*Block) []uint32) TaskOption {
	return func(k *Task) {
		k.ports = append(k.ports, &Port{PortConfig: c, task: k, index: len(k.ports), name: name, kind: kind, tmpl: t, describe: describe})
	}
}

// In is an input.
func In(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, inputPort, last(config), nil)
}

// Out is an output: each dispatch gets a new block for it, whose content is undefined until the task writes it.
func Out(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, outputPort, last(config), nil)
}

// Sticky is an input that keeps its last block, which [Port.Set] or a channel brings, and is ready from then on.
func Sticky(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, stickyPort, last(config), nil)
}

// Init is an input that has a new block with the template's initial value for each dispatch. With [PortConfig].Of this holds for some
// dispatches only, and the others take a block from a channel.
func Init(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, initialPort, last(config), nil)
}

// Described is an input without a channel: before the task runs it gets a block of words that describe the block of another input, such
// as its size, its signals or the program's value. With a template of one word it is a scalar for kernels.
func Described(name string, t *Template, of string, words func(*Block) []uint32) TaskOption {
	return port(name, t, describedPort, PortConfig{Of: of}, words)
}

func (p *Port) isInput() bool { return p.kind < describedPort }

// meta reports whether the graph reads the port's blocks, and not the task's body.
func (p *Port) meta() bool { return p.Sizes != "" || p.Iterates }

// writable reports whether the task writes the port's block.
func (p *Port) writable() bool { return p.kind == outputPort || p.written }

func (p *Port) label() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Set sets the block that an input keeps, nil for none. A sticky input keeps it until Set or a channel brings the next one. Any other
// input has it in every dispatch, PTask's permanent block, and takes none from channels. The port takes over the caller's
// reference. Set may be called at any time except during a Teardown, which releases the block.
func (p *Port) Set(b *Block) error {
	const op = "Set"
	if p == nil || p.task == nil || p.task.g == nil || !p.isInput() {
		return fail(op, gpu.ErrInvalid, p.label(), " is no input of a graph")
	}
	if b != nil {
		if err := p.accepts(op, b); err != nil {
			return err
		}
	}
	g := p.task.g
	g.lock()
	defer g.unlock()
	if g.state == tearingDown {
		return fail(op, g.because(ErrTornDown))
	}
	g.drop(p.kept)
	p.kept = b
	g.update(p.task)
	g.schedule(nil)
	return nil
}

// SetValues makes a block of elements and sets it; see [FromSlice] and [Port.Set].
func SetValues[T matrix.Elem](p *Port, values ...T) error {
	if p == nil {
		return fail("SetValues", gpu.ErrInvalid, "nil port")
	}
	b, err := FromSlice(p.tmpl, values)
	if err != nil {
		return err
	}
	if err = p.Set(b); err != nil {
		b.Release()
	}
	return err
}

// accepts checks that a block may come in.
func (p *Port) accepts(op string, b *Block) error {
	if err := b.usable(op); err != nil {
		return err
	}
	if err := p.tmpl.usable(op); err != nil {
		return err
	}
	if !p.tmpl.agrees(b.t) {
		return fail(op, ErrTemplate, b.t.name, " for ", p.tmpl.name, " of ", p.name)
	}
	return nil
}

// source returns the channel that the port's next block comes from, nil if the port has the block or the dispatch makes it, and
// whether there is one.
func (p *Port) source() (c *channel, ok bool) {
	switch {
	case !p.isInput(), p.kept != nil && p.kind != stickyPort, p.kind == initialPort && p.initializes():
		return nil, true
	case p.control != nil && p.control.ready():
		return p.control, true
	case p.data != nil && p.data.ready():
		return p.data, true
	}
	return nil, p.kept != nil
}

// initializes reports whether an initialiser makes the next block.
func (p *Port) initializes() bool {
	if p.ofPort == nil {
		return true
	}
	b := p.ofPort.peek()
	return b != nil && b.Signals().meets(p.On)
}

// peek returns the block that a dispatch would find, nil if there is none or the dispatch makes it.
func (p *Port) peek() *Block {
	if c, _ := p.source(); c != nil {
		return c.queue.all()[0].b
	}
	return p.kept
}

// take takes the next block off the port, from the channel that source returned, with a reference for the dispatch. It is nil if
// the dispatch makes the block.
func (p *Port) take(c *channel) *Block {
	if c == nil {
		return p.kept.Retain()
	}
	b := c.pop()
	if p.kind == stickyPort {
		p.task.g.drop(p.kept)
		p.kept = b.Retain()
	}
	return b
}

// bound reports whether the port has a source or a destination of blocks.
func (p *Port) bound() bool {
	switch p.kind {
	case outputPort:
		return p.Optional || len(p.outs) > 0
	case inputPort, stickyPort:
		return p.control != nil || p.data != nil || p.kept != nil
	}
	return true
}

// hasCapacity reports whether all channels of an output take one more block.
func (p *Port) hasCapacity() bool {
	return !slices.ContainsFunc(p.outs, func(c *channel) bool { return c.queue.len() >= c.Capacity })
}
