// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Request is a product C = A B to be planned, with an element-wise function of each element of C behind it: A has M rows and K
// columns, B has K rows and N columns.
//
// Tile computes tiles of C in registers and serves software adapters; with tiles of one row it is also their product of a row
// and a matrix. Outer does so with one k at a time, on SwiftShader. Group and Row go through workgroup memory and serve hardware. Sum adds the parts where k was cut: to keep more
// of the device busy, or because no invocation may loop so often. A product with a column, C = A b, is a product with a row:
// hand over its transpose, and the function's operands with it. So is any product whose result is stored by columns. A result
// in binary16 must be stored in vectors.
//
// With Stack set it is so many products, whose results lie one below the other; k is not cut then.
type Request struct {
	M, N, K int
	Stack   int
	Type    fuse.Type // that it is computed in
	Tail    bool      // a function is behind it, or the result's columns do not follow each other in memory
	A, B    Operand
	Device  *Device
}

// Operand is a factor and where it lies. Offset and Stride are in elements; the stride is that of its rows, or of its
// columns where ColMajor is set. In a stack, Step is from the factor of one product to that of the next.
type Operand struct {
	Type                 fuse.Type
	ColMajor             bool
	Offset, Stride, Step int
	Vectors              bool // its memory can be bound in vectors
}

// factor tells how to read a matrix of such a size.
func (o *Operand) factor(rows, cols int, alongK bool) Factor {
	lines := rows
	if o.ColMajor {
		lines = cols
	}
	return Factor{Type: o.Type, AlongK: alongK, Vector: o.Vectors && o.Offset%4 == 0 && o.Step%4 == 0 && (o.Stride%4 == 0 || lines <= 1)}
}

// Product is how a product is computed.
type Product struct {
	Pack   *Launch // of B, read by rows, before First; nil where First reads B itself
	Packed [2]int  // rows and columns of what Pack leaves
	First  *Launch
	A, B   Factor  // as First reads them
	Parts  int     // First leaves so many matrices of m rows, one below the other
	Width  int     // of partial results, a multiple of four
	Sum    *Launch // of the parts, nil if there is but one
	Sooner *Product
}

// The words of First's Shape that say where A and B are bound.
const (
	ProductA = 8
	ProductB = 10
)

// maxSize keeps element numbers within 32 bits.
const maxSize = math.MaxInt32

// Pick plans a product that is not empty by the variant that promises to be the fastest. Sooner is the variant of the same form and number
// of parts, hence with the same bits, whose first result comes the soonest, counting compilation, or nil if that is the chosen one: software
// adapters take a tenth of a second and more to compile those that run the fastest.
func (r *Request) Pick() (*Product, error) {
	all, err := r.choices()
	if err != nil {
		return nil, err
	}
	if r.Device.Tuned != nil {
		return r.tuned(all)
	}
	if runsNative && r.native() {
		return r.planNative(), nil
	}
	if f := r.Device.SIMD; runsSIMD && f != nil {
		if p := f.product(r); p != nil {
			return p, nil
		}
	}
	if r.streams() {
		return r.planStream(), nil
	}
	best := all[0]
	for _, c := range all {
		if c.cost < best.cost {
			best = c
		}
	}
	sooner, soonest := best, best.cost+best.compiling(r)
	for _, c := range all {
		if cost := c.cost + c.compiling(r); c.parts == best.parts && c.form == best.form && cost < soonest {
			sooner, soonest = c, cost
		}
	}
	p := r.plan(best)
	if sooner.variant != best.variant {
		p.Sooner = r.plan(sooner)
	}
	return p, nil
}

// Candidates returns all plans that serve the request.
func (r *Request) Candidates() ([]*Product, error) {
	all, err := r.choices()
	plans := make([]*Product, len(all))
	for i, c := range all {
		plans[i] = r.plan(c)
	}
	if err == nil && runsNative && r.native() {
		plans = append(plans, r.planNative())
	}
	if f := r.Device.SIMD; err == nil && f != nil {
		if p := f.product(r); p != nil {
			plans = append(plans, p)
		}
	}
	if err == nil && r.streams() {
		plans = append(plans, r.planStream())
	}
	return plans, err
}

// plan lists the launches of a product.
func (r *Request) plan(c choice) *Product {
	v := c.variant
	k := Kernel{form: v.form, lines: v.rt}
	k.a, k.b = v.factors(r)
	k.params = v.params(k.a, k.b, r.K%4 != 0, r.N%4 != 0)
	step := max(v.kq, 1) // Group takes whole steps
	chunk := max(shaders.Ceil(quads(r.K), c.parts*step)*step, 1)
	parts, next := max(shaders.Ceil(quads(r.K), chunk), 1), chunk
	if r.Stack > 0 {
		chunk, parts, next = max(quads(r.K), 1), r.Stack, 0
	}
	wide, high := v.wide(r), shaders.Ceil(r.M, v.rows())
	groups := wide * high * parts
	if v.tiles() {
		groups = shaders.Ceil(groups, v.threads())
	}
	a, b := k.a.Unit(), k.b.Unit()
	p := &Product{A: k.a, B: k.b, Parts: parts, Width: 4 * quads(r.N)}
	p.First = k.launch(groups, r.M, r.N, r.K, wide, high, parts, chunk, next, r.A.Offset/a, r.A.Stride/a, r.B.Offset/b, r.B.Stride/b, r.A.Step/a, r.B.Step/b)
	if r.Stack > 0 {
		p.Parts = 1
	} else if parts > 1 {
		p.Sum = Kernel{form: productSum}.launch(shaders.Ceil(r.M*quads(r.N), sumGroup), r.M, r.N, quads(r.N), parts)
	}
	return p
}

const (
	sumGroup     = 64 // GROUP of sum's file
	streamGroup  = 8  // GROUP and, in elements, STRIPE of stream's file
	streamStripe = 256
)

// streams reports whether a product is that of a single row for stream.wgsl, and large enough to wait for memory.
func (r *Request) streams() bool {
	size := r.K * r.N
	return r.Device.SwiftShader && r.M == 1 && r.Stack == 0 && !r.B.ColMajor && min(r.K, r.N) >= 64 && size >= 1<<14 && size <= 8*maxScratch
}

// planStream plans the product of a row and a matrix that is stored by rows.
func (r *Request) planStream() *Product {
	parts := shaders.Ceil(r.K, 8)
	k := Kernel{form: productStream, lines: 1, params: []int{shaders.Bit(r.K%8 != 0)}}
	k.a, k.b = plainTile.factors(r)
	p := &Product{A: k.a, B: k.b, Parts: parts, Width: 4 * quads(r.N)}
	a, b := k.a.Unit(), k.b.Unit()
	p.First = k.launch(shaders.Ceil(parts*shaders.Ceil(r.N, streamStripe), streamGroup), 1, r.N, r.K, 0, 0, parts, 2, 2,
		r.A.Offset/a, r.A.Stride/a, r.B.Offset/b, r.B.Stride/b)
	p.Sum = Kernel{form: productSum}.launch(shaders.Ceil(quads(r.N), sumGroup), 1, r.N, quads(r.N), parts)
	return p
}

var errSize = errors.New("product: size out of range")

// elements reads elements of A or B: line is a row of A or a column of B.
type elements struct {
	t               fuse.Type
	mem             []byte
	offset, line, k int // where it begins, and the steps from a line to the next and along k
}

func newElements(c Factor, mem []byte, offset, stride int) elements {
	o := elements{c.Type, mem, offset * c.Unit(), stride * c.Unit(), 1}
	if !c.AlongK {
		o.line, o.k = o.k, o.line
	}
	return o
}

// multiply is the reference of tile, group and row: it computes every part of the product.
func multiply[N fuse.Num](k *Kernel, e *fuse.Eval[N], shape []int, storage [][]byte) {
	m, n, depth, parts, chunk, next := shape[0], shape[1], shape[2], shape[5], shape[6], shape[7]
	right, left, acc := make([]N, depth*n), make([]N, depth), make([]N, n)
	for x := range parts {
		a := newElements(k.a, storage[0], shape[ProductA]+x*shape[12], shape[ProductA+1])
		b := newElements(k.b, storage[1], shape[ProductB]+x*shape[13], shape[ProductB+1])
		first := min(4*x*next, depth)
		last := min(first+4*chunk, depth)
		for l := first; l < last; l++ {
			fuse.Read(right[l*n:][:n], b.t, b.mem, b.offset+l*b.k, b.line)
		}
		for i := range m {
			fuse.Read(left[first:last], a.t, a.mem, a.offset+i*a.line+first*a.k, a.k)
			clear(acc)
			addRows(acc, left[first:last], right[first*n:last*n])
			e.Apply(x*m+i, 0, acc)
			e.Store(x*m+i, 0, acc)
		}
	}
}

// addRows adds the rows of y, each times its element of x, to acc. Without the conversions Go would fuse on some machines.
func addRows[N fuse.Num](acc, x, y []N) {
	n := len(acc)
	for len(x) >= 4 {
		y0, y1, y2, y3 := y[:n], y[n:][:n], y[2*n:][:n], y[3*n:][:n]
		x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
		for j := range acc {
			acc[j] += N(x0*y0[j]) + N(x1*y1[j]) + N(x2*y2[j]) + N(x3*y3[j]) //nolint:unconvert // keeps Go from fusing
		}
		x, y = x[4:], y[4*n:]
	}
	for l, v := range x {
		for j, w := range y[l*n:][:n] {
			acc[j] += N(v * w) //nolint:unconvert // keeps Go from fusing
		}
	}
}

// addParts is the reference of the kernels that add parts: of products those that lie one below the other, of sparse matrices those
// between two pointers.
func addParts[N fuse.Num](r reference, e *fuse.Eval[N], shape []int, storage [][]byte) {
	rows, cols, wide := shape[0], shape[1], shape[2]
	sums, part := make([]float64, cols), make([]N, cols)
	for i := range rows {
		from, to, step := i, shape[3]*rows, rows
		if r.k.form == sparseSum {
			from, to, step = int(word(storage[1], i)), int(word(storage[1], i+1)), 1
		}
		clear(sums)
		for at := from; at < to; at += step {
			fuse.Read(part, r.f.Type, storage[0], 4*wide*at, 1)
			for j, v := range part {
				sums[j] = combine[N](fuse.ReduceSum, sums[j], float64(v))
			}
		}
		for j, s := range sums {
			part[j] = N(s)
		}
		e.Apply(i, 0, part)
		e.Store(i, 0, part)
	}
}

// Factor tells how the text of a product's kernel reads a factor.
type Factor struct {
	Type   fuse.Type
	AlongK bool // memory runs along k: by the rows of A, by the columns of B
	Vector bool // offset and stride are multiples of four: vectors are loaded
}

// Unit is how many elements an offset and a stride count by in the parameter block.
func (c Factor) Unit() int {
	if c.Vector {
		return 4
	}
	return 1
}

func (c Factor) key() byte {
	return byte(int(c.Type)<<2 | shaders.Bit(c.AlongK)<<1 | shaders.Bit(c.Vector))
}

// text writes the binding of a factor called x and the functions that read it. A line is a row of A or a column of B; l
// counts quads of k.
//
//	x_start(d, i, l)  where the block at line i and quad l begins; d is offset and stride
//	x_deep(d)         from a block to the next along k; d is the stride
//	x_wide(d)         from a block to the next across k
//	x_load(q, d)      the block at q. With lines 1, 2 or 4, so many vectors along k (alias Rows).
//	                  With lines 0, a vector of four lines for each of four k (alias Quad).
//
// Where lines is less than 4, line i need not be a multiple of 4.
func (c Factor) text(x string, binding, lines int) string {
	start, deep, wide, vec := "d.x + i * d.y + $1 * l", "$1", "4u * d", "V($0_quad(q))"
	unit := "1u" // between neighbouring quads
	if !c.Vector {
		unit, vec = "4u", gather("", "1u")
	}
	if !c.AlongK {
		start, deep, wide = "d.x + $1 * (i >> 2u) + 4u * l * d.y", wide, deep
		if !c.Vector {
			start = "d.x + i + 4u * l * d.y"
		}
	}
	pattern := "fn $0_vec(q: u32) -> V { return " + vec + "; }\n" +
		"fn $0_start(d: vec2<u32>, i: u32, l: u32) -> u32 { return " + start + "; }\n" +
		"fn $0_deep(d: u32) -> u32 { return " + deep + "; }\n" +
		"fn $0_wide(d: u32) -> u32 { return " + wide + "; }\n" + c.load(lines)
	slot := fuse.Slot{Type: c.Type, Vec: c.Vector}
	return slot.Text(x, binding, "read") + shaders.Fill(pattern, x, unit, c.Type.WGSL())
}

// outerText writes the binding of a factor called x and the functions that read it for outer.wgsl. They are those of text, but l counts k, and
// x_load returns one k: of A so many lines (alias Column), of B, with lines 0, a vector of four. If shared, which takes
// four lines, an invocation loads the one at its q and gets the other three from the rest of its quad.
func (c Factor) outerText(x string, binding, lines int, shared bool) string {
	start, deep, wide, next := "d.x + i + l * d.y", "d", "4u", "1u" // next: from a line to its neighbour
	switch {
	case c.AlongK:
		start, deep, wide, next = "d.x + i * d.y + l", "1u", "4u * d", "d"
	case c.Vector:
		start, wide = "d.x + (i >> 2u) + l * d.y", "1u"
	}
	result, first, value := "V", "", "V($0_quad(q))"
	if lines > 0 {
		rows := make([]string, lines)
		for n := range rows {
			rows[n] = "T($0_at(q + " + strconv.Itoa(n) + "u * " + next + "))"
			if shared {
				first, rows[n] = "let v = T($0_at(q)); ", "quadBroadcast(v, "+strconv.Itoa(n)+"u)"
			}
		}
		result, value = "Column", "Column("+strings.Join(rows, ", ")+")"
	} else if !c.Vector {
		value = gather("", next)
	}
	pattern := "fn $0_start(d: vec2<u32>, i: u32, l: u32) -> u32 { return " + start + "; }\n" +
		"fn $0_deep(d: u32) -> u32 { return " + deep + "; }\n" +
		"fn $0_wide(d: u32) -> u32 { return " + wide + "; }\n" +
		"fn $0_load(q: u32, d: u32) -> " + result + " { " + first + "return " + value + "; }\n"
	slot := fuse.Slot{Type: c.Type, Vec: c.Vector}
	return slot.Text(x, binding, "read") + shaders.Fill(pattern, x, "", c.Type.WGSL())
}

// gather is a vector of elements that lie d apart, from q plus an offset on.
func gather(offset, d string) string {
	at := "$0_at(q" + offset
	return "V(vec4<$2>(" + at + "), " + at + " + " + d + "), " + at + " + 2u * " + d + "), " + at + " + 3u * " + d + ")))"
}

// load writes x_load. A block whose memory runs the other way is transposed, which costs nothing: on every machine that
// matters the four elements of a vector are four registers.
func (c Factor) load(lines int) string {
	result, count := "Rows", lines
	if lines == 0 {
		result, count = "Quad", 4
	}
	vectors := "  let v0 = $0_vec(q);\n  let v1 = $0_vec(q + d);\n  let v2 = $0_vec(q + 2u * d);\n  let v3 = $0_vec(q + 3u * d);\n"
	parts := []string{"V(v0.x, v1.x, v2.x, v3.x)", "V(v0.y, v1.y, v2.y, v3.y)", "V(v0.z, v1.z, v2.z, v3.z)", "V(v0.w, v1.w, v2.w, v3.w)"}
	if along := c.AlongK == (lines > 0); along || count < 4 { // the vectors wanted are those in memory, or not all four
		vectors, parts = "", nil
		for n := range count {
			part := "$0_vec(q + " + strconv.Itoa(n) + "u * d)"
			if !along {
				part = gather(" + "+strconv.Itoa(n)+"u", "d")
			}
			parts = append(parts, part)
		}
	}
	return "fn $0_load(q: u32, d: u32) -> " + result + " {\n" + vectors + "  return " + result + "(" + strings.Join(parts, ", ") + ");\n}\n"
}
