// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"embed"
	"math"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

//go:embed kernels/*.wgsl
var sources embed.FS

// program is a kernel of the suite: kernels/name.wgsl and the same in Go.
type program struct {
	name      string
	layout    driver.Layout
	reference func(groups [3]uint32, params []byte, storage [][]byte)
}

func (p program) kernel() (*driver.Kernel, error) {
	src, err := sources.ReadFile("kernels/" + p.name + ".wgsl")
	if err != nil {
		return nil, err
	}
	return &driver.Kernel{Label: p.name, Source: string(src), Entry: "main", Layout: p.layout, Reference: p.reference}, nil
}

const (
	none      = driver.AccessNone
	readOnly  = driver.AccessRead
	readWrite = driver.AccessReadWrite
	params    = driver.AccessParams
)

var (
	affine = program{"affine", driver.NewLayout(readWrite, params), runAffine}
	scale  = program{"scale", driver.NewLayout(readOnly, readWrite, params), runScale}
	offset = program{"offset", driver.NewLayout(readOnly, readWrite, params), runOffset}
	bump   = program{"bump", driver.NewLayout(readWrite), runBump}
	blend  = program{"blend", driver.NewLayout(params, readWrite, readOnly), runBlend}
	gap    = program{"gap", driver.NewLayout(readWrite, none, readOnly, none, readOnly), runGap}
	swap   = program{"swap", driver.NewLayout(readWrite, readWrite), runSwap}
	step   = program{"step", driver.NewLayout(readOnly, readWrite), runStep}
	saxpy  = program{"saxpy", driver.NewLayout(readOnly, readWrite, params), runSaxpy}
	grid   = program{"grid", driver.NewLayout(readWrite), runGrid}
	block  = program{"block", driver.NewLayout(readWrite, params), runBlock}
	eight  = program{"eight", driver.NewLayout(readOnly, readOnly, readOnly, readOnly, readOnly, readOnly, readOnly,
		readWrite, params), runEight}
)

// reach is how many elements a dispatch with 64 invocations per workgroup gets to.
func reach(groups [3]uint32, limits ...uint64) int {
	n := 64 * uint64(groups[0]) * uint64(groups[1]) * uint64(groups[2])
	for _, l := range limits {
		n = min(n, l)
	}
	return int(n)
}

func count(b []byte) uint64 { return uint64(len(b) / 4) }

func runAffine(groups [3]uint32, p []byte, storage [][]byte) {
	v := storage[0]
	for i := range reach(groups, uint64(word(p, 2)), count(v)) {
		setWord(v, i, word(v, i)*word(p, 0)+word(p, 1))
	}
}

func runScale(groups [3]uint32, p []byte, storage [][]byte) {
	x, y := storage[0], storage[1]
	for i := range reach(groups, uint64(word(p, 2)), count(x), count(y)) {
		setWord(y, i, word(x, i)*word(p, 0)+word(p, 1))
	}
}

func runOffset(groups [3]uint32, p []byte, storage [][]byte) {
	x, y := storage[0], storage[1]
	for i := range reach(groups, uint64(word(p, 2)), count(x), count(y)) {
		setWord(y, i, word(x, i)+word(p, 0)*word(p, 1))
	}
}

func runBump(groups [3]uint32, _ []byte, storage [][]byte) {
	v := storage[0]
	for i := range reach(groups, count(v)) {
		setWord(v, i, word(v, i)*3+1)
	}
}

func runBlend(groups [3]uint32, p []byte, storage [][]byte) {
	y, x := storage[0], storage[1]
	for i := range reach(groups, uint64(word(p, 2)), count(x), count(y)) {
		setWord(y, i, word(y, i)*word(p, 0)+word(x, i)+word(p, 1))
	}
}

func runGap(groups [3]uint32, _ []byte, storage [][]byte) {
	y, x := storage[0], storage[1]
	for i := range reach(groups, count(x), count(y)) {
		setWord(y, i, word(y, i)*2+word(x, i))
	}
}

func runSwap(groups [3]uint32, _ []byte, storage [][]byte) {
	a, b := storage[0], storage[1]
	for i := range reach(groups, count(a), count(b)) {
		x, y := word(a, i), word(b, i)
		setWord(a, i, y)
		setWord(b, i, x)
	}
}

func runStep(groups [3]uint32, _ []byte, storage [][]byte) {
	src, dst := storage[0], storage[1]
	n := len(src) / 4
	for i := range reach(groups, count(src), count(dst)) {
		setWord(dst, i, word(src, i)*5+word(src, (i+1)%n)+1)
	}
}

func runSaxpy(groups [3]uint32, p []byte, storage [][]byte) {
	x, y := storage[0], storage[1]
	f := math.Float32frombits
	for i := range reach(groups, uint64(word(p, 1)), count(x), count(y)) {
		setWord(y, i, math.Float32bits(float32(f(word(p, 0))*f(word(x, i)))+f(word(y, i))))
	}
}

func runGrid(groups [3]uint32, _ []byte, storage [][]byte) {
	seen, i := storage[0], 0
	for z := range groups[2] {
		for y := range groups[1] {
			for x := range groups[0] {
				if 2*i+1 >= len(seen)/4 {
					return
				}
				setWord(seen, 2*i, word(seen, 2*i)+1)
				setWord(seen, 2*i+1, x^y<<8^z<<16)
				i++
			}
		}
	}
}

func runBlock(_ [3]uint32, p []byte, storage [][]byte) { copy(storage[0], p) }

func runEight(groups [3]uint32, p []byte, storage [][]byte) {
	y := storage[7]
	for i := range reach(groups, uint64(word(p, 2)), count(y)) {
		sum := uint32(0)
		for k, x := range storage[:7] {
			sum += uint32(k+1) * word(x, i)
		}
		setWord(y, i, sum*word(p, 0)+word(p, 1))
	}
}
