// SPDX-License-Identifier: Apache-2.0

package kernels

// class is a class of adapters that compute by the same variants without being tuned.
type class int

const (
	discrete class = iota
	integrated
	software // of the system, such as Mesa's llvmpipe
	swiftShader
	simd
)

// defaults is by which variants a class of adapters computes without being tuned.
type defaults struct {
	costs   *costs   // that products are estimated by
	linear  [2]*pass // few vectors and many
	rows    *pass
	grid    *pass
	block   [2]*pass // few blocks and many
	cols    [2]*pass // narrow matrices and wide ones
	softmax [2]*pass // few rows and many
}

// table is the shipped defaults. What products are chosen by is in variants, with their rates, and in costs. Integrated and discrete
// adapters have the same, and no vendor has a class, until some were timed.
//
// Where there are many, an invocation of SIMD or llvmpipe transposes four blocks, and one of SwiftShader or llvmpipe computes two
// vectors of linear, as a good part of its time goes into reading the parameters and into finding its place. Workgroup memory is dear
// there, and more partial results than keep the cores busy make the second pass of a reduction longer; threads of SIMD take workgroups
// of 64 each, so that it needs more. A workgroup costs SwiftShader more than a few invocations, so that those of grid, and of block
// where there are many, are large. Small workgroups of softmax leave enough for all cores, and few of them start sooner.
var table = [...]defaults{
	simd:        {&simdCosts, [2]*pass{&linear1, &linear1}, &rowsChunks, &grid64, [2]*pass{&block1, &block4}, [2]*pass{&colsChunks, &colsChunks}, [2]*pass{&softmax16, &softmax64}},
	swiftShader: {&swiftShaderCosts, [2]*pass{&linear1, &linear2}, &rows64, &grid256, [2]*pass{&block1, &block256}, [2]*pass{&cols1, &cols4}, [2]*pass{&softmax16, &softmax64}},
	software:    {&llvmpipeCosts, [2]*pass{&linear1, &linear2}, &rows64, &grid64, [2]*pass{&block1, &block4}, [2]*pass{&cols1, &cols4}, [2]*pass{&softmax16, &softmax64}},
	integrated:  {&llvmpipeCosts, [2]*pass{&linear1, &linear1}, &tree256, &grid64, [2]*pass{&block1, &block1}, [2]*pass{&colsMany, &colsMany}, [2]*pass{&softmaxLong, &softmaxLong}},
	discrete:    {&llvmpipeCosts, [2]*pass{&linear1, &linear1}, &tree256, &grid64, [2]*pass{&block1, &block1}, [2]*pass{&colsMany, &colsMany}, [2]*pass{&softmaxLong, &softmaxLong}},
}

var (
	linear1     = pass{form: mapLinear, size: linearSize, each: 1}
	linear2     = pass{form: mapLinear, size: linearSize, each: 2}
	grid64      = pass{form: mapGrid, size: 64}
	grid256     = pass{form: mapGrid, size: 256}
	block1      = pass{form: mapBlock, size: 64, each: 1}
	block4      = pass{form: mapBlock, size: 64, each: 4}
	block256    = pass{form: mapBlock, size: 256, each: 1}
	rowsChunks  = pass{form: foldRows, size: 4, each: chunkVectors, busy: always}
	rows64      = pass{form: foldRows, size: laneSize, each: 16, busy: 512}
	tree256     = pass{form: foldTree, size: 256, each: 1024, busy: 256}
	cols1       = pass{form: foldCols, size: laneSize, each: 1, busy: 512, few: fewVectors}
	cols4       = pass{form: foldCols, size: laneSize, each: 4, busy: 512, few: fewVectors}
	colsChunks  = pass{form: foldCols, size: laneSize, each: 8, busy: 512, few: fewVectors}
	colsMany    = pass{form: foldCols, size: laneSize, each: 1, busy: 1 << 16}
	softmax16   = pass{form: softmaxRows, size: 16}
	softmax64   = pass{form: softmaxRows, size: 64}
	softmaxLong = pass{form: softmaxGroup}

	// Sparse products are not in the table, so that a page that has none loads nothing of them before its first result. On software
	// adapters an invocation reads an entry once for all its vectors.
	sparse1 = pass{form: sparseRows, size: sparseSize, each: 1}
	sparse4 = pass{form: sparseRows, size: sparseSize, each: 4}
)

// shipped returns the defaults of the device.
func (d *Device) shipped() *defaults {
	c := discrete
	switch {
	case d.Software && runsSIMD && d.SIMD != nil:
		c = simd
	case d.Software && d.SwiftShader:
		c = swiftShader
	case d.Software:
		c = software
	case d.Integrated:
		c = integrated
	}
	return &table[c]
}
