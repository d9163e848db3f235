// SPDX-License-Identifier: Apache-2.0

package kernels

import "github.com/sublet-gpu/sublet/internal/shaders"

// variant is a product's kernel in one size.
type variant struct {
	form   *form
	tx, ty int     // workgroup; Row: quads of columns and invocations that share each
	rq, cq int     // quads of rows and of columns of an invocation
	rt     int     // Tile, Outer, Quads and Row: rows of a quad of rows, 4 or fewer
	kq     int     // Group: quads of k of a step
	rate   float64 // the speed where the device is full, relative to the other variants of Group
}

// variants holds every size on offer. The order decides between equals.
var variants = []variant{
	{form: productTile, tx: 8, ty: 1, rq: 4, rt: 4, cq: 4},
	{form: productTile, tx: 8, ty: 1, rq: 2, rt: 4, cq: 4},
	{form: productTile, tx: 8, ty: 1, rq: 4, rt: 4, cq: 1},
	{form: productTile, tx: 8, ty: 1, rq: 2, rt: 4, cq: 2},
	{form: productTile, tx: 8, ty: 1, rq: 1, rt: 4, cq: 4},
	{form: productTile, tx: 8, ty: 1, rq: 1, rt: 4, cq: 1},
	{form: productTile, tx: 8, ty: 1, rq: 1, rt: 2, cq: 4},
	{form: productTile, tx: 8, ty: 1, rq: 1, rt: 2, cq: 1},
	{form: productTile, tx: 8, ty: 1, rq: 1, rt: 1, cq: 4},
	{form: productTile, tx: 8, ty: 1, rq: 1, rt: 1, cq: 2},
	{form: productTile, tx: 8, ty: 1, rq: 1, rt: 1, cq: 1},

	{form: productOuter, tx: 8, ty: 1, rq: 2, rt: 4, cq: 4},
	{form: productOuter, tx: 8, ty: 1, rq: 2, rt: 4, cq: 2},
	{form: productOuter, tx: 8, ty: 1, rq: 1, rt: 4, cq: 4},
	{form: productOuter, tx: 8, ty: 1, rq: 4, rt: 4, cq: 1},
	{form: productOuter, tx: 8, ty: 1, rq: 2, rt: 4, cq: 1},
	{form: productOuter, tx: 8, ty: 1, rq: 1, rt: 4, cq: 2},
	{form: productOuter, tx: 8, ty: 1, rq: 1, rt: 4, cq: 1},
	{form: productOuter, tx: 8, ty: 1, rq: 1, rt: 2, cq: 4},
	{form: productOuter, tx: 8, ty: 1, rq: 1, rt: 2, cq: 2},
	{form: productOuter, tx: 8, ty: 1, rq: 1, rt: 2, cq: 1},

	{form: productQuads, tx: 8, ty: 1, rq: 4, rt: 4, cq: 2},
	{form: productQuads, tx: 8, ty: 1, rq: 8, rt: 4, cq: 1},
	{form: productQuads, tx: 8, ty: 1, rq: 2, rt: 4, cq: 4},
	{form: productQuads, tx: 8, ty: 1, rq: 4, rt: 4, cq: 1},
	{form: productQuads, tx: 8, ty: 1, rq: 2, rt: 4, cq: 2},
	{form: productQuads, tx: 8, ty: 1, rq: 2, rt: 4, cq: 1},
	{form: productQuads, tx: 8, ty: 1, rq: 1, rt: 4, cq: 2},
	{form: productQuads, tx: 8, ty: 1, rq: 1, rt: 4, cq: 1},

	{form: productGroup, tx: 16, ty: 16, rq: 2, cq: 2, kq: 4, rate: 1},
	{form: productGroup, tx: 16, ty: 16, rq: 2, cq: 2, kq: 2, rate: 0.99},
	{form: productGroup, tx: 8, ty: 16, rq: 2, cq: 2, kq: 4, rate: 0.9},
	{form: productGroup, tx: 8, ty: 8, rq: 2, cq: 2, kq: 4, rate: 0.75},
	{form: productGroup, tx: 16, ty: 16, rq: 1, cq: 1, kq: 4, rate: 0.6},
	{form: productGroup, tx: 8, ty: 8, rq: 1, cq: 1, kq: 4, rate: 0.4},
	{form: productGroup, tx: 16, ty: 4, rq: 1, cq: 1, kq: 4, rate: 0.35},

	{form: productRow, tx: 32, ty: 8, rt: 1, rate: 1},
	{form: productRow, tx: 8, ty: 32, rt: 1, rate: 1},
	{form: productRow, tx: 8, ty: 8, rt: 1, rate: 0.5},
}

// plainTile is the variant that is planned where package gemm does the work of the kernel: its text reads factors of any layout, a row of
// A at a time.
var plainTile = variant{form: productTile, tx: 8, ty: 1, rq: 1, rt: 1, cq: 1}

// tiles reports whether an invocation computes a tile of C by itself.
func (v *variant) tiles() bool { return v.form == productTile || v.outer() }

// outer reports whether the text of the variant is Outer's.
func (v *variant) outer() bool { return v.form == productOuter || v.form == productQuads }

// rows and cols are the size of the tile of C that an invocation of Tile, Outer and Quads or a workgroup of Group and Row computes.
func (v *variant) rows() int {
	switch v.form {
	case productTile, productOuter, productQuads:
		return v.rq * v.rt
	case productGroup:
		return 4 * v.ty * v.rq
	}
	return 1
}

func (v *variant) cols() int {
	switch v.form {
	case productTile, productOuter, productQuads:
		return 4 * v.cq
	case productGroup:
		return 4 * v.tx * v.cq
	}
	return 4 * v.tx
}

// wide is the number of tiles side by side, rounded up to a multiple of four where four of them share rows.
func (v *variant) wide(r *Request) int {
	n := shaders.Ceil(r.N, v.cols())
	if v.form == productQuads {
		return 4 * quads(n)
	}
	return n
}

// threads is the number of invocations of a workgroup.
func (v *variant) threads() int { return v.tx * v.ty }

// memory is the workgroup memory that the kernel takes.
func (v *variant) memory() int {
	if v.form == productGroup {
		return 4 * 4 * v.kq * (v.rows() + v.cols())
	}
	return 16 * v.threads()
}

// factors tells how the variant reads A and B.
func (v *variant) factors(r *Request) (a, b Factor) {
	a, b = r.A.factor(r.M, r.K, !r.A.ColMajor), r.B.factor(r.K, r.N, r.B.ColMajor)
	if v.outer() {
		a.Vector, b.Vector = false, b.Vector && !b.AlongK // of A it loads elements, of B vectors across k
	}
	if v.form != productGroup && v.rt < 4 && !a.AlongK {
		a.Vector = false // single rows of A across its memory
	}
	return a, b
}

// params are those of the kernel's file. A tile for the general case, k or n no multiple of four, takes longer to compile and a
// little longer to run.
func (v *variant) params(a, b Factor, ragged, edge bool) []int {
	tx, ty, rq, cq, kq := v.tx, v.ty, v.rq, v.cq, v.kq
	alongA, alongB := shaders.Bit(a.AlongK), shaders.Bit(b.AlongK)
	switch v.form {
	case productTile:
		return []int{tx, rq, v.rt, cq, shaders.Bit(ragged), shaders.Bit(edge)}
	case productOuter, productQuads:
		return []int{tx, rq, v.rt, cq, shaders.Bit(edge), shaders.Bit(v.form == productQuads)}
	case productGroup:
		blocks := (ty*rq + tx*cq) * kq
		return []int{tx, ty, tx * ty, rq, cq, kq, 4 * kq, ty * rq, tx * cq, shaders.Ceil(blocks, tx*ty), ty * rq * kq, blocks, alongA, alongB}
	}
	return []int{ty, tx, tx * ty, alongB}
}

// fits tells whether the variant can serve the request.
func (v *variant) fits(r *Request) bool {
	d := r.Device
	switch {
	case v.outer():
		return d.SwiftShader && r.M > 1 && (d.Quads || v.form == productOuter)
	case v.form == productTile:
		return d.Software && v.compiles(d, r.M)
	case d.Software || v.threads() > d.MaxInvocations || v.memory() > d.MaxMemory || (v.form == productRow) != (r.M == 1):
		return false
	}
	// Of rows, many sharers are for B that lies along k, few for B that lies across it.
	return v.form != productRow || v.tx == v.ty || (v.ty > v.tx) == r.B.ColMajor
}

// compiles keeps tiles to sizes that are worth their compilation: llvmpipe takes half a second for 16x16 and gains
// nothing from it. SwiftShader has Outer for all that has several rows.
func (v *variant) compiles(d *Device, rows int) bool {
	switch {
	case runsSIMD && d.SIMD != nil: // to the accumulators that there are registers for
		return v.rq*v.rt*v.cq <= 8
	case d.SwiftShader:
		return rows == 1 && v.rows() == 1 && v.cq < 4
	}
	return v.rq*v.cq <= 8
}

// choice is a variant with k cut into so many parts.
type choice struct {
	*variant
	parts int
	cost  float64
}

// choices lists the variants that serve the request, with every number of parts worth considering.
func (r *Request) choices() (all []choice, err error) {
	if min(r.M, r.N, r.K, r.Stack) < 0 || max(r.M, r.N, r.K, r.Stack) > maxSize || r.M*max(r.Stack, 1) > maxSize {
		return nil, errSize
	}
	for i := range variants {
		if v := &variants[i]; v.fits(r) {
			all = r.cut(all, v)
		}
	}
	if len(all) == 0 { // a device below all limits; tiles need nothing
		all = r.cut(all, &variants[0])
	}
	if len(all) == 0 {
		return nil, errSize
	}
	return all, nil
}

// cut appends the choices of a variant.
func (r *Request) cut(all []choice, v *variant) []choice {
	least := shaders.Ceil(max(quads(r.K), 1), v.maxChunk())
	if r.Stack > 0 {
		if least == 1 {
			all = append(all, choice{v, 1, v.cost(r, 1)})
		}
		return all
	}
	all = append(all, choice{v, least, v.cost(r, least)})
	if v.rounds(r, least) >= enoughRounds {
		return all // the device is busy as it is
	}
	for parts := 2 * least; parts <= maxParts && quads(r.K) >= parts*minChunk && parts*r.M*r.N <= maxScratch; parts *= 2 {
		all = append(all, choice{v, parts, v.cost(r, parts)})
	}
	return all
}

const (
	maxParts = 64
	minChunk = 8 // quads of k that are worth a part
	// enoughRounds of all that runs at the same time need no more parts.
	enoughRounds = 4
	maxTile      = 32      // vectors of a tile of Outer, whose storing takes as many turns
	maxScratch   = 1 << 22 // elements of scratch memory that parallelism is worth
)

// maxChunk is how many quads of k an invocation may take, for all its loops to stay below shaders.LoopLimit.
func (v *variant) maxChunk() int {
	switch v.form {
	case productGroup:
		return shaders.LoopLimit / 5
	case productOuter, productQuads:
		return shaders.LoopLimit/4 - maxTile
	case productRow:
		return (shaders.LoopLimit - 16) * v.ty
	}
	return shaders.LoopLimit
}

// costs are those of a software adapter, in units of one multiplication and addition of vectors. Loads are dear, because
// the elements of a SIMD vector are loaded one by one.
type costs struct {
	load    float64 // four elements at once
	scalars float64 // four elements one by one
	row     float64 // going on to the next four rows of B, where they lie far apart
	lanes   int     // of the machine's vectors
	launch  float64
	outer   [4]float64 // four k of a tile of Outer: at least, and for each of its elements, rows and columns
	quads   [4]float64 // the same for Quads
	compile [2]float64 // a kernel, and each element of its tile
}

var (
	llvmpipeCosts    = costs{load: 13, scalars: 26, row: 100, lanes: 8, launch: 20000}
	simdCosts        = costs{load: 1, scalars: 4, row: 4, lanes: 1, launch: 2000}
	swiftShaderCosts = costs{
		load: 1.8, scalars: 1.9, row: 4, lanes: 4, launch: 6000, outer: [4]float64{7.7, 0.33, 2.8, 2.5}, quads: [4]float64{16.4, 0.36, 0.42, 1.15},
		compile: [2]float64{1.04e6, 22000}, // 28 ms and 0.6 ms
	}
)

func (r *Request) costs() *costs { return r.Device.shipped().costs }

// What is taken to run at the same time: workers of a software adapter, workgroups of hardware. More is no use to fewer,
// fewer leaves some idle.
const (
	workers     = 4
	busyGroups  = 64
	costBarrier = 2000.0
)

// cost estimates the time of a plan, in units that only compare plans of one request. Products are converted, so that no machine fuses
// and plans otherwise.
func (v *variant) cost(r *Request, parts int) float64 {
	c := r.costs()
	rounds := float64(v.rounds(r, parts))
	chunk := float64(shaders.Ceil(quads(r.K), parts))
	var t float64
	switch v.form {
	case productOuter, productQuads:
		rows, cols, of := float64(v.rows()), float64(v.cols()), &c.outer
		if v.form == productQuads {
			of = &c.quads
		}
		t = rounds * chunk * (of[0] + float64(of[1]*rows*cols) + float64(of[2]*rows) + float64(of[3]*cols))
	case productTile:
		a, b := v.factors(r)
		work := float64(v.rows()*v.cols()) + float64(c.of(a)*float64(v.rows())) + float64(c.of(b)*float64(v.cols()))
		if !b.AlongK {
			work += c.row
		}
		t = rounds * chunk * work
	default:
		t = rounds * (chunk*4*float64(v.rows()*v.cols())/v.rate + costBarrier)
	}
	if parts > 1 {
		t += c.launch + float64(float64(shaders.Ceil(r.M*quads(r.N), c.lanes*workers)*(parts+4))*c.load)
	}
	return t
}

// rounds is how often the device fills up with the tiles of a plan.
func (v *variant) rounds(r *Request, parts int) int {
	tiles := v.wide(r) * shaders.Ceil(r.M, v.rows()) * parts * max(r.Stack, 1)
	if v.tiles() {
		return shaders.Ceil(shaders.Ceil(tiles, r.costs().lanes), workers)
	}
	return shaders.Ceil(tiles, busyGroups)
}

// compiling is the cost of compiling the kernel.
func (v *variant) compiling(r *Request) float64 {
	c := r.costs()
	return c.compile[0] + float64(c.compile[1]*float64(v.rows()*v.cols()))
}

// of is the cost of loading a vector.
func (c *costs) of(f Factor) float64 {
	if f.Vector {
		return c.load
	}
	return c.scalars
}
