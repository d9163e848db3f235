// SPDX-License-Identifier: Apache-2.0

package fuse

// number is what the reference of an operation computes in; float64 serves tests.
type number interface {
	~float32 | ~float64 | ~int32 | ~uint32
}

// The following are what the references of operations call; see the column Go of the table in internal/ops.

func truth[N number](b bool) N {
	if b {
		return 1
	}
	return 0
}

func pick[N number](first bool, x, y N) N {
	if first {
		return x
	}
	return y
}

func absolute[N number](x N) N {
	switch {
	case x < 0:
		return -x
	case x == 0:
		return 0 // of -0, too
	}
	return x
}

func sign[N number](x N) N {
	var zero N
	switch {
	case x > zero:
		return 1
	case x < zero:
		return zero - 1
	}
	return x // zero, or NaN
}

func clamp[N number](x, lo, hi N) N {
	if x > hi {
		x = hi
	}
	if x < lo {
		x = lo
	}
	return x
}

// divide divides as WGSL does: integers by zero yield the dividend.
func divide[N number](x, y N) N {
	if one, two := N(1), N(2); y == 0 && one/two == 0 {
		return x
	}
	return x / y
}
