// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type portKind uint8

const (
	inputPort portKind = iota
	outputPort
	describedPort // has words about another port's block
)

// Port is where blocks enter or leave a task. [Task.Port] finds one by its name.
type Port struct {
	PortConfig
	task  *Task
	index int
	name  string
	kind  portKind
	tmpl  *Template

	// Inputs.
	control, data *channel
	sticky        bool
	last, pinned  *Block
	of            string
	ofPort        *Port
	describe      func(*Block) []uint32
	written       bool // some output is made in place of it

	// Outputs.
	out         source
	inPlacePort *Port
	gatePort    *Port
	fromPorts   []*Port // whose signals the output's blocks get
}

// PortConfig says what is special about a port. Names are those of other ports of the task.
type PortConfig struct {
	// Of inputs. The graph reads their blocks; templates have words.

	Sizes    string // the first word is how many bytes the block of this output has, a stream of records
	Iterates bool   // the body is called as often as the word says; or from the first of three words to the second in steps of the third

	// Of outputs.

	InPlace        string   // the block is that of this input, which the task changes where it is
	SignalsFrom    []string // inputs whose signals the blocks get; nil stands for all that are not sticky
	SuppressClones bool     // tasks that write the block share it, too, and see each other's changes

	// OpenedBy and ClosedBy name another output. Its block opens, or closes, this output for the dispatch if it is the end of the
	// stream or begins with a word other than 0. Otherwise it is the opposite.
	OpenedBy, ClosedBy string
}

// TaskOption is a port or another property of a task.
type TaskOption func(*Task)

func port(name string, t *Template, kind portKind, config []PortConfig, change func(*Port)) TaskOption {
	return func(k *Task) {
		p := &Port{task: k, index: len(k.ports), name: name, kind: kind, tmpl: t}
		if len(config) > 0 {
			p.PortConfig = config[0]
		}
		if len(config) > 1 {
			k.fault(gpu.ErrInvalid, "port ", name, " has two configurations")
		}
		p.out.port, p.out.suppress = p, p.SuppressClones
		if change != nil {
			change(p)
		}
		k.ports = append(k.ports, p)
	}
}

// In is an input.
func In(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, inputPort, config, nil)
}

// Out is an output: each dispatch gets a new block for it, of undefined content until the task writes it.
func Out(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, outputPort, config, nil)
}

// Sticky is an input that keeps its last block and is ready from then on: [Port.Set] gives it one, or a channel.
func Sticky(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, inputPort, config, func(p *Port) { p.sticky = true })
}

// Init is an input that has a new block with the template's initial value for each dispatch.
func Init(name string, t *Template, config ...PortConfig) TaskOption {
	return port(name, t, inputPort, config, func(p *Port) {
		p.data = &channel{g: p.task.g, name: name, kind: initialChannel, from: &source{}, to: p}
	})
}

// Described is an input without a channel: before the task runs it gets a block with words about the block of another input, such
// as its size, its signals or its number. A template of one word makes it a scalar for kernels.
func Described(name string, t *Template, of string, words func(*Block) []uint32) TaskOption {
	return port(name, t, describedPort, nil, func(p *Port) { p.of, p.describe = of, words })
}

// meta reports whether the graph reads the port's blocks, and not the task's body.
func (p *Port) meta() bool { return p.Sizes != "" || p.Iterates }

// gate returns the name of the output that opens or closes this one.
func (p *Port) gate() string {
	if p.OpenedBy != "" {
		return p.OpenedBy
	}
	return p.ClosedBy
}

func (p *Port) label() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Set gives a sticky input the block that it keeps, or another one. The port takes over the caller's reference. It may be called
// at any time but during a Teardown.
func (p *Port) Set(b *Block) error {
	if p == nil || !p.sticky {
		return fail("Set", gpu.ErrInvalid, p.label(), " is no sticky input")
	}
	return p.setBlock("Set", &p.last, b)
}

// SetPermanent pins a block on an input: every dispatch gets it, and no consumer releases it. nil unpins. The port takes over
// the caller's reference.
func (p *Port) SetPermanent(b *Block) error {
	if p == nil {
		return fail("SetPermanent", gpu.ErrInvalid, "nil port")
	}
	return p.setBlock("SetPermanent", &p.pinned, b)
}

func (p *Port) setBlock(op string, at **Block, b *Block) error {
	if p.task == nil || p.task.g == nil || p.kind != inputPort {
		return fail(op, gpu.ErrInvalid, p.name, " is no input of a graph")
	}
	if b != nil || at == &p.last {
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
	g.drop(*at)
	*at = b
	g.update(p.task)
	g.schedule()
	return nil
}

// SetValues gives a sticky input a block of elements; see [FromSlice] and [Port.Set].
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

// next returns the channel that the port's next block comes from: the control channel before the other.
func (p *Port) next() *channel {
	for _, c := range [...]*channel{p.control, p.data} {
		if c != nil && c.ready() {
			return c
		}
	}
	return nil
}

// sticking returns the block that a sticky input keeps.
func (p *Port) sticking() *Block {
	if p.sticky {
		return p.last
	}
	return nil
}

// available reports whether a dispatch would find a block.
func (p *Port) available() bool {
	return p.kind != inputPort || p.pinned != nil || p.sticking() != nil || p.next() != nil
}

// bound reports whether there is something that can bring blocks, or take them.
func (p *Port) bound() bool {
	switch p.kind {
	case inputPort:
		return p.control != nil || p.data != nil || p.pinned != nil || p.last != nil
	case outputPort:
		return len(p.out.channels) > 0
	}
	return true
}

// peek returns the block that a dispatch would find, nil if an initialiser makes it.
func (p *Port) peek() *Block {
	if p.pinned != nil {
		return p.pinned
	}
	switch c := p.next(); {
	case c == nil:
		return p.last
	case c.kind == initialChannel:
		return nil
	default:
		return c.queue[0].b
	}
}

// pull takes the next block off the port, from the channel that next returned, with a reference for the dispatch. It is nil if
// the dispatch makes the block.
func (p *Port) pull(c *channel) *Block {
	switch {
	case p.kind != inputPort:
		return nil
	case p.pinned != nil:
		return p.pinned.Retain()
	}
	if c != nil {
		b := c.pop()
		if !p.sticky || b == nil {
			return b
		}
		p.task.g.drop(p.last)
		p.last = b
	}
	return p.last.Retain()
}
