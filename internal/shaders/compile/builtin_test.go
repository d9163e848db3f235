// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
)

// each lists what the options change.
var each = map[string]compile.Options{"plain": {}, "guarded": {Guard: true, Threads: true}, "exact": {Exact: true}, "wazero": {Wazero: true}}

// run compiles a text and runs one workgroup.
func run(t *testing.T, o compile.Options, text string, params []byte, storage ...[]byte) {
	t.Helper()
	mod, err := compile.Compile(text, "main", o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if o.Threads { // wazero runs no atomics; the code is only to be made
		o.Threads = false
		if mod, err = compile.Compile(text, "main", o); err != nil {
			t.Fatal(err)
		}
	}
	compiletest.Run(t, mod, [3]uint32{1, 1, 1}, params, storage)
}

func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func word(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

func float(b []byte, i int) float64 { return float64(math.Float32frombits(word(b, i))) }

var someFloats = []float32{
	0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.25, -7.75, 100, 0.001, -0.001, 12345.678, -9.5, 0.75, 2, -3, 10, 0.1, 1e-3, 5.5, -1.5, 8,
}

var someWords = []uint32{
	0, 1, 2, 3, 0xffffffff, 0x80000000, 0x7fffffff, 31, 32, 33, 0xdeadbeef, 0x12345678, 5, 0xfffffff0, 8, 0x00ff00ff, 7, 255, 0x8000, 0xaaaaaaaa, 17, 9, 4, 6,
}

// elementwise is a function that is computed by component: f32, i32 or u32 arguments, letters f, i and u, and a result.
type elementwise struct {
	name, sig string
	float     func(x, y, z float64) float64
	whole     func(x, y, z uint32) uint32
	ulps      float64
}

func f1(f func(float64) float64) func(x, y, z float64) float64 {
	return func(x, _, _ float64) float64 { return f(x) }
}

func f2(f func(x, y float64) float64) func(x, y, z float64) float64 {
	return func(x, y, _ float64) float64 { return f(x, y) }
}

func u1(f func(uint32) uint32) func(x, y, z uint32) uint32 {
	return func(x, _, _ uint32) uint32 { return f(x) }
}

func u2(f func(x, y uint32) uint32) func(x, y, z uint32) uint32 {
	return func(x, y, _ uint32) uint32 { return f(x, y) }
}

func pick(c bool, x, y uint32) uint32 {
	if c {
		return x
	}
	return y
}

// fract rounds as float32 does.
func fract(x float64) float64 { return float64(float32(x) - float32(math.Floor(x))) }

func s(x uint32) int32 { return int32(x) }

var elementwises = []elementwise{
	{"abs($0)", "ff", f1(math.Abs), nil, 0},
	{"abs($0)", "ii", nil, u1(func(x uint32) uint32 { return pick(s(x) < 0, -x, x) }), 0},
	{"abs($0)", "uu", nil, u1(func(x uint32) uint32 { return x }), 0},
	{"ceil($0)", "ff", f1(math.Ceil), nil, 0},
	{"floor($0)", "ff", f1(math.Floor), nil, 0},
	{"trunc($0)", "ff", f1(math.Trunc), nil, 0},
	{"round($0)", "ff", f1(math.RoundToEven), nil, 0},
	{"fract($0)", "ff", f1(func(x float64) float64 { return x - math.Floor(x) }), nil, 1},
	{"sqrt(abs($0))", "ff", f1(func(x float64) float64 { return math.Sqrt(math.Abs(x)) }), nil, 1},
	{"inverseSqrt(abs($0) + 1.0)", "ff", f1(func(x float64) float64 { return 1 / math.Sqrt(math.Abs(x)+1) }), nil, 3},
	{"saturate($0)", "ff", f1(func(x float64) float64 { return min(max(x, 0), 1) }), nil, 0},
	{"sign($0)", "ff", f1(func(x float64) float64 { return float64(truth(x > 0)) - float64(truth(x < 0)) }), nil, 0},
	{"sign($0)", "ii", nil, u1(func(x uint32) uint32 { return pick(s(x) > 0, 1, pick(x == 0, 0, 0xffffffff)) }), 0},
	{"degrees($0)", "ff", f1(func(x float64) float64 { return x * 180 / math.Pi }), nil, 2},
	{"radians($0)", "ff", f1(func(x float64) float64 { return x * math.Pi / 180 }), nil, 2},
	{"exp($0 * 0.005)", "ff", f1(func(x float64) float64 { return math.Exp(float64(float32(x) * 0.005)) }), nil, 3},
	{"exp2($0 * 0.01)", "ff", f1(func(x float64) float64 { return math.Exp2(float64(float32(x) * 0.01)) }), nil, 3},
	{"log(abs($0) + 0.1)", "ff", f1(func(x float64) float64 { return math.Log(float64(float32(math.Abs(x)) + 0.1)) }), nil, 3},
	{"log2(abs($0) + 0.1)", "ff", f1(func(x float64) float64 { return math.Log2(float64(float32(math.Abs(x)) + 0.1)) }), nil, 3},
	{"sin($0)", "ff", f1(math.Sin), nil, 4},
	{"cos($0)", "ff", f1(math.Cos), nil, 4},
	{"tan($0)", "ff", f1(math.Tan), nil, 8},
	{"asin(fract($0))", "ff", f1(func(x float64) float64 { return math.Asin(fract(x)) }), nil, 16},
	{"acos(fract($0))", "ff", f1(func(x float64) float64 { return math.Acos(fract(x)) }), nil, 16},
	{"atan($0)", "ff", f1(math.Atan), nil, 4},
	{"tanh($0)", "ff", f1(math.Tanh), nil, 4},
	{"sinh($0 * 0.001)", "ff", f1(func(x float64) float64 { return math.Sinh(float64(float32(x) * 0.001)) }), nil, 6},
	{"cosh($0 * 0.001)", "ff", f1(func(x float64) float64 { return math.Cosh(float64(float32(x) * 0.001)) }), nil, 6},
	{"asinh($0)", "ff", f1(math.Asinh), nil, 6},
	{"acosh(abs($0) + 1.5)", "ff", f1(func(x float64) float64 { return math.Acosh(float64(float32(math.Abs(x)) + 1.5)) }), nil, 6},
	{"atanh(fract($0) * 0.5)", "ff", f1(func(x float64) float64 { return math.Atanh(fract(x) * 0.5) }), nil, 16},
	{"atan2($0, $1)", "fff", f2(math.Atan2), nil, 6},
	{"pow(abs($0) + 0.5, $1 * 0.01)", "fff", f2(func(x, y float64) float64 {
		return math.Pow(float64(float32(math.Abs(x))+0.5), float64(float32(y)*0.01))
	}), nil, 8},
	{"min($0, $1)", "fff", f2(math.Min), nil, 0},
	{"max($0, $1)", "fff", f2(math.Max), nil, 0},
	{"min($0, $1)", "iii", nil, u2(func(x, y uint32) uint32 { return uint32(min(s(x), s(y))) }), 0},
	{"max($0, $1)", "iii", nil, u2(func(x, y uint32) uint32 { return uint32(max(s(x), s(y))) }), 0},
	{"min($0, $1)", "uuu", nil, u2(func(x, y uint32) uint32 { return min(x, y) }), 0},
	{"max($0, $1)", "uuu", nil, u2(func(x, y uint32) uint32 { return max(x, y) }), 0},
	{"clamp($0, min($1, $2), max($1, $2))", "ffff", func(x, y, z float64) float64 { return min(max(x, min(y, z)), max(y, z)) }, nil, 0},
	{"clamp($0, min($1, $2), max($1, $2))", "iiii", nil, func(x, y, z uint32) uint32 {
		lo, hi := min(s(y), s(z)), max(s(y), s(z))
		return uint32(min(max(s(x), lo), hi))
	}, 0},
	{"fma($0, $1, $2)", "ffff", func(x, y, z float64) float64 { return float64(float32(x)*float32(y) + float32(z)) }, nil, 2},
	{"mix($0, $1, fract($2))", "ffff", func(x, y, z float64) float64 { z = fract(z); return x*(1-z) + y*z }, nil, 1e4},
	{"step($0, $1)", "fff", f2(func(x, y float64) float64 { return float64(truth(x <= y)) }), nil, 0},
	{"smoothstep($0, $0 + 2.0, $1)", "fff", f2(func(x, y float64) float64 {
		t := min(max((y-x)/2, 0), 1)
		return t * t * (3 - 2*t)
	}), nil, 4096},
	{"$0 + $1", "fff", f2(func(x, y float64) float64 { return x + y }), nil, 1},
	{"$0 * $1", "fff", f2(func(x, y float64) float64 { return x * y }), nil, 1},
	{"$0 - $1", "fff", f2(func(x, y float64) float64 { return x - y }), nil, 1},
	{"$0 / ($1 + 20.0)", "fff", f2(func(x, y float64) float64 { return x / float64(float32(y)+20) }), nil, 1},
	{"$0 % ($1 + 20.5)", "fff", f2(func(x, y float64) float64 { return math.Mod(x, float64(float32(y)+20.5)) }), nil, 1e5},
	{"-$0", "ff", f1(func(x float64) float64 { return -x }), nil, 0},
	{"$0 + $1", "uuu", nil, u2(func(x, y uint32) uint32 { return x + y }), 0},
	{"$0 - $1", "iii", nil, u2(func(x, y uint32) uint32 { return x - y }), 0},
	{"$0 * $1", "iii", nil, u2(func(x, y uint32) uint32 { return x * y }), 0},
	{"$0 / $1", "uuu", nil, u2(func(x, y uint32) uint32 { return x / pick(y == 0, 1, y) }), 0},
	{"$0 % $1", "uuu", nil, u2(func(x, y uint32) uint32 { return x % pick(y == 0, 1, y) }), 0},
	{"$0 / $1", "iii", nil, u2(func(x, y uint32) uint32 { return quotient(s(x), s(y)) }), 0},
	{"$0 % $1", "iii", nil, u2(func(x, y uint32) uint32 { return x - quotient(s(x), s(y))*pick(trap(s(x), s(y)), 1, y) }), 0},
	{"$0 & $1", "uuu", nil, u2(func(x, y uint32) uint32 { return x & y }), 0},
	{"$0 | $1", "iii", nil, u2(func(x, y uint32) uint32 { return x | y }), 0},
	{"$0 ^ $1", "uuu", nil, u2(func(x, y uint32) uint32 { return x ^ y }), 0},
	{"~$0", "uu", nil, u1(func(x uint32) uint32 { return ^x }), 0},
	{"-$0", "ii", nil, u1(func(x uint32) uint32 { return -x }), 0},
	{"$0 << $1", "uuu", nil, u2(func(x, y uint32) uint32 { return x << (y & 31) }), 0},
	{"$0 >> $1", "uuu", nil, u2(func(x, y uint32) uint32 { return x >> (y & 31) }), 0},
	{"$0 >> $1", "iui", nil, u2(func(x, y uint32) uint32 { return uint32(s(x) >> (y & 31)) }), 0},
	{"select($0, $1, $0 < $2)", "ffff", func(x, y, z float64) float64 {
		if x < z {
			return y
		}
		return x
	}, nil, 0},
	{"select($0, $1, ($0 >= $2) != ($1 == $2))", "iiii", nil, func(x, y, z uint32) uint32 { return pick((s(x) >= s(z)) != (y == z), y, x) }, 0},
	{"select($0, $1, !(($0 <= $2) | ($1 > $2)))", "uuuu", nil, func(x, y, z uint32) uint32 { return pick(x > z && y <= z, y, x) }, 0},
	{"countLeadingZeros($0)", "uu", nil, u1(func(x uint32) uint32 { return uint32(bits.LeadingZeros32(x)) }), 0},
	{"countTrailingZeros($0)", "ii", nil, u1(func(x uint32) uint32 { return uint32(bits.TrailingZeros32(x)) }), 0},
	{"countOneBits($0)", "uu", nil, u1(func(x uint32) uint32 { return uint32(bits.OnesCount32(x)) }), 0},
	{"reverseBits($0)", "uu", nil, u1(bits.Reverse32), 0},
	{"firstLeadingBit($0)", "uu", nil, u1(func(x uint32) uint32 { return uint32(31 - bits.LeadingZeros32(x)) }), 0},
	{"firstLeadingBit($0)", "ii", nil, u1(func(x uint32) uint32 { return uint32(31 - bits.LeadingZeros32(uint32(s(x)^s(x)>>31))) }), 0},
	{"firstTrailingBit($0)", "uu", nil, u1(func(x uint32) uint32 { return pick(x == 0, 0xffffffff, uint32(bits.TrailingZeros32(x))) }), 0},
	{"extractBits($0, 5u, 9u)", "uu", nil, u1(func(x uint32) uint32 { return x >> 5 & 511 }), 0},
	{"extractBits($0, 5u, 9u)", "ii", nil, u1(func(x uint32) uint32 { return uint32(s(x) << 18 >> 23) }), 0},
	{"extractBits($0, arrayLength(&a0) + 34u, 9u)", "uu", nil, u1(func(uint32) uint32 { return 0 }), 0},
	{"insertBits($0, $1, 7u, 10u)", "uuu", nil, u2(func(x, y uint32) uint32 { return x&^(1023<<7) | y&1023<<7 }), 0},
	{"insertBits($0, $1, 0u, 32u)", "uuu", nil, u2(func(_, y uint32) uint32 { return y }), 0},
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func trap(x, y int32) bool { return y == 0 || x == math.MinInt32 && y == -1 }

func quotient(x, y int32) uint32 {
	if trap(x, y) {
		y = 1
	}
	return uint32(x / y)
}

// text writes a kernel that computes a function of scalars and of vectors of two to four. Result row 0 is of vec4, 1 of scalars, 2 of
// vec3 and a scalar, 3 of two vec2.
func (e *elementwise) text() string {
	types := map[byte]string{'f': "f32", 'i': "i32", 'u': "u32"}
	n := len(e.sig) - 1
	result := types[e.sig[n]]
	text := "@group(0) @binding(9) var<storage, read_write> r: array<vec4<" + result + ">>;\n"
	var operands strings.Builder
	for i := range n {
		operands.WriteString("@group(0) @binding(" + strconv.Itoa(i) + ") var<storage, read> a" + strconv.Itoa(i) + ": array<vec4<" + types[e.sig[i]] + ">>;\n")
	}
	text += operands.String()
	call := func(swizzle string) string {
		c := e.name
		for i := range n {
			c = strings.ReplaceAll(c, "$"+strconv.Itoa(i), "a"+strconv.Itoa(i)+"[i]"+swizzle)
		}
		return c
	}
	return text + "@compute @workgroup_size(6)\nfn main(@builtin(local_invocation_index) i: u32) {\n  r[4u * i] = " + call("") +
		";\n  r[4u * i + 1u] = vec4(" + call(".x") + ", " + call(".y") + ", " + call(".z") + ", " + call(".w") +
		");\n  r[4u * i + 2u] = vec4(" + call(".xyz") + ", " + call(".w") + ");\n  r[4u * i + 3u] = vec4(" + call(".xy") + ", " + call(".zw") + ");\n}\n"
}

func TestElementwise(t *testing.T) {
	for name, o := range each {
		for _, e := range elementwises {
			t.Run(name+"/"+e.name+" "+e.sig, func(t *testing.T) { e.run(t, o) })
		}
	}
}

func (e *elementwise) run(t *testing.T, o compile.Options) {
	t.Helper()
	n := len(e.sig) - 1
	args := make([][]byte, n)
	for i := range args {
		for k := range 24 {
			if e.sig[i] == 'f' {
				args[i] = append(args[i], floats(someFloats[(k*(2*i+1)+5*i)%24])...)
			} else {
				args[i] = append(args[i], words(someWords[(k*(2*i+1)+5*i)%24])...)
			}
		}
	}
	r := make([]byte, 4*24*4)
	run(t, o, e.text(), nil, append(args, r)...)
	e.check(t, args, r)
}

func (e *elementwise) check(t *testing.T, args [][]byte, r []byte) {
	t.Helper()
	for k := range 24 {
		for row := range 4 {
			at := (k/4*4+row)*4 + k%4
			if e.float != nil {
				var x [3]float64
				for i, a := range args {
					x[i] = float(a, k)
				}
				got, want := float(r, at), e.float(x[0], x[1], x[2])
				if slack := e.ulps * max(math.Abs(want)*0x1p-24, 0x1p-140); !(math.Abs(got-float64(float32(want))) <= slack) && !(got != got && want != want) {
					t.Errorf("row %d of %v: got %v, want %v", row, x, got, want)
				}
				continue
			}
			var x [3]uint32
			for i, a := range args {
				x[i] = word(a, k)
			}
			if got, want := word(r, at), e.whole(x[0], x[1], x[2]); got != want {
				t.Errorf("row %d of %#x: got %#x, want %#x", row, x, got, want)
			}
		}
	}
}
