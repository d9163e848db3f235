// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Functions that pages have no use for are no methods: those are in the tables of a page's program, whether it calls them or not.

// strips computes a product of matrices in limited memory: of the result and, if its rows lie together, the left factor the device has a
// strip of rows for long, while ranges of the others come and go. That is less to move than with ranges of one size, since each strip
// takes all of the right factor. It reports whether the product is one that this is for.
func strips(p *planner, dst Operand, n *expr.Node) bool {
	a, left := plain(p, n.Args[0])
	b, right := plain(p, n.Args[1])
	down, across := a.steep(), !b.steep() // whether the rows of a, and the columns of b, lie together
	if p.Free == 0 || !left || !right || !dst.steep() || min(dst.Cols, a.Cols) < 2 || !down && across || dst.Type.Packed() {
		return false
	}
	most := min(p.Device.Binding, p.Device.Buffer) - 256
	wide, narrow := min(p.Free/4, most), min(p.Free/8, most)
	rows, each, end := fitting(dst, wide, dst.Rows), 0, a.Cols
	if down {
		rows = min(rows, fitting(a, wide, dst.Rows))
	}
	if across { // the result's columns are cut, else what the product sums over
		end = dst.Cols
		each = fitting(b.read(true), narrow, end)
	} else if each = fitting(b, narrow, end); !down {
		each = min(each, fitting(a.read(true), narrow, end))
	}
	if rows == 0 || each == 0 || rows == dst.Rows && each == end {
		return false
	}
	was := p.window
	p.window = wide + 256
	for i := 0; i < dst.Rows && p.err == nil; i += rows {
		strip(p, dst, with(n, p.leaf(a), p.leaf(b)), block{i, min(i+rows, dst.Rows), 0, dst.Cols}, each, across)
	}
	p.window = was
	return true
}

// plain returns the matrix that a factor is, if it is one.
func plain(p *planner, n *expr.Node) (op Operand, ok bool) {
	n, transposed := expr.Resolve(n, false)
	if n.Kind != expr.Leaf {
		return op, false
	}
	return p.operand(n).read(transposed), true
}

// strip computes rows of a product, by so many of its columns or of the summands at a time.
func strip(p *planner, dst Operand, n *expr.Node, s block, each int, across bool) {
	a, b := p.operand(n.Args[0]), p.operand(n.Args[1])
	end := a.Cols
	if across {
		end = dst.Cols
		p.reserve(dst.part(s))
	}
	if whole := a.part(block{s.i, s.k, 0, a.Cols}); a.steep() && p.plan.Memories[a.Mem].Windowed {
		p.plan.Steps = append(p.plan.Steps, &Step{To: whole, Bindings: []Binding{bindingOf(whole, buffer.Reads)}})
	}
	for j := 0; j < end; j += each {
		l := min(j+each, end)
		to, left, right := s, block{s.i, s.k, j, l}, block{j, l, 0, b.Cols}
		if across {
			to, left, right = block{s.i, s.k, j, l}, block{s.i, s.k, 0, a.Cols}, block{0, b.Rows, j, l}
		}
		part := with(n, p.leaf(a.part(left)), p.leaf(b.part(right)))
		part.Rows, part.Cols = to.k-to.i, to.l-to.j
		if !across && j > 0 {
			onto := with(part, p.leaf(dst.part(to)), part)
			onto.Kind, onto.Op = expr.Map, fuse.OpAdd
			part = onto
		}
		p.evaluate(dst.part(to), part)
	}
}

// fitting is how many of n rows fit into so many bytes: in whole tiles, if that is some.
func fitting(op Operand, bytes uint64, n int) int {
	fit := int(min(bytes/uint64(op.Stride*op.Type.Size()), uint64(n)))
	if fit < n && fit >= tile {
		return fit / tile * tile
	}
	return fit
}

// maxPlan is how many launches a plan has at most.
const maxPlan = 1 << 16

// verify refuses a plan that the device cannot execute for its limits, so that no evaluation is refused for them after it wrote some of its
// result.
func verify(p *planner) {
	for _, s := range p.plan.Steps {
		for _, b := range s.Bindings {
			m, bytes := p.plan.Memories[b.Mem], bound(p, b)
			if b.Mem >= len(p.Memories) && uint64(m.Size) > p.Device.Buffer {
				bytes = m.Size
			}
			if most := min(p.Device.Binding, p.Device.Buffer); (m.Windowed || uint64(m.Size) > most) && uint64(bytes) > most {
				p.tooLarge(p.Root)
			}
		}
	}
	schedule(p)
}

// view is a node that reads rows and columns of a matrix, or a diagonal, as the matrix that those are.
func view(p *planner, n *expr.Node) *expr.Node {
	if from, b, ok := window(n); ok && from.Kind == expr.Leaf {
		return p.leaf(p.operand(from).part(b))
	}
	if from, b, ok := diagonal(n); ok && from.Kind == expr.Leaf {
		return p.leaf(p.operand(from).part(b).diagonal().read(true))
	}
	return n
}

// schedule finds the last use of each memory, and refuses a plan for which there is not enough.
func schedule(p *planner) {
	all := p.plan
	all.Last = make([]int, len(all.Memories))
	for i, s := range all.Steps {
		for _, b := range s.Bindings {
			all.Last[b.Mem] = i
		}
	}
	made, live, most := make([]bool, len(all.Memories)), 0, 0
	for i, s := range all.Steps {
		ranges := 0
		for _, b := range s.Bindings {
			if all.Memories[b.Mem].Windowed {
				ranges += bound(p, b)
			}
			if b.Mem >= len(p.Memories) && !made[b.Mem] && !all.Memories[b.Mem].Windowed {
				made[b.Mem] = true
				live += all.Memories[b.Mem].Size
			}
		}
		most = max(most, live+ranges)
		for _, b := range s.Bindings {
			if made[b.Mem] && all.Last[b.Mem] == i {
				made[b.Mem] = false
				live -= all.Memories[b.Mem].Size
			}
		}
	}
	if p.Free > 0 && uint64(most) > p.Free {
		p.tooMuch("Assign", strconv.Itoa(most), " bytes used at once, there is room for ", strconv.Itoa(int(p.Free)))
	}
}

// bound is how many bytes a binding takes of memory that is not bound as a whole.
func bound(p *planner, b Binding) int {
	size := b.Type.Size()
	return max(min((b.Hi*size+15)/16*16, p.plan.Memories[b.Mem].Size)-b.Lo*size/256*256, 0)
}
