// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

var small = []dtype.Type{kernel.U8, kernel.I8, kernel.U16, kernel.I16, kernel.F16}

// values returns the words that hold all values of a type, several times over.
func values(e dtype.Type) []uint32 {
	n := 1 << (8 * e.Size())
	bytes := make([]byte, 0, 8192)
	for len(bytes) < max(8192, n*e.Size()) {
		v := len(bytes) / e.Size() * 7 // odd, so that all come
		bytes = append(bytes, byte(v), byte(v>>8))
		if e.Size() == 1 {
			bytes = bytes[:len(bytes)-1]
		}
	}
	words := make([]uint32, len(bytes)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(bytes[4*i:])
	}
	return words
}

// element returns element i of a packed array.
func element(words []uint32, e dtype.Type, i int) uint32 {
	per := 4 / e.Size()
	bits := 8 * e.Size()
	return words[i/per] >> (i % per * bits) & (1<<bits - 1)
}

func setElement(words []uint32, e dtype.Type, i int, v uint32) {
	per := 4 / e.Size()
	bits := 8 * e.Size()
	shift := i % per * bits
	mask := uint32(1<<bits-1) << shift
	words[i/per] = words[i/per]&^mask | v<<shift&mask
}

// wide is what an element is in 32 bits.
func wide(e dtype.Type, v uint32) uint32 {
	switch e {
	case kernel.I8:
		return uint32(int32(int8(v)))
	case kernel.I16:
		return uint32(int32(int16(v)))
	case kernel.F16:
		return halfToFloat(v)
	}
	return v
}

// halfToFloat keeps NaNs as they are, which the library's own conversion need not.
func halfToFloat(v uint32) uint32 {
	if v&0x7fff > 0x7c00 {
		return v&0x8000<<16 | 0x7f800000 | v&0x3ff<<13
	}
	return math.Float32bits(float32(fuse.F16.Load(v)))
}

// conversion says which elements to convert.
type conversion struct{ first, count, unpacked int }

// run runs one of the conversions. It has an item for each element or, with pack, for each word.
func (c conversion) run(t *testing.T, dev *gpu.Device, p *kernel.Program, e dtype.Type, packed, unpacked []uint32) (newPacked, newUnpacked []uint32) {
	t.Helper()
	a, b, items := upload(t, dev, packed), upload(t, dev, unpacked), c.count
	if per := 4 / e.Size(); p.Name == "pack" && items > 0 {
		items = (c.first+c.count-1)/per - c.first/per + 1
	}
	scalar := func(name string, v int) kernel.Argument {
		return kernel.Argument{Name: name, Type: kernel.U32, Bits: []uint32{uint32(v)}}
	}
	check(t, p.Launch(t.Context(), dev, line(0, items, items),
		kernel.Argument{Name: "packed", Type: kernel.U32, Buffer: a}, kernel.Argument{Name: "unpacked", Type: kernel.U32, Buffer: b},
		scalar("first", c.first), scalar("first_unpacked", c.unpacked), scalar("count", c.count)))
	p.Close()
	return download(t, a, len(packed)), download(t, b, len(unpacked))
}

// TestConversions unpacks and packs all values, from any element to any other, and leaves the neighbours alone.
func TestConversions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, e := range small {
			unpack, pack, err := kernel.Conversions(e)
			check(t, err)
			packed := values(e)
			n := len(packed) * 4 / e.Size()
			for _, c := range []conversion{
				{0, n, 0}, {1, n - 1, 3}, {3, n - 7, 0}, {2, 1, 5}, {5, 2, 1}, {4, 4, 0}, {3, 5, 7}, {n - 1, 1, n - 1}, {6, 0, 0},
			} {
				before := make([]uint32, n+8)
				for i := range before {
					before[i] = 0xa5a50000 + uint32(i)
				}
				_, got := c.run(t, dev, unpack, e, packed, before)
				want := append([]uint32(nil), before...)
				for i := range c.count {
					want[c.unpacked+i] = wide(e, element(packed, e, c.first+i))
				}
				equal(t, "unpacked "+e.String(), got, want)

				for i := range got {
					if e != kernel.F16 {
						got[i] ^= 0x12345678 // all bits that are to be cut off, and others
					}
				}
				ones := make([]uint32, len(packed))
				for i := range ones {
					ones[i] = 0xffffffff
				}
				gotPacked, _ := c.run(t, dev, pack, e, ones, got)
				for i := range c.count {
					v := element(packed, e, c.first+i)
					if e != kernel.F16 {
						v ^= 0x12345678
					} else if v&0x7fff > 0x7c00 {
						v |= 0x200 // NaNs are quiet ones afterwards
					}
					setElement(ones, e, c.first+i, v)
				}
				equal(t, "packed "+e.String(), gotPacked, ones)
			}
		}
	})
}

// TestRounding packs floats around every half, and others.
func TestRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var floats []uint32
	for h := uint32(0); h < 0x7c00; h += 13 {
		for _, sign := range []uint32{0, 0x8000} {
			f := halfToFloat(h | sign)
			next := halfToFloat(h + 1 | sign)
			tie := math.Float32bits((math.Float32frombits(f) + math.Float32frombits(min(next&0x7fffffff, 0x47800000)|sign<<16)) / 2)
			floats = append(floats, f, tie-1, tie, tie+1)
		}
	}
	for range 5000 {
		floats = append(floats, rng.Uint32())
	}
	floats = append(floats, 0, 0x80000000, 1, 0x80000001, 0x33000000, 0x33000001, 0x32ffffff, 0x477fefff, 0x477ff000, 0x477fffff,
		0x47800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x387fffff, 0x38800000, 0x7f800001, 0xffc00000)
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		_, pack, err := kernel.Conversions(kernel.F16)
		check(t, err)
		got, _ := conversion{0, len(floats), 0}.run(t, dev, pack, kernel.F16, make([]uint32, len(floats)/2+1), floats)
		for i, f := range floats {
			h := element(got, kernel.F16, i)
			want := fuse.F16.Store(float64(math.Float32frombits(f)))
			if f&0x7fffffff > 0x7f800000 {
				if h&0x7fff <= 0x7c00 || h>>15 != f>>31 {
					t.Fatalf("NaN %#x became %#x", f, h)
				}
			} else if h != want {
				t.Fatalf("%#x became %#x, want %#x", f, h, want)
			}
		}
	})
}

// TestConversionsOfOthers refuses types that have nothing to unpack.
func TestConversionsOfOthers(t *testing.T) {
	for _, e := range []dtype.Type{kernel.F32, dtype.Bool8, {}, {Code: 99, Bits: 8, Lanes: 1}} {
		if _, _, err := kernel.Conversions(e); !isKernel(err) {
			t.Errorf("%v: %v", e, err)
		}
	}
}

// TestModes computes with every element type in each of the modes.
func TestModes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, e := range small {
			for _, window := range []bool{false, true} {
				t.Run(e.String(), func(t *testing.T) {
					widened(t, dev, e)
					packed(t, dev, e, window)
					atomic(t, dev, e, window)
				})
			}
		}
	})
}

// addThree is what v + 3 becomes in the type's bits.
func addThree(e dtype.Type, v uint32) uint32 {
	if e != kernel.F16 {
		return (v + 3) & (1<<(8*e.Size()) - 1)
	}
	return fuse.F16.Store(fuse.F16.Load(v) + 3)
}

// three is the number 3 in WGSL.
func three(e dtype.Type) string {
	return map[dtype.Type]string{kernel.I8: "3", kernel.I16: "3", kernel.F16: "3.0"}[e] + map[dtype.Type]string{kernel.U8: "3u", kernel.U16: "3u"}[e]
}

// tame makes halves finite: devices may compute what they like with others.
func tame(e dtype.Type, words []uint32) []uint32 {
	for i := range words {
		for _, infinite := range []uint32{0x7c00, 0x7c000000} {
			if e == kernel.F16 && words[i]&infinite == infinite {
				words[i] &^= infinite & 0x04000400
			}
		}
	}
	return words
}

func wanted(e dtype.Type, words []uint32, from, to int) []uint32 {
	want := append([]uint32(nil), words...)
	for i := from; i < to; i++ {
		setElement(want, e, i, addThree(e, element(words, e, i)))
	}
	return want
}

// widened goes the whole way: elements are unpacked, computed with, and packed again.
func widened(t *testing.T, dev *gpu.Device, e dtype.Type) {
	words := tame(e, values(e))
	from, n := 5, len(words)*4/e.Size()-11
	a := &array{Decl: kernel.Decl{Name: "arr", Type: e}, words: make([]uint32, n)}
	unpack, pack, err := kernel.Conversions(e)
	check(t, err)
	c := conversion{from, n, 0}
	_, a.words = c.run(t, dev, unpack, e, words, a.words)
	l := launch{
		source: "fn add3(i: u32) { arr[i] = arr[i] + " + three(e) + "; }",
		kernel: "add3", local: [3]int{64}, rng: line(0, n, n), arrays: []*array{a},
	}
	l.run(t, dev)
	got, _ := c.run(t, dev, pack, e, words, a.words)
	equal(t, "widened", got, wanted(e, words, from, from+n))
}

// packed computes with words; what loads an element is checked on the way.
func packed(t *testing.T, dev *gpu.Device, e dtype.Type, window bool) {
	words := tame(e, values(e))
	a := &array{Decl: kernel.Decl{Name: "arr", Type: e, Mode: kernel.Packed, Window: window}, words: words}
	out := u32s("s", make([]uint32, len(words)*4/e.Size())...)
	if window {
		a.from = 64
	}
	per := 4 / e.Size()
	l := launch{
		source: "fn look(i: u32) { s[i] = bitcast<u32>(sublet_load_arr(i)); }",
		kernel: "look", local: [3]int{64}, rng: line(64*per, len(out.words)-64*per, 0), arrays: []*array{a, out},
	}
	l.run(t, dev)
	want := make([]uint32, len(out.words))
	for i := 64 * per; i < len(want); i++ {
		want[i] = wide(e, element(words, e, i))
	}
	equal(t, "loaded", out.words, want)
	if e != kernel.U8 {
		return
	}
	l.source = "fn swar(i: u32) { let v = arr[i]; arr[i] = ((v & 0x7f7f7f7fu) + 0x03030303u) ^ (v & 0x80808080u); }"
	l.kernel, l.rng = "swar", line(64, len(words)-64, len(words))
	before := append([]uint32(nil), words...)
	l.run(t, dev)
	equal(t, "packed", a.words, wanted(e, before, 64*4, 4*len(words)))
}

// atomic stores to elements of one word from several invocations.
func atomic(t *testing.T, dev *gpu.Device, e dtype.Type, window bool) {
	words := tame(e, values(e))
	a := &array{Decl: kernel.Decl{Name: "s", Type: e, Mode: kernel.Atomic, Window: window}, words: append([]uint32(nil), words...)}
	per := 4 / e.Size()
	from, n := 64*per+1, len(words)*per
	if window {
		a.from = 64
	}
	l := launch{
		source: "fn add3(i: u32) { let v = sublet_load_s(i); sublet_store_s(i, v + " + three(e) + "); }",
		kernel: "add3", local: [3]int{64}, rng: line(from, n-from-2, n), arrays: []*array{a},
	}
	l.run(t, dev)
	equal(t, "atomic", a.words, wanted(e, words, from, n-2))
}
