// SPDX-License-Identifier: Apache-2.0

package product

import (
	"github.com/sublet-gpu/sublet/shaders"
	"github.com/sublet-gpu/sublet/shaders/plan"
)

// variant is a kernel in one size. rate is its speed where the device is full, relative to the other variants of Group.
type variant struct {
	kernel Kernel
	tiling Tiling
	rate   float64
}

// variants holds every size on offer. The order decides between equals. Tiles of more than 8x16 gain little and take
// seconds to compile on llvmpipe.
var variants = []variant{
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
	{kernel: Row, tiling: Tiling{TX: 16, TY: 16, RQ: 1, RT: 1, CQ: 1}},
	{kernel: Row, tiling: Tiling{TX: 8, TY: 32, RQ: 1, RT: 1, CQ: 1}},
}

// fits tells whether the variant can serve the request.
func (v *variant) fits(r *Request) bool {
	s := Spec{Kernel: v.kernel, Tiling: v.tiling}
	d := r.Device
	switch v.kernel {
	case Tile:
		return d.Software && (!d.Narrow || v.tiling.RQ*v.tiling.CQ == 1 || v.tiling.RT == 1)
	case Row:
		// Few sharers are for B that lies across k, many for B that lies along it.
		along := v.tiling.TY > v.tiling.TX
		if r.M != 1 || along != r.B.ColMajor {
			return false
		}
	case Group:
		if r.M == 1 {
			return false
		}
	}
	return !d.Software && s.threads() <= d.MaxInvocations && s.memory() <= d.MaxMemory
}

// Costs on software adapters, in units of one multiplication of vectors: what llvmpipe and SwiftShader agree on well
// enough. Loads are dear, because each lane of a vector unit loads its elements one by one.
const (
	costLoad   = 4.0 // a vector
	costScalar = 7.0 // four scalars
	costLaunch = 4000.0

	// What is taken to run at the same time: lanes of a vector unit and workers of a software adapter, workgroups of
	// hardware. More is no use to fewer, fewer leaves some idle.
	laneCount   = 8
	workers     = 4
	busyGroups  = 64
	costBarrier = 2000.0
)

// cost estimates the time of a plan, in units that only compare plans of one request.
func (v *variant) cost(r *Request, s Spec, parts int) float64 {
	tiles := shaders.Ceil(r.N, s.cols()) * shaders.Ceil(r.M, s.rows()) * parts
	chunk := float64(shaders.Ceil(r.quads(), parts))
	var t float64
	if v.kernel == Tile {
		rounds := shaders.Ceil(shaders.Ceil(tiles, laneCount), workers)
		work := float64(s.rows()*s.cols()) + loadCost(s.A)*float64(s.rows()) + loadCost(s.B)*float64(s.cols())
		t = float64(rounds) * chunk * work
	} else {
		rounds := shaders.Ceil(tiles, busyGroups)
		work := 4 * float64(s.rows()*s.cols()) / max(v.rate, 0.1)
		t = float64(rounds) * (chunk*work + costBarrier)
	}
	if parts > 1 {
		vectors := r.M * plan.Quads(r.N)
		t += costLaunch + float64(shaders.Ceil(vectors, laneCount*workers)*(parts+4))*costLoad
	}
	return t
}

func loadCost(c Class) float64 {
	if c.Vector {
		return costLoad
	}
	return costScalar
}
