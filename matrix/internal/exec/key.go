// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"encoding/binary"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// maxKey is the longest key of a plan that is kept.
const maxKey = 1 << 14

// tree is an expression as its plan sees it: the operands in their memories, the distinct numbers, and a key that is the same
// for all expressions with the same plan.
type tree struct {
	key      []byte
	buffers  []*buffer.Buffer // of memories
	memories []plan.Memory
	nodes    index          // of *expr.Node
	leaves   index          // of what the leaves are
	operands []plan.Operand // of leaves
	numbers  []uint32
}

// forget drops everything that belongs to the caller's matrices, so that the device keeps none of them.
func (t *tree) forget() {
	clear(t.buffers)
	t.key, t.buffers, t.memories = t.key[:0], t.buffers[:0], t.memories[:0]
	t.operands, t.numbers = t.operands[:0], t.numbers[:0]
	t.nodes.forget()
	t.leaves.forget()
}

// read reads the expression n and the matrix that takes its result.
func (t *tree) read(dst Dense, n *expr.Node) error {
	t.forget()
	t.operand(dst)
	return t.node(n)
}

func (t *tree) put(v ...int) {
	for _, x := range v {
		t.key = binary.AppendUvarint(t.key, uint64(x))
	}
}

// operand appends a matrix to the key.
func (t *tree) operand(d Dense) plan.Operand {
	mem := t.memory(d.Buf)
	t.put(int(d.Type), d.Rows, d.Cols, d.Offset, d.Stride, int(d.Order))
	return plan.Operand{Layout: d.Layout, Type: d.Type, Mem: mem}
}

// memory appends the number of a buffer to the key, and what plans depend on of one that is new. The buffer of an empty
// matrix may be nil.
func (t *tree) memory(b *buffer.Buffer) int {
	at := slices.IndexFunc(t.buffers, b.Same)
	if at >= 0 {
		t.put(at)
		return at
	}
	at = len(t.buffers)
	m := memoryOf(b)
	t.buffers = append(t.buffers, b)
	t.memories = append(t.memories, m)
	t.put(at, m.Size)
	t.key = append(t.key, flag(m.Vectors), flag(m.Windowed))
	return at
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// memoryOf describes a buffer to the planner.
func memoryOf(b *buffer.Buffer) plan.Memory {
	if b == nil {
		return plan.Memory{Vectors: true}
	}
	return plan.Memory{
		Size: b.Size(), Vectors: b.Mode() != buffer.External || b.HasHost() || b.Size()%16 == 0, Windowed: b.Windowed(),
	}
}

// node appends a node to the key: its number if it was there already.
func (t *tree) node(n *expr.Node) error {
	at, seen := t.nodes.add(n)
	if seen {
		t.put(1 + at)
		return nil
	}
	t.put(0, int(n.Kind), int(n.Type))
	switch n.Kind {
	case expr.Leaf:
		return t.leaf(n)
	case expr.Scalar:
		k := slices.Index(t.numbers, n.Bits)
		if k < 0 {
			k = len(t.numbers)
			t.numbers = append(t.numbers, n.Bits)
		}
		t.put(n.Rows, n.Cols, k)
		return nil
	case expr.Call:
		t.put(len(n.Call.Name), len(n.Call.WGSL))
		t.key = append(append(t.key, n.Call.Name...), n.Call.WGSL...)
	case expr.Softmax:
		t.key = append(t.key, flag(n.Log))
	}
	t.put(int(n.Op), int(n.Red), int(n.Axis), len(n.Args))
	for _, a := range n.Args {
		if err := t.node(a); err != nil {
			return err
		}
	}
	return nil
}

// leaf appends a matrix of the expression, which may have changed since the expression was built.
func (t *tree) leaf(n *expr.Node) error {
	at, seen := t.leaves.add(n.Source)
	if seen {
		t.put(1 + at)
		return t.fits(n, t.operands[at])
	}
	t.put(0)
	d, err := n.Source.(Source).Current()
	if err != nil {
		return err
	}
	op := t.operand(d)
	t.operands = append(t.operands, op)
	return t.fits(n, op)
}

// fits refuses a matrix that was resized since the expression was built.
func (t *tree) fits(n *expr.Node, op plan.Operand) error {
	if op.Rows != n.Rows || op.Cols != n.Cols {
		return expr.ShapeError("Assign", n.Shape(), op.Shape())
	}
	return nil
}

// index numbers values in the order in which they come.
type index struct {
	keys []any
	at   map[any]int // from few keys on
}

// few is how many keys are found by looking at each.
const few = 16

func (x *index) add(k any) (at int, seen bool) {
	if x.at == nil {
		at = slices.Index(x.keys, k)
		seen = at >= 0
	} else {
		at, seen = x.at[k]
	}
	if seen {
		return at, true
	}
	x.keys = append(x.keys, k)
	at = len(x.keys) - 1
	switch {
	case x.at != nil:
		x.at[k] = at
	case len(x.keys) > few:
		x.at = map[any]int{}
		for i, k := range x.keys {
			x.at[k] = i
		}
	}
	return at, false
}

func (x *index) forget() {
	clear(x.keys)
	x.keys, x.at = x.keys[:0], nil
}
