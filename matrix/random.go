// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
	"strconv"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Random is a source of random numbers, as NumPy's Generator is: each call takes the next stream of the seed. It serves several
// goroutines.
type Random struct {
	seed int
	next atomic.Int64
}

// NewRandom makes a source. The same seed and the same calls give the same numbers on every device, those of Normal, TruncatedNormal and
// Gumbel but for their last places, which devices round. A seed that is negative, or 2^53 and
// more, is [gpu.ErrInvalid] of what is made with the source.
func NewRandom(seed int) *Random { return &Random{seed: seed} }

// stream takes the next stream; a nil source is an error of what is built with it.
func (r *Random) stream(op string, build func(seed, stream int) *Expr[float32]) *Expr[float32] {
	if r == nil {
		return &Expr[float32]{expr.Failed(fail(op, buffer.ErrNil))}
	}
	return build(r.seed, int(r.next.Add(1)-1))
}

// Uniform is [Uniform] of the next stream.
func (r *Random) Uniform(rows, cols int, low, high float64) *Expr[float32] {
	return r.stream("Uniform", func(seed, stream int) *Expr[float32] { return Uniform[float32](rows, cols, low, high, seed, stream) })
}

// Normal is [Normal] of the next stream.
func (r *Random) Normal(rows, cols int, mean, sigma float64) *Expr[float32] {
	return r.stream("Normal", func(seed, stream int) *Expr[float32] { return Normal[float32](rows, cols, mean, sigma, seed, stream) })
}

// TruncatedNormal is [TruncatedNormal] of the next stream.
func (r *Random) TruncatedNormal(rows, cols int, mean, sigma float64) *Expr[float32] {
	return r.stream("TruncatedNormal", func(seed, stream int) *Expr[float32] {
		return TruncatedNormal[float32](rows, cols, mean, sigma, seed, stream)
	})
}

// Gumbel is [Gumbel] of the next stream.
func (r *Random) Gumbel(rows, cols int, location, scale float64) *Expr[float32] {
	return r.stream("Gumbel", func(seed, stream int) *Expr[float32] {
		return Gumbel[float32](rows, cols, location, scale, seed, stream)
	})
}

// Mask is [RandomMask] of the next stream.
func (r *Random) Mask(rows, cols int, rate, scale float64) *Expr[float32] {
	return r.stream("Mask", func(seed, stream int) *Expr[float32] {
		return RandomMask[float32](rows, cols, rate, scale, seed, stream)
	})
}

// Integers is [RandomIntegers] of the next stream.
func (r *Random) Integers(rows, cols, low, high int) *Expr[int32] {
	if r == nil {
		return &Expr[int32]{expr.Failed(fail("Integers", buffer.ErrNil))}
	}
	return RandomIntegers[int32](rows, cols, float64(low), float64(high), r.seed, int(r.next.Add(1)-1))
}

// Permutation is [Permutation] of the next stream.
func (r *Random) Permutation(n int) *Expr[int32] {
	if r == nil {
		return &Expr[int32]{expr.Failed(fail("Permutation", buffer.ErrNil))}
	}
	return Permutation[int32](n, r.seed, int(r.next.Add(1)-1))
}

// draw is a matrix of random bits, whose seed and stream begin at a place among the numbers.
func (s *shaping) draw(at int) *node {
	rows, cols := s.size(0, 0), s.size(1, 1)
	return s.bits(rows, cols, at)
}

func (s *shaping) bits(rows, cols, at int) *node {
	return expr.NewRandom(s.op, rows, cols, s.seed(at), s.seed(at+1))
}

// seed is the number of a seed or stream. A float64 holds all of them exactly.
func (s *shaping) seed(at int) uint64 {
	v := s.number(at, 0)
	if !(v >= 0 && v < 1<<53 && v == math.Trunc(v)) {
		return uint64(s.fail(gpu.ErrInvalid, "the seed or stream ", text(v), ", which is no whole number from 0 to 2^53-1"))
	}
	return uint64(v)
}

// reals are two numbers of a distribution, the second of which must not be negative.
func (s *shaping) reals(first, second float64, what string) (a, b float64) {
	a, b = s.number(2, first), s.number(3, second)
	if math.IsNaN(a+b) || math.IsInf(a, 0) || math.IsInf(b, 0) || b < 0 {
		s.fail(gpu.ErrInvalid, what, " ", text(a), " and ", text(b))
	}
	if !expr.Floats(s.t) {
		s.undefined(s.t)
	}
	s.hold(a, b)
	return a, b
}

// hold refuses numbers that the type to be made cannot hold: floats that would be infinite, and other numbers that would become others.
func (s *shaping) hold(numbers ...float64) {
	for _, v := range numbers {
		if e := s.t.Load(s.t.Store(v)); e != v && (s.t.Compute() != fuse.F32 || math.IsInf(e, 0)) {
			s.fail(gpu.ErrInvalid, text(v), " is beyond ", s.t.String())
		}
	}
}

// holdAll is hold for all whole numbers from low to high.
func (s *shaping) holdAll(low, high float64) {
	// Of floats the first whole number that another one is rounded to.
	if most := max(high, -low); s.t == fuse.F32 && most > 1<<24 || s.t == fuse.F16 && most > 1<<11 {
		s.fail(gpu.ErrInvalid, "not all numbers to ", text(most), " are ", s.t.String())
	}
	s.hold(low, high)
}

// affine is a + b * x in the type that is made.
func (s *shaping) affine(a, b float64, x *node) *node {
	return expr.NewConversion(s.op, s.t, s.apply(fuse.OpAdd, s.float(a), s.apply(fuse.OpMul, s.float(b), x)))
}

// fraction is the upper bits as a number from 0 up to but without 1.
func (s *shaping) fraction(bits *node, count int) *node {
	upper := s.apply(fuse.OpShiftRight, bits, u32(uint32(32-count)))
	return s.apply(fuse.OpMul, expr.NewConversion(s.op, fuse.F32, upper), s.float(math.Ldexp(1, -count)))
}

func (s *shaping) randomBits() *node { return expr.NewConversion(s.op, s.t, s.draw(2)) }

func (s *shaping) uniform() *node {
	low, high := s.number(2, 0), s.number(3, 1)
	if !(low <= high) || math.IsInf(float64(float32(high-low)), 0) {
		s.fail(gpu.ErrInvalid, "from ", text(low), " to ", text(high))
	}
	if !expr.Floats(s.t) {
		s.undefined(s.t)
	}
	s.hold(low, high)
	if s.err != nil {
		return nil
	}
	x := s.apply(fuse.OpAdd, s.float(low), s.apply(fuse.OpMul, s.float(high-low), s.fraction(s.draw(4), 24)))
	if low < high { // rounding may have reached the end
		x = s.apply(fuse.OpMin, x, s.float(max(below(s.t, high), low)))
	}
	return expr.NewConversion(s.op, s.t, x)
}

// below is the largest element of a type that is less than v.
func below(t fuse.Type, v float64) float64 {
	lowest, highest := uint32(0), uint32(1)<<(8*t.Size()-1)-1 // bits of positive numbers are in their order
	sign := 1.0
	at := func(bits uint32) float64 { return sign * t.Load(bits) }
	if v <= 0 { // so are those of negative ones, the other way round
		sign = -1
		for highest-lowest > 1 {
			if middle := lowest + (highest-lowest)/2; at(middle) < v {
				highest = middle
			} else {
				lowest = middle
			}
		}
		return at(highest)
	}
	for highest-lowest > 1 {
		if middle := lowest + (highest-lowest)/2; at(middle) < v {
			lowest = middle
		} else {
			highest = middle
		}
	}
	return at(lowest)
}

// tail is a random probability from a up to 1/2, and whether the number is on the other side of the mean.
func (s *shaping) tail(a float64) (probability, side *node) {
	bits := s.draw(4)
	side = s.apply(fuse.OpShiftRight, bits, u32(31))
	lower := s.apply(fuse.OpBitAnd, bits, u32(math.MaxInt32))
	v := s.apply(fuse.OpAdd, expr.NewConversion(s.op, fuse.F32, lower), s.float(0.5))
	return s.apply(fuse.OpAdd, s.float(a), s.apply(fuse.OpMul, v, s.float((0.5-a)/(1<<31)))), expr.NewConversion(s.op, fuse.F32, side)
}

// horner is a polynomial of x, its highest coefficient first.
func (s *shaping) horner(x *node, coefficients ...float64) *node {
	sum := s.float(coefficients[0])
	for _, c := range coefficients[1:] {
		sum = s.apply(fuse.OpAdd, s.apply(fuse.OpMul, sum, x), s.float(c))
	}
	return sum
}

// quantile is how far from the mean the tail of a probability up to 1/2 begins: -PPND7 of algorithm AS 241 (Wichura, Applied Statistics
// 37(3), 1988). Its error is 1e-7 of the result, and 1e-6 with the rounding of float32.
func (s *shaping) quantile(p *node) *node {
	q := s.apply(fuse.OpSub, s.float(0.5), p)
	r := s.apply(fuse.OpSub, s.float(0.180625), s.apply(fuse.OpSquare, q))
	middle := s.apply(fuse.OpMul, q, s.apply(fuse.OpDiv, s.horner(r, 59.10937472, 159.29113202, 50.434271938, 3.3871327179),
		s.horner(r, 67.18756360, 78.757757664, 17.895169469, 1)))
	r = s.apply(fuse.OpSqrt, s.apply(fuse.OpNeg, s.apply(fuse.OpLog, p)))
	near := s.apply(fuse.OpSub, r, s.float(1.6))
	outer := s.apply(fuse.OpDiv, s.horner(near, 0.17023821103, 1.3067284816, 2.75681539, 1.4234372777), s.horner(near, 0.12021132975, 0.737001625, 1))
	return s.apply(fuse.OpWhere, s.apply(fuse.OpLe, q, s.float(0.425)), middle, outer)
}

// signed is x, negative where side is 1.
func (s *shaping) signed(x, side *node) *node {
	return s.apply(fuse.OpWhere, side, s.apply(fuse.OpNeg, x), x)
}

func (s *shaping) normal() *node {
	mean, sigma := s.reals(0, 1, "mean and sigma")
	p, side := s.tail(0)
	return s.affine(mean, sigma, s.signed(s.quantile(p), side))
}

// twoSigma is the probability of a tail that begins at 2 sigma.
const twoSigma = 0.022750131948179195

func (s *shaping) truncatedNormal() *node {
	mean, sigma := s.reals(0, 1, "mean and sigma")
	p, side := s.tail(twoSigma)
	return s.affine(mean, sigma, s.signed(s.apply(fuse.OpMin, s.quantile(p), s.float(2)), side))
}

func (s *shaping) gumbel() *node {
	location, scale := s.reals(0, 1, "location and scale")
	u := s.apply(fuse.OpAdd, s.fraction(s.draw(4), 23), s.float(1.0/(1<<24)))
	log := func(x *node) *node { return s.apply(fuse.OpLog, x) }
	return s.affine(location, -scale, log(s.apply(fuse.OpNeg, log(u))))
}

func (s *shaping) randomIntegers() *node {
	low, high := s.whole64(2, 0), s.whole64(3, 0)
	if len(s.numbers) < 4 {
		low, high = 0, low
	}
	lowest, highest := int64(-(1 << 31)), int64(1<<32)
	if low < 0 {
		highest = 1 << 31
	}
	if low >= high || low < lowest || high > highest {
		s.fail(gpu.ErrInvalid, "from ", strconv.FormatInt(low, 10), " to ", strconv.FormatInt(high, 10))
		return nil
	}
	s.holdAll(float64(low), float64(high-1))
	bits := s.draw(4)
	if high-low < 1<<32 {
		bits = s.scaled(uint32(high-low), bits)
	}
	bits = s.apply(fuse.OpAdd, bits, u32(uint32(low)))
	if low < 0 { // which is a large unsigned number
		bits = expr.NewConversion(s.op, fuse.I32, bits)
	}
	return expr.NewConversion(s.op, s.t, bits)
}

// few is the most numbers that 32 bits are drawn from. Some of them come up more often than others, by a share of few/2^32: a millionth.
const few = 1 << 12

// scaled is a random whole number below n: the upper part of n times random bits (Lemire, "Fast random integer generation in an
// interval", 2019, without its rejection). A power of two divides 32 bits; where n is another large number, 64 bits are drawn.
func (s *shaping) scaled(n uint32, bits *node) *node {
	upper := s.upperProduct(bits, n)
	if n <= few || n&(n-1) == 0 {
		return upper
	}
	const apart = 1 << 62 // no stream of a caller's, which are below 2^53, has the bits that it has with this one changed
	more := expr.NewRandom(s.op, bits.Rows, bits.Cols, s.seed(4), s.seed(5)^apart)
	lower := s.apply(fuse.OpMul, bits, u32(n))
	sum := s.apply(fuse.OpAdd, lower, s.upperProduct(more, n))
	return s.apply(fuse.OpAdd, upper, s.apply(fuse.OpLt, sum, lower)) // a sum that is smaller has carried
}

// upperProduct is the upper half of the product of bits and n, which has 64 bits: by 16 of them at a time.
func (s *shaping) upperProduct(bits *node, n uint32) *node {
	add := func(a, b *node) *node { return s.apply(fuse.OpAdd, a, b) }
	mul := func(a *node, v uint32) *node { return s.apply(fuse.OpMul, a, u32(v)) }
	low := func(a *node) *node { return s.apply(fuse.OpBitAnd, a, u32(math.MaxUint16)) }
	high := func(a *node) *node { return s.apply(fuse.OpShiftRight, a, u32(16)) }
	first := add(mul(high(bits), n&math.MaxUint16), high(mul(low(bits), n&math.MaxUint16)))
	second := add(mul(low(bits), n>>16), low(first))
	return add(mul(high(bits), n>>16), add(high(first), high(second)))
}

func u32(v uint32) *node { return expr.Number(fuse.U32, 1, 1, float64(v)) }

func (s *shaping) randomMask() *node {
	rate, scale := s.number(2, 0.5), s.number(3, 1)
	if !(rate >= 0 && rate <= 1) || math.IsNaN(scale) {
		s.fail(gpu.ErrInvalid, "rate ", text(rate), " and scale ", text(scale))
		return nil
	}
	if s.t.Compute() == fuse.F32 && !math.IsInf(scale, 0) {
		s.hold(scale)
	}
	dropped := s.apply(fuse.OpLt, s.fraction(s.draw(4), 24), s.float(rate))
	return expr.NewConversion(s.op, s.t, s.apply(fuse.OpWhere, dropped, s.float(0), s.float(scale)))
}

func (s *shaping) permutation() *node {
	n := s.size(0, 0)
	if n > 0 {
		s.holdAll(0, float64(n-1))
	}
	return expr.NewConversion(s.op, s.t, expr.NewSort(s.op, false, true, -1, s.bits(1, n, 1)))
}
