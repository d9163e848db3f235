// SPDX-License-Identifier: Apache-2.0

package dtype_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"strconv"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// TestHalfIsMemory holds Half to the layout of the elements of other programs.
func TestHalfIsMemory(t *testing.T) {
	var h dtype.Half
	if unsafe.Sizeof(h) != 2 || unsafe.Alignof(h) != 2 || unsafe.Sizeof([3]dtype.Half{}) != 6 {
		t.Errorf("size %d, alignment %d", unsafe.Sizeof(h), unsafe.Alignof(h))
	}
	if dtype.Float16.Size() != int(unsafe.Sizeof(h)) {
		t.Error("float16 has another size")
	}
}

// only is an importer of one package.
type only struct{ *types.Package }

func (o only) Import(string) (*types.Package, error) { return o.Package, nil }

// TestHalfRefuses compiles what would take bits for numbers.
func TestHalfRefuses(t *testing.T) {
	fset := token.NewFileSet()
	parse := func(name string, text any) []*ast.File {
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return []*ast.File{f}
	}
	// What dtype.go itself imports does not matter here.
	pkg, _ := (&types.Config{Error: func(error) {}}).Check("dtype", fset, parse("dtype.go", nil), nil)
	compile := func(statement string) error {
		_, err := (&types.Config{Importer: only{pkg}}).Check("x", fset, parse("x.go", `package x
			import "dtype"
			func scale[T float32 | dtype.Half](s T, a []T) {}
			func f(h, k dtype.Half, s []dtype.Half) { `+statement+` }`), nil)
		return err
	}
	for _, good := range []string{"scale(dtype.ToHalf(2), s)", "_ = h == k", "h = dtype.Half{}", "s[0] = k"} {
		if err := compile(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"scale(2, s)", "scale(0x3c00, s)", "h = 1", "_ = []dtype.Half{1, 2}", "_ = h + k", "h++", "_ = -h", "_ = h < k", "_ = h == 1",
		"_ = float32(h)", "_ = uint16(h)", "_ = dtype.Half(1)", "_ = dtype.Half(1.5)", "_ = dtype.Half{1}", "_ = max(h, k)",
		"s = []uint16{}", "var i uint16 = h; _ = i",
	} {
		if compile(bad) == nil {
			t.Errorf("%s compiles", bad)
		}
	}
}

// number is what IEEE 754 says of the bits.
func number(bits uint16) float64 {
	sign, e, f := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&0x3ff)
	switch {
	case e == 31 && f != 0:
		return math.NaN()
	case e == 31:
		return math.Inf(int(sign))
	case e == 0:
		return math.Copysign(math.Ldexp(f, -24), sign)
	}
	return sign * math.Ldexp(f+1024, e-25)
}

func TestEveryHalf(t *testing.T) {
	for i := range 1 << 16 {
		bits := uint16(i)
		h, want := dtype.HalfFromBits(bits), number(bits)
		if h.Bits() != bits {
			t.Fatalf("%04x becomes %04x", bits, h.Bits())
		}
		f := float64(h.Float32())
		if want == want && (f != want || math.Signbit(f) != math.Signbit(want)) || want != want && f == f {
			t.Fatalf("%04x is %v, want %v", bits, f, want)
		}
		parsed, err := strconv.ParseFloat(h.String(), 64)
		again := dtype.ToHalf(parsed)
		if err != nil || want == want && again != h {
			t.Fatalf("%04x: %s reads as %v, %v", bits, h, again, err)
		}
		if want != want {
			if !math.IsNaN(float64(again.Float32())) || !math.IsNaN(float64(dtype.ToHalf(float64(h.Float32())).Float32())) {
				t.Fatalf("%04x: NaN becomes %v", bits, again)
			}
			continue
		}
		if dtype.ToHalf(want) != h {
			t.Fatalf("%v becomes %v", want, dtype.ToHalf(want))
		}
	}
}

// TestHalfRounds goes through the neighbourhoods of all ties.
func TestHalfRounds(t *testing.T) {
	for bits := range uint16(0x7c00) {
		v, next := number(bits), number(bits+1)
		if bits == 0x7bff {
			next = 65536
		}
		tie, even := (v+next)/2, bits+bits&1
		for _, c := range []struct {
			x    float64
			want uint16
		}{{tie, even}, {math.Nextafter(tie, 0), bits}, {math.Nextafter(tie, 1e9), bits + 1}} {
			if got := dtype.ToHalf(c.x).Bits(); got != c.want {
				t.Fatalf("%v becomes %04x, want %04x", c.x, got, c.want)
			}
			if got := dtype.ToHalf(-c.x).Bits(); got != c.want|0x8000 {
				t.Fatalf("%v becomes %04x, want %04x", -c.x, got, c.want|0x8000)
			}
		}
		above := float64(math.Nextafter32(float32(tie), 1e9))
		if got := dtype.ToHalf(above).Bits(); got != bits+1 {
			t.Fatalf("%v becomes %04x, want %04x", above, got, bits+1)
		}
	}
	for x, want := range map[float64]uint16{
		math.MaxFloat64: 0x7c00, math.Inf(1): 0x7c00, 5e-324: 0, 0x1p-149: 0, 0x1p-25: 0, 0x1.8p-25: 1, math.MaxFloat32: 0x7c00,
	} {
		if got := dtype.ToHalf(x).Bits(); got != want {
			t.Errorf("%v becomes %04x, want %04x", x, got, want)
		}
	}
}

// TestHalfEquality is of the bits.
func TestHalfEquality(t *testing.T) {
	zero, minus, nan := dtype.ToHalf(0), dtype.ToHalf(math.Copysign(0, -1)), dtype.HalfFromBits(0x7e01)
	same := nan
	if zero == minus || zero.Float32() != minus.Float32() || zero != (dtype.Half{}) {
		t.Error("zeros")
	}
	if nan != same || nan == dtype.HalfFromBits(0x7e00) || nan.Float32() == same.Float32() {
		t.Error("NaN")
	}
}

func TestHalfText(t *testing.T) {
	for bits, want := range map[uint16]string{
		0: "0", 0x8000: "-0", 0x3c00: "1", 0xb800: "-0.5", 0x7bff: "65504", 1: "5.9604645e-08",
		0x7c00: "+Inf", 0xfc00: "-Inf", 0x7e00: "NaN",
	} {
		if got := dtype.HalfFromBits(bits).String(); got != want {
			t.Errorf("%04x: %q, want %q", bits, got, want)
		}
	}
}
