// SPDX-License-Identifier: Apache-2.0

package product

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

// variant is a kernel in one size. rate is its speed where the device is full, relative to the other variants of Group.
type variant struct {
	kernel Kernel
	tiling Tiling
	rate   float64
}

// variants holds every size on offer. The order decides between equals.
var variants = []variant{
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 4, RT: 4, CQ: 4}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 2, RT: 4, CQ: 4}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 4, RT: 4, CQ: 1}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 2, RT: 4, CQ: 2}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 1, RT: 4, CQ: 4}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 1, RT: 4, CQ: 1}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 1, RT: 2, CQ: 4}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 1, RT: 2, CQ: 1}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 1, RT: 1, CQ: 4}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 1, RT: 1, CQ: 2}},
	{kernel: Tile, tiling: Tiling{TX: 8, TY: 1, RQ: 1, RT: 1, CQ: 1}},

	{kernel: Group, tiling: Tiling{TX: 16, TY: 16, RQ: 2, CQ: 2, KQ: 4}, rate: 1},
	{kernel: Group, tiling: Tiling{TX: 16, TY: 16, RQ: 2, CQ: 2, KQ: 2}, rate: 0.99},
	{kernel: Group, tiling: Tiling{TX: 8, TY: 16, RQ: 2, CQ: 2, KQ: 4}, rate: 0.9},
	{kernel: Group, tiling: Tiling{TX: 8, TY: 8, RQ: 2, CQ: 2, KQ: 4}, rate: 0.75},
	{kernel: Group, tiling: Tiling{TX: 16, TY: 16, RQ: 1, CQ: 1, KQ: 4}, rate: 0.6},
	{kernel: Group, tiling: Tiling{TX: 8, TY: 8, RQ: 1, CQ: 1, KQ: 4}, rate: 0.4},
	{kernel: Group, tiling: Tiling{TX: 16, TY: 4, RQ: 1, CQ: 1, KQ: 4}, rate: 0.35},
	{kernel: Row, tiling: Tiling{TX: 32, TY: 8, RQ: 1, RT: 1, CQ: 1}, rate: 1},
	{kernel: Row, tiling: Tiling{TX: 8, TY: 32, RQ: 1, RT: 1, CQ: 1}, rate: 1},
	{kernel: Row, tiling: Tiling{TX: 8, TY: 8, RQ: 1, RT: 1, CQ: 1}, rate: 0.5},
}

// spec completes the variant.
func (v *variant) spec(r *Request, a, b Class) Spec {
	s := Spec{Kernel: v.kernel, Tiling: v.tiling, A: a, B: b}
	if v.kernel == Tile {
		s.Ragged, s.Edge = r.K%4 != 0, r.N%4 != 0
	}
	if v.tiling.RT < 4 && v.kernel != Group && !a.AlongK {
		s.A.Vector = false // single rows of A across its memory
	}
	return s
}

// fits tells whether the variant can serve the request.
func (v *variant) fits(r *Request) bool {
	s := Spec{Kernel: v.kernel, Tiling: v.tiling}
	d := r.Device
	switch v.kernel {
	case Tile:
		return d.Software && v.fitsSoftware(d.SwiftShader)
	case Row:
		if r.M != 1 {
			return false
		}
		// Many sharers are for B that lies along k, few for B that lies across it.
		if v.tiling.TX != v.tiling.TY && (v.tiling.TY > v.tiling.TX) != r.B.ColMajor {
			return false
		}
	case Group:
		if r.M == 1 {
			return false
		}
	}
	return !d.Software && s.threads() <= d.MaxInvocations && s.memory() <= d.MaxMemory
}

// fitsSoftware keeps tiles to sizes that are worth their compilation. llvmpipe takes half a second for 16x16 and gains
// nothing from it; SwiftShader takes 20 ms and gains a tenth over 8x16, but loses on one or two rows of sixteen.
func (v *variant) fitsSoftware(swiftShader bool) bool {
	if swiftShader {
		return v.tiling.RT == 4 || v.tiling.CQ < 4
	}
	return v.tiling.RQ*v.tiling.CQ <= 8
}

// costs are those of a software adapter, in units of one multiplication and addition of vectors. Loads are dear, because
// each lane of the machine loads its elements one by one.
type costs struct {
	load    float64 // four elements at once
	scalars float64 // four elements one by one
	row     float64 // going on to the next four rows of B, where they lie far apart
	lanes   int     // of the machine's vectors
	launch  float64
	compile [2]float64 // a kernel, and each element of its tile
}

var (
	llvmpipeCosts    = costs{load: 13, scalars: 26, row: 100, lanes: 8, launch: 20000}
	swiftShaderCosts = costs{load: 1.8, scalars: 1.9, row: 4, lanes: 4, launch: 6000, compile: [2]float64{2.8e6, 84000}}
)

// What is taken to run at the same time: workers of a software adapter, workgroups of hardware. More is no use to fewer,
// fewer leaves some idle.
const (
	workers     = 4
	busyGroups  = 64
	costBarrier = 2000.0
)

// cost estimates the time of a plan, in units that only compare plans of one request.
func (v *variant) cost(r *Request, s Spec, parts int) float64 {
	c := r.costs()
	rounds := float64(v.rounds(r, s, parts))
	chunk := float64(shaders.Ceil(r.quads(), parts))
	var t float64
	if v.kernel == Tile {
		work := float64(s.rows()*s.cols()) + c.of(s.A)*float64(s.rows()) + c.of(s.B)*float64(s.cols())
		if !s.B.AlongK {
			work += c.row
		}
		t = rounds * chunk * work
	} else {
		t = rounds * (chunk*4*float64(s.rows()*s.cols())/max(v.rate, 0.1) + costBarrier)
	}
	if parts > 1 {
		vectors := r.M * plan.Quads(r.N)
		t += c.launch + float64(shaders.Ceil(vectors, c.lanes*workers)*(parts+4))*c.load
	}
	return t
}

func (r *Request) costs() *costs {
	if r.Device.SwiftShader {
		return &swiftShaderCosts
	}
	return &llvmpipeCosts
}

// rounds is how often the device fills up with the tiles of a plan.
func (v *variant) rounds(r *Request, s Spec, parts int) int {
	tiles := shaders.Ceil(r.N, s.cols()) * shaders.Ceil(r.M, s.rows()) * parts
	if v.kernel == Tile {
		return shaders.Ceil(shaders.Ceil(tiles, r.costs().lanes), workers)
	}
	return shaders.Ceil(tiles, busyGroups)
}

// smallTile is the size below which tiles do not compile faster.
const smallTile = 32

// compiling is the cost of compiling a kernel.
func (c *costs) compiling(s Spec) float64 {
	return c.compile[0] + c.compile[1]*float64(max(s.rows()*s.cols(), smallTile))
}

// of is the cost of loading a vector.
func (c *costs) of(class Class) float64 {
	if class.Vector {
		return c.load
	}
	return c.scalars
}
