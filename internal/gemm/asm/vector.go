// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of the struct vectors of package gemm, in words.
const (
	vecM, vecRow            = 0, 3
	vecX, vecY              = 4, 7
	vecLen, vecRows, vecAdd = 10, 11, 12
)

// How many rows of a matrix the vector functions read side by side.
const (
	axpyRows = 8
	dotRows  = 4
)

// axpy writes the function that combines rows of a matrix.
func (g *generator) axpy() {
	f := g.function("axpy", fmt.Sprintf("axpy%s sets or adds to y the sum of 1 or %d rows of a matrix times numbers x.", g.suffix, axpyRows))
	first, step, x := g.load(f(vecM)), g.distance(f(vecRow)), g.load(f(vecX))
	y, n := g.load(f(vecY)), g.load(f(vecLen))
	count := g.load(f(vecRows))
	m := g.rowsFrom(first, step, axpyRows)
	g.CMPQ(count, operand.Imm(1))
	g.JEQ(operand.LabelRef("rows1"))
	for _, rows := range []int{axpyRows, 1} {
		g.Label(fmt.Sprintf("rows%d", rows))
		for i := range rows {
			g.VBROADCASTSS(operand.Mem{Base: x, Disp: 4 * i}, g.vector(i))
		}
		g.axpyLoop(fmt.Sprintf("%dx2", rows), f(vecAdd), m, y, n, rows, 2*g.width)
		g.axpyLoop(fmt.Sprintf("%dx1", rows), f(vecAdd), m, y, n, rows, g.width)
		g.axpyLoop(fmt.Sprintf("%d", rows), f(vecAdd), m, y, n, rows, 1)
		g.VZEROUPPER()
		g.RET()
	}
}

// axpyLoop handles `many` columns in a turn while there are so many.
func (g *generator) axpyLoop(label string, add operand.Mem, m rows, y, n reg.GPVirtual, rows, many int) {
	g.Label("loop" + label)
	g.CMPQ(n, operand.Imm(uint64(many)))
	g.JLT(operand.LabelRef("end" + label))
	registers := max(many/g.width, 1)
	sum := func(v int) reg.VecPhysical { return g.vector(axpyRows + v) }
	for v := range registers {
		g.zero(sum(v))
	}
	g.CMPB(add, operand.Imm(0))
	g.JEQ(operand.LabelRef("sum" + label))
	for v := range registers {
		at := operand.Mem{Base: y, Disp: 4 * g.width * v}
		if many == 1 {
			g.VMOVSS(at, sum(v).AsX())
		} else {
			g.VMOVUPS(at, sum(v))
		}
	}
	g.Label("sum" + label)
	for i := range rows {
		for v := range registers {
			if at := m.at(i, 4*g.width*v); many == 1 {
				g.VFMADD231SS(at, g.vector(i).AsX(), sum(v).AsX())
			} else {
				g.VFMADD231PS(at, g.vector(i), sum(v))
			}
		}
	}
	for v := range registers {
		at := operand.Mem{Base: y, Disp: 4 * g.width * v}
		if many == 1 {
			g.VMOVSS(sum(v).AsX(), at)
		} else {
			g.VMOVUPS(sum(v), at)
		}
	}
	g.advance(m, rows, operand.Imm(uint64(4*many)))
	g.ADDQ(operand.Imm(uint64(4*many)), y)
	g.SUBQ(operand.Imm(uint64(many)), n)
	g.JMP(operand.LabelRef("loop" + label))
	g.Label("end" + label)
}

// dot writes the function that multiplies rows of a matrix by a vector. A row's result is the same whichever rows come with it.
func (g *generator) dot() {
	f := g.function("dot", fmt.Sprintf("dot%s sets y to the products of 1 or %d rows of a matrix and a vector x.", g.suffix, dotRows))
	first, step, x := g.load(f(vecM)), g.distance(f(vecRow)), g.load(f(vecX))
	y, n, count := g.load(f(vecY)), g.load(f(vecLen)), g.load(f(vecRows))
	m := g.rowsFrom(first, step, dotRows)
	g.CMPQ(count, operand.Imm(1))
	g.JEQ(operand.LabelRef("rows1"))
	for _, rows := range []int{dotRows, 1} {
		g.Label(fmt.Sprintf("rows%d", rows))
		for i := range 3 * rows {
			g.zero(g.vector(i))
		}
		g.dotLoop(fmt.Sprintf("%dx2", rows), m, x, n, rows, 2*g.width)
		g.dotLoop(fmt.Sprintf("%dx1", rows), m, x, n, rows, g.width)
		g.dotLoop(fmt.Sprintf("%d", rows), m, x, n, rows, 1)
		for i := range rows {
			g.reduce(g.vector(i), g.vector(rows+i), g.vector(2*rows+i))
			g.VMOVSS(g.vector(i).AsX(), operand.Mem{Base: y, Disp: 4 * i})
		}
		g.VZEROUPPER()
		g.RET()
	}
}

// dotLoop handles `many` columns in a turn while there are so many. A row has two vectors of sums, and one number for the last columns.
func (g *generator) dotLoop(label string, m rows, x, n reg.GPVirtual, rows, many int) {
	g.Label("loop" + label)
	g.CMPQ(n, operand.Imm(uint64(many)))
	g.JLT(operand.LabelRef("end" + label))
	factor := g.vector(3 * dotRows)
	for v := range max(many/g.width, 1) {
		at := operand.Mem{Base: x, Disp: 4 * g.width * v}
		if many == 1 {
			g.VMOVSS(at, factor.AsX())
		} else {
			g.VMOVUPS(at, factor)
		}
		for i := range rows {
			if at := m.at(i, 4*g.width*v); many == 1 {
				g.VFMADD231SS(at, factor.AsX(), g.vector(2*rows+i).AsX())
			} else {
				g.VFMADD231PS(at, factor, g.vector(v*rows+i))
			}
		}
	}
	g.advance(m, rows, operand.Imm(uint64(4*many)))
	g.ADDQ(operand.Imm(uint64(4*many)), x)
	g.SUBQ(operand.Imm(uint64(many)), n)
	g.JMP(operand.LabelRef("loop" + label))
	g.Label("end" + label)
}

// reduce adds up two vectors and the number of the last columns, in the first vector's lowest number.
func (g *generator) reduce(a, b, last reg.VecPhysical) {
	free := g.vector(3 * dotRows)
	g.VADDPS(b, a, a)
	if g.width == 16 {
		g.VEXTRACTF64X4(operand.Imm(1), a, free.AsY())
		g.VADDPS(free.AsY(), a.AsY(), a.AsY())
	}
	g.VEXTRACTF128(operand.Imm(1), a.AsY(), free.AsX())
	g.VADDPS(free.AsX(), a.AsX(), a.AsX())
	g.VHADDPS(a.AsX(), a.AsX(), a.AsX())
	g.VHADDPS(a.AsX(), a.AsX(), a.AsX())
	g.VADDSS(last.AsX(), a.AsX(), a.AsX())
}
