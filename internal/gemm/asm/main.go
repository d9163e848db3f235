// SPDX-License-Identifier: Apache-2.0

// Command asm writes the kernels for amd64: matrix products of a small tile in registers, and products with a vector.
package main

import (
	"bytes"
	"log"
	"os"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

const license = "//\n// SPDX-License-Identifier: Apache-2.0\n"

func main() {
	log.SetFlags(0)
	for _, s := range []isa{avx2, avx512} {
		g := &generator{Context: build.NewContext(), isa: s}
		g.ConstraintExpr("!purego")
		g.tile()
		g.axpy()
		g.dot()
		g.maskTable()
		if err := g.write(os.Args[1] + "/" + s.file + "_amd64.s"); err != nil {
			log.Fatal(err)
		}
	}
}

// write compiles the functions and writes them to a file.
func (g *generator) write(name string) error {
	file, err := g.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	text, err := printer.NewGoAsm(printer.Config{Name: "internal/gemm/asm", Pkg: "gemm"}).Print(file)
	if err != nil {
		return err
	}
	first := bytes.IndexByte(text, '\n') + 1
	return os.WriteFile(name, slices.Concat(text[:first], []byte(license), text[first:]), 0o644)
}

// isa is what differs between AVX2 and AVX-512.
type isa struct {
	file, suffix string
	rows         int // of a tile
	width        int // numbers of a vector register
	vector       func(n int) reg.VecPhysical
}

var (
	ymm    = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	zmm    = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}
	avx2   = isa{"avx2", "AVX2", 6, 8, func(n int) reg.VecPhysical { return ymm[n] }}
	avx512 = isa{"avx512", "AVX512", 14, 16, func(n int) reg.VecPhysical { return zmm[n] }}
)

type generator struct {
	*build.Context
	isa
}

// function starts a function of one pointer to a struct of 64-bit words, and returns the words as operands.
func (g *generator) function(name, doc string) (field func(i int) operand.Mem) {
	g.Function(name + g.suffix)
	g.Doc(doc)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(p *byte)")
	p := g.Load(g.Param("p"), g.GP64())
	return func(i int) operand.Mem { return operand.Mem{Base: p, Disp: 8 * i} }
}

// load loads a field into a register.
func (g *generator) load(field operand.Mem) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(field, r)
	return r
}

// distance loads a field that counts numbers, as bytes.
func (g *generator) distance(field operand.Mem) reg.GPVirtual {
	r := g.load(field)
	g.SHLQ(operand.Imm(2), r)
	return r
}

// rows addresses rows at equal distances: each third one has a register, so that one more, the step, reaches all.
type rows struct {
	pointers []reg.GPVirtual
	step     reg.GPVirtual
}

func (g *generator) rowsFrom(first, step reg.GPVirtual, n int) rows {
	r := rows{step: step}
	for i := 0; i < n; i += 3 {
		p := g.GP64()
		if i == 0 {
			g.MOVQ(first, p)
		} else {
			last := r.pointers[len(r.pointers)-1]
			g.LEAQ(operand.Mem{Base: last, Index: step, Scale: 2}, p)
			g.ADDQ(step, p)
		}
		r.pointers = append(r.pointers, p)
	}
	return r
}

// at is the operand of a row, some bytes in.
func (r rows) at(row, bytes int) operand.Mem {
	m := operand.Mem{Base: r.pointers[row/3], Disp: bytes}
	if row%3 > 0 {
		m.Index, m.Scale = r.step, uint8(row%3)
	}
	return m
}

// advance moves the pointers that the first n rows need.
func (g *generator) advance(r rows, n int, by operand.Op) {
	for _, p := range r.pointers[:(n+2)/3] {
		g.ADDQ(by, p)
	}
}

// zero clears a vector register. AVX-512F has no VXORPS of its registers.
func (g *generator) zero(v reg.VecPhysical) {
	if g.width == 16 {
		g.VPXORD(v, v, v)
	} else {
		g.VXORPS(v, v, v)
	}
}
