// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

var check = devtest.Check

// onDevices runs a test on a device of each driver that compiles WGSL. There must be one.
func onDevices(t *testing.T, test func(t *testing.T, dev *gpu.Device)) {
	t.Helper()
	ran := 0
	for _, name := range gpu.Drivers() {
		dev, err := gpu.Open(t.Context(), gpu.WithDriver(name))
		if err != nil {
			t.Fatalf("driver %s: %v", name, err)
		}
		if dev.Info().Features.Has(driver.FeatureWGSL) {
			ran++
			t.Run(name, func(t *testing.T) { test(t, dev) })
		}
		dev.Close()
	}
	if ran == 0 {
		t.Fatal("no driver compiles WGSL")
	}
}

// array is an array of a launch: what it is and what it holds.
type array struct {
	kernel.Decl
	words []uint32
	from  int // the first word bound, for windows
}

// scalar is a scalar of a launch.
type scalar struct {
	kernel.Decl
	bits []uint32
}

func u32s(name string, words ...uint32) *array {
	return &array{Decl: kernel.Decl{Name: name, Type: kernel.U32}, words: words}
}

func f32(v float32) uint32 { return math.Float32bits(v) }

// count returns n words that count up.
func count(n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = uint32(i)
	}
	return w
}

func line(base, count, total int) kernel.Range {
	return kernel.Range{Base: [3]int{base}, Count: [3]int{count}, Total: [3]int{total}}
}

// launch is one run of a kernel.
type launch struct {
	source, kernel string
	local          [3]int
	rng            kernel.Range
	scalars        []scalar
	arrays         []*array
}

func (l *launch) build(t *testing.T) *kernel.Program {
	t.Helper()
	src, err := kernel.Parse(l.source)
	check(t, err)
	var decls []kernel.Decl
	for _, a := range l.arrays {
		decls = append(decls, a.Decl)
	}
	for _, s := range l.scalars {
		decls = append(decls, kernel.Scalars(s.Decl)...)
	}
	p, err := src.Build(l.kernel, decls, l.local)
	check(t, err)
	return p
}

// run launches the kernel and puts the results into the arrays.
func (l *launch) run(t *testing.T, dev *gpu.Device) {
	t.Helper()
	p := l.build(t)
	defer p.Close()
	var args []kernel.Argument
	for _, s := range l.scalars {
		args = append(args, kernel.Argument{Name: s.Name, Type: s.Type, Bits: s.bits})
	}
	for _, a := range l.arrays {
		bytes := a.Type.Size() // of an element where the kernel sees it
		switch {
		case a.Type.Lanes == 3:
			bytes = 16
		case bytes < 4 && a.Mode == kernel.Widened:
			bytes = 4
		}
		args = append(args, kernel.Argument{
			Name: a.Name, Type: a.Type, Buffer: upload(t, dev, a.words[a.from:]), First: 4 * a.from / bytes, Length: 4 * len(a.words) / bytes,
		})
	}
	if err := p.Launch(t.Context(), dev, l.rng, args...); err != nil {
		t.Fatalf("%v\n%s", err, p.WGSL)
	}
	for i, a := range l.arrays {
		copy(a.words[a.from:], download(t, args[len(l.scalars)+i].Buffer, len(a.words)-a.from))
	}
}

func upload(t *testing.T, dev *gpu.Device, words []uint32) *gpu.Buffer {
	t.Helper()
	b, err := dev.NewBuffer(uint64(4 * len(words)))
	check(t, err)
	mem := make([]byte, 4*len(words))
	for i, w := range words {
		binary.LittleEndian.PutUint32(mem[4*i:], w)
	}
	check(t, b.Write(0, gpu.HostBytes(mem)))
	t.Cleanup(func() { b.Close() })
	return b
}

func download(t *testing.T, b *gpu.Buffer, n int) []uint32 {
	t.Helper()
	mem := make([]byte, 4*n)
	check(t, b.Read(context.Background(), gpu.Transfer{Host: gpu.HostBytes(mem), Width: len(mem), Count: 1}))
	words := make([]uint32, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(mem[4*i:])
	}
	return words
}

// equal compares and shows the first difference.
func equal(t *testing.T, what string, got, want []uint32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d words, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: word %d is %#x, want %#x", what, i, got[i], want[i])
		}
	}
}
