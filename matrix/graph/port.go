// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type portKind uint8

const (
	inputPort portKind = iota
	outputPort
	describedPort // has a property of another port's block
)

// Port is where blocks enter or leave a task. [Task.Port] finds one by its name.
type Port struct {
	task  *Task
	index int
	name  string
	kind  portKind
	tmpl  *Template

	// Inputs.
	control, data *Channel
	sticky        bool
	last, pinned  *Block
	effect        effect
	effectOf      string
	property      Property
	of            string
	ofPort        *Port
	written       bool // some output is made in place of it

	// Outputs.
	out         source
	inPlace     string
	inPlacePort *Port
	gate        string
	gatePort    *Port
	gateOpen    bool
	from        []string // whose signals go on, if fromSet
	fromSet     bool
	fromPorts   []*Port
}

// effect is what the graph itself does with an input's block.
type effect uint8

const (
	noEffect effect = iota
	sizes
	repeats
	counts
)

// TaskOption is a port or another property of a task.
type TaskOption func(*Task)

// PortOption is an option of a port.
type PortOption func(*Port)

func port(name string, t *Template, kind portKind, opts []PortOption, change func(*Port)) TaskOption {
	return func(k *Task) {
		p := &Port{task: k, index: len(k.ports), name: name, kind: kind, tmpl: t}
		p.out.port = p
		if change != nil {
			change(p)
		}
		for _, o := range opts {
			if o != nil {
				o(p)
			}
		}
		k.ports = append(k.ports, p)
	}
}

// In is an input.
func In(name string, t *Template, opts ...PortOption) TaskOption {
	return port(name, t, inputPort, opts, nil)
}

// Out is an output: each dispatch gets a new block of the template's for it, of undefined content until the task writes it.
func Out(name string, t *Template, opts ...PortOption) TaskOption {
	return port(name, t, outputPort, opts, nil)
}

// Sticky is an input that keeps its last block and is ready from then on: [Port.Set] gives it one, or a channel.
func Sticky(name string, t *Template, opts ...PortOption) TaskOption {
	return port(name, t, inputPort, opts, func(p *Port) { p.sticky = true })
}

// Init is an input that has a new block with the template's initial value for each dispatch.
func Init(name string, t *Template, opts ...PortOption) TaskOption {
	return port(name, t, inputPort, opts, func(p *Port) {
		p.data = &Channel{g: p.task.g, name: name, kind: initialChannel, from: &source{}, to: p, capacity: 1}
	})
}

// AllocationSize is an input whose block the graph reads: its first word is how many bytes the block of an output has,
// which is a stream of records. Its template has words.
func AllocationSize(name string, t *Template, output string, opts ...PortOption) TaskOption {
	return port(name, t, inputPort, opts, func(p *Port) { p.effect, p.effectOf = sizes, output })
}

// SimpleIterator is an input whose block the graph reads: the task's body is called as often as its first word says.
func SimpleIterator(name string, t *Template, opts ...PortOption) TaskOption {
	return port(name, t, inputPort, opts, func(p *Port) { p.effect = repeats })
}

// GeneralIterator is an input whose block the graph reads: the body is called for [Dispatch.Iteration] from its first word
// on, below the second, in steps of the third.
func GeneralIterator(name string, t *Template, opts ...PortOption) TaskOption {
	return port(name, t, inputPort, opts, func(p *Port) { p.effect = counts })
}

// Property is what a described input tells of another port's block.
type Property uint8

// The properties, as words: the bytes of the block; rows, columns and planes; 1 if the block has the signal EOF or BOF, else
// 0; all signals; the UID, low word first; the metadata, filled up with zeros; of the template rows, columns, planes, pitch,
// element type and whether it is a stream of records.
const (
	DataSize Property = iota
	Dims
	IsEOF
	IsBOF
	ControlCode
	UID
	MetaChannel
	TemplateChannel
)

// Described is an input without a channel: its block has a property of another input's, before the task runs.
func Described(name, of string, what Property) TaskOption {
	return port(name, nil, describedPort, nil, func(p *Port) { p.of, p.property = of, what })
}

// Kept makes any input sticky; see [Sticky].
func Kept() PortOption { return func(p *Port) { p.sticky = true } }

// InPlace makes an output's block the one of an input, which the task changes where it is.
func InPlace(input string) PortOption { return func(p *Port) { p.inPlace = input } }

// GatedBy lets an output's blocks out when the gate is open. It is as open says unless the block of the controller, an output
// of the same task, is the end of the stream or begins with a word other than 0: then, for that dispatch, it is the opposite.
func GatedBy(controller string, open bool) PortOption {
	return func(p *Port) { p.gate, p.gateOpen = controller, open }
}

// SignalsFrom says which inputs' signals an output's blocks get. Without it they are those of all inputs but the
// sticky ones.
func SignalsFrom(inputs ...string) PortOption {
	return func(p *Port) { p.from, p.fromSet = inputs, true }
}

// SuppressClones lets all tasks that get an output's block share it, also those that write it.
func SuppressClones() PortOption { return func(p *Port) { p.out.suppress = true } }

// Name returns the name.
func (p *Port) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Template returns what blocks the port takes, nil for a described port.
func (p *Port) Template() *Template {
	if p == nil {
		return nil
	}
	return p.tmpl
}

// Set gives a sticky input the block that it keeps, or another one. The caller's hold of it goes to the port. It may be called
// at any time but during a Teardown.
func (p *Port) Set(b *Block) error { return p.pin("Set", b, false) }

// SetPermanent pins a block on an input: it is there for every dispatch, and no consumer releases it. nil unpins. The
// caller's hold goes to the port.
func (p *Port) SetPermanent(b *Block) error { return p.pin("SetPermanent", b, true) }

func (p *Port) pin(op string, b *Block, permanent bool) error {
	if p == nil || p.task == nil || p.task.g == nil || p.kind != inputPort || !permanent && !p.sticky {
		return fail(op, gpu.ErrInvalid, p.Name(), " is no such input")
	}
	if b != nil || !permanent {
		if err := p.takes(op, b); err != nil {
			return err
		}
	}
	g := p.task.g
	g.lock()
	defer g.unlock()
	if g.state == TearingDown {
		return fail(op, g.because(ErrTornDown))
	}
	if permanent {
		g.drop(p.pinned)
		p.pinned = b
	} else {
		g.drop(p.last)
		p.last = b
	}
	g.update(p.task)
	g.schedule()
	return nil
}

// takes checks that a block may come in.
func (p *Port) takes(op string, b *Block) error {
	if err := b.usable(op); err != nil {
		return err
	}
	if p.tmpl.usable(op) != nil || !p.tmpl.agrees(b.t) {
		return fail(op, ErrTemplate, b.t.name, " for ", p.tmpl.Name(), " of ", p.name)
	}
	return nil
}

// SetScalar gives a sticky input of one element the number.
func SetScalar[T float32 | int32 | uint32](p *Port, v T) error {
	b, err := FromSlice(p.Template(), []T{v})
	if err != nil {
		return err
	}
	if err = p.Set(b); err != nil {
		b.Release()
	}
	return err
}

// next returns the channel that the port's next block comes from: the control channel before the other.
func (p *Port) next() *Channel {
	for _, c := range [...]*Channel{p.control, p.data} {
		if c != nil && c.ready() {
			return c
		}
	}
	return nil
}

// available reports whether a dispatch would find a block.
func (p *Port) available() bool {
	return p.kind != inputPort || p.pinned != nil || p.next() != nil || p.sticky && p.last != nil
}

// bound reports whether there is something that can bring blocks.
func (p *Port) bound() bool {
	switch p.kind {
	case inputPort:
		return p.control != nil || p.data != nil || p.pinned != nil || p.last != nil
	case outputPort:
		return len(p.out.channels) > 0
	}
	return true
}

// pull takes the next block off the port, from the channel that next said, with a hold for the dispatch. It is nil if the block
// is a new one that has yet to be made.
func (p *Port) pull(c *Channel) *Block {
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

// words returns a property of a block.
func (w Property) words(b *Block) []uint32 {
	flag := func(s Signals) []uint32 {
		if b.Signals().Has(s) {
			return []uint32{1}
		}
		return []uint32{0}
	}
	t := b.t
	switch w {
	case DataSize:
		return []uint32{word(b.Size())}
	case Dims:
		return []uint32{word(b.rows), word(t.cols), word(t.planes)}
	case IsEOF:
		return flag(EOF)
	case IsBOF:
		return flag(BOF)
	case UID:
		return []uint32{uint32(b.uid), uint32(b.uid >> 32)}
	case MetaChannel:
		meta := append(b.Meta(), 0, 0, 0)
		words := make([]uint32, len(meta)/4)
		for i := range words {
			m := meta[4*i:]
			words[i] = uint32(m[0]) | uint32(m[1])<<8 | uint32(m[2])<<16 | uint32(m[3])<<24
		}
		return words
	case TemplateChannel:
		records := uint32(0)
		if t.records {
			records = 1
		}
		return []uint32{word(t.rows), word(t.cols), word(t.planes), word(t.pitch), uint32(t.dtype), records}
	}
	return []uint32{uint32(b.Signals())}
}

func word(n int) uint32 { return uint32(min(n, math.MaxUint32)) }

// describe makes the block of a described port.
func (p *Port) describe(of *Block) (*Block, error) {
	return p.tmpl.From(matrix.Host(p.property.words(of)).Bytes)
}
