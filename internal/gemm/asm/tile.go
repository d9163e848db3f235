// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of the struct tile of package gemm, in words. A slice has three, and its address is the first.
const (
	tileA, tileARow, tileAStep             = 0, 3, 4
	tileB, tileBStep                       = 5, 8
	tileC, tileCRow                        = 9, 12
	tileDepth, tileRows, tileCols, tileAdd = 13, 14, 15, 16
)

// unroll is how many columns of A the loop for full tiles handles in a turn where they follow each other in memory.
const unroll = 4

// ahead is how many steps along the depth the loops prefetch: where A or B is not packed, steps may be pages apart.
const ahead = 8

// tileState is the registers of a tile's function, which all its loops share.
type tileState struct {
	field           func(i int) operand.Mem
	a               rows
	aStep, b, bStep reg.GPVirtual
	depth           reg.GPVirtual
}

// tile writes the function that multiplies some rows of A by up to two vector registers of columns of B. It has a loop for each
// number of rows and of vectors, so that tiles at the edges cost what they need.
func (g *generator) tile() {
	f := g.function("tile", "tile"+g.suffix+" sets or adds to a tile of C the product of some rows of A and columns of B.")
	s := &tileState{field: f}
	first, step := g.load(f(tileA)), g.distance(f(tileARow))
	s.aStep, s.b, s.bStep = g.distance(f(tileAStep)), g.load(f(tileB)), g.distance(f(tileBStep))
	s.a = g.rowsFrom(first, step, g.rows)
	g.masks(s)
	s.depth = g.load(f(tileDepth))
	n := g.load(f(tileRows))
	g.CMPQ(f(tileCols), operand.Imm(uint64(g.width)))
	g.JLE(operand.LabelRef("narrow"))
	for _, vectors := range []int{2, 1} {
		if vectors == 1 {
			g.Label("narrow")
		}
		for m := g.rows; m > 1; m-- {
			g.CMPQ(n, operand.Imm(uint64(m)))
			g.JEQ(operand.LabelRef(fmt.Sprintf("rows%dx%d", m, vectors)))
		}
		for m := 1; m <= g.rows; m++ {
			g.Label(fmt.Sprintf("rows%dx%d", m, vectors))
			g.product(s, m, vectors)
		}
	}
}

// masks prepares the masks of the columns: K1 and K2 with AVX-512. AVX2 loads its masks where it needs them.
func (g *generator) masks(s *tileState) {
	if g.width < 16 {
		return
	}
	mask := g.GP64()
	g.MOVQ(s.field(tileCols), reg.RCX)
	g.MOVQ(operand.U32(1), mask)
	g.SHLQ(reg.CL, mask)
	g.DECQ(mask)
	g.KMOVW(mask.As32(), reg.K1)
	g.SHRQ(operand.Imm(16), mask)
	g.KMOVW(mask.As32(), reg.K2)
}

// sum is the register of a part of the tile.
func (g *generator) sum(vectors, row, vector int) reg.VecPhysical {
	return g.vector(4 + vectors*row + vector)
}

// product writes the loops for m rows, and what stores their sums.
func (g *generator) product(s *tileState, m, vectors int) {
	label := fmt.Sprintf("%dx%d", m, vectors)
	for i := range m {
		for v := range vectors {
			g.zero(g.sum(vectors, i, v))
		}
	}
	if m == g.rows {
		g.unrolled(s, label, m, vectors)
	}
	g.Label("loop" + label)
	g.PREFETCHT0(operand.Mem{Base: s.a.pointers[0], Index: s.aStep, Scale: ahead})
	g.column(s, m, vectors, 0)
	g.advance(s.a, m, s.aStep)
	g.DECQ(s.depth)
	g.JNZ(operand.LabelRef("loop" + label))
	g.Label("store" + label)
	g.storeTile(s, label, m, vectors)
	g.VZEROUPPER()
	g.RET()
}

// unrolled handles several columns of A in a turn if A's rows are contiguous.
func (g *generator) unrolled(s *tileState, label string, m, vectors int) {
	g.CMPQ(s.aStep, operand.Imm(4))
	g.JNE(operand.LabelRef("loop" + label))
	g.SUBQ(operand.Imm(unroll), s.depth)
	g.JLT(operand.LabelRef("rest" + label))
	g.Label("unrolled" + label)
	for u := range unroll {
		g.column(s, m, vectors, 4*u)
	}
	g.advance(s.a, m, operand.Imm(4*unroll))
	g.SUBQ(operand.Imm(unroll), s.depth)
	g.JGE(operand.LabelRef("unrolled" + label))
	g.Label("rest" + label)
	g.ADDQ(operand.Imm(unroll), s.depth)
	g.JZ(operand.LabelRef("store" + label))
}

// column adds the products of one column of A, some bytes in, and one row of B.
func (g *generator) column(s *tileState, m, vectors, bytes int) {
	for v := range vectors {
		g.VMOVUPS(operand.Mem{Base: s.b, Disp: 4 * g.width * v}, g.vector(v))
	}
	for v := range (vectors*g.width + 15) / 16 {
		g.PREFETCHT0(operand.Mem{Base: s.b, Index: s.bStep, Scale: ahead, Disp: 64 * v})
	}
	g.ADDQ(s.bStep, s.b)
	for i := range m {
		factor := g.vector(2 + i%2)
		g.VBROADCASTSS(s.a.at(i, bytes), factor)
		for v := range vectors {
			g.VFMADD231PS(g.vector(v), factor, g.sum(vectors, i, v))
		}
	}
}

// storeTile adds the tile's old numbers if they count, and stores the sums.
func (g *generator) storeTile(s *tileState, label string, m, vectors int) {
	first, row := g.load(s.field(tileC)), g.distance(s.field(tileCRow))
	each := func(do func(c operand.Mem, sum reg.VecPhysical, v int)) {
		c := g.GP64()
		g.MOVQ(first, c)
		for i := range m {
			for v := range vectors {
				do(operand.Mem{Base: c, Disp: 4 * g.width * v}, g.sum(vectors, i, v), v)
			}
			if i+1 < m {
				g.ADDQ(row, c)
			}
		}
	}
	if g.width == 16 {
		g.CMPB(s.field(tileAdd), operand.Imm(0))
		g.JEQ(operand.LabelRef("set" + label))
		mask := []reg.Register{reg.K1, reg.K2}
		each(func(c operand.Mem, sum reg.VecPhysical, v int) { g.VADDPS(c, sum, mask[v], sum) })
		g.Label("set" + label)
		each(func(c operand.Mem, sum reg.VecPhysical, v int) { g.VMOVUPS(sum, mask[v], c) })
		return
	}
	g.CMPQ(s.field(tileCols), operand.Imm(uint64(g.width*vectors)))
	g.JNE(operand.LabelRef("part" + label))
	g.CMPB(s.field(tileAdd), operand.Imm(0))
	g.JEQ(operand.LabelRef("set" + label))
	each(func(c operand.Mem, sum reg.VecPhysical, _ int) { g.VADDPS(c, sum, sum) })
	g.Label("set" + label)
	each(func(c operand.Mem, sum reg.VecPhysical, _ int) { g.VMOVUPS(sum, c) })
	g.VZEROUPPER()
	g.RET()
	g.Label("part" + label)
	g.loadMasks(s)
	g.CMPB(s.field(tileAdd), operand.Imm(0))
	g.JEQ(operand.LabelRef("setpart" + label))
	each(func(c operand.Mem, sum reg.VecPhysical, v int) {
		g.VMASKMOVPS(c, g.vector(v), g.vector(2))
		g.VADDPS(g.vector(2), sum, sum)
	})
	g.Label("setpart" + label)
	each(func(c operand.Mem, sum reg.VecPhysical, v int) { g.VMASKMOVPS(sum, g.vector(v), c) })
}

// loadMasks loads the masks of AVX2 for the columns: a part of a table of 16 full and 16 empty numbers.
func (g *generator) loadMasks(s *tileState) {
	table, skip := g.GP64(), g.GP64()
	g.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol("masks"), 0), table)
	g.MOVQ(operand.U32(16), skip)
	g.SUBQ(s.field(tileCols), skip)
	g.LEAQ(operand.Mem{Base: table, Index: skip, Scale: 4}, table)
	g.VMOVUPS(operand.Mem{Base: table}, g.vector(0))
	g.VMOVUPS(operand.Mem{Base: table, Disp: 32}, g.vector(1))
}

// maskTable writes the table of masks.
func (g *generator) maskTable() {
	if g.width == 16 {
		return
	}
	g.StaticGlobal("masks")
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 32 {
		full := operand.U32(0)
		if i < 16 {
			full = ^full
		}
		g.AddDatum(4*i, full)
	}
}
