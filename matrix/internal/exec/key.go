// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"encoding/binary"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// The longest key of a plan that is kept, and how many nodes the table of a tree is kept for.
const (
	maxKey   = 1 << 14
	maxTable = 1 << 12
)

// tree is an expression as its plan sees it: the operands in their memories, the distinct numbers, and a key that is the same
// for all expressions with the same plan.
type tree struct {
	key      []byte
	buffers  []*buffer.Buffer // of memories
	memories []plan.Memory
	nodes    map[*expr.Node]int // numbers them
	operands []plan.Operand     // of the nodes that are leaves
	numbers  []uint32
}

// forget drops everything that belongs to the caller's matrices, so that the device keeps none of them.
func (t *tree) forget() {
	clear(t.buffers)
	t.key, t.buffers, t.memories = t.key[:0], t.buffers[:0], t.memories[:0]
	t.operands, t.numbers = t.operands[:0], t.numbers[:0]
	if t.nodes == nil || len(t.nodes) > maxTable {
		t.nodes = map[*expr.Node]int{}
	}
	clear(t.nodes)
}

func (t *tree) put(v ...int) {
	for _, x := range v {
		t.key = binary.AppendUvarint(t.key, uint64(x))
	}
}

// operand appends a matrix to the key.
func (t *tree) operand(d Dense) plan.Operand {
	mem := t.memory(d.Buf)
	t.put(int(d.Type), d.Rows, d.Cols, d.Offset, d.Stride, shaders.Bit(d.ColMajor))
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
	m := plan.Memory{Vectors: true}
	if b != nil {
		m = plan.Memory{
			Size: b.Size(), Vectors: b.Mode() != buffer.External || b.HasHost() || b.Size()%16 == 0, Windowed: b.Windowed(),
		}
	}
	t.buffers = append(t.buffers, b)
	t.memories = append(t.memories, m)
	t.put(at, m.Size, shaders.Bit(m.Vectors), shaders.Bit(m.Windowed))
	return at
}

// node appends a node to the key: its number if it was there already.
func (t *tree) node(n *expr.Node) error {
	if at, seen := t.nodes[n]; seen {
		t.put(1 + at)
		return nil
	}
	t.nodes[n] = len(t.operands)
	t.operands = append(t.operands, plan.Operand{})
	t.put(0, int(n.Kind), int(n.Type))
	switch n.Kind {
	case expr.Leaf:
		return t.leaf(n)
	case expr.Scalar:
		bits := n.Bits()
		k := slices.Index(t.numbers, bits)
		if k < 0 {
			k = len(t.numbers)
			t.numbers = append(t.numbers, bits)
		}
		t.put(n.Rows, n.Cols, k)
		return nil
	case expr.Call:
		t.put(len(n.Call.Name), len(n.Call.WGSL))
		t.key = append(append(t.key, n.Call.Name...), n.Call.WGSL...)
	}
	t.put(int(n.Op), int(n.Red), int(n.Axis), shaders.Bit(n.Log), len(n.Args))
	for _, a := range n.Args {
		if err := t.node(a); err != nil {
			return err
		}
	}
	return nil
}

// leaf appends a matrix of the expression, which may have changed since the expression was built, but not its size.
func (t *tree) leaf(n *expr.Node) error {
	d, err := n.Source.(Source).Current()
	if err != nil {
		return err
	}
	if d.Rows != n.Rows || d.Cols != n.Cols {
		return expr.ShapeError("Assign", n.Shape(), d.Shape())
	}
	t.operands[t.nodes[n]] = t.operand(d)
	return nil
}
