// SPDX-License-Identifier: Apache-2.0

package gemm

var portable = kernel{name: "go", rows: 2, cols: 4, half: 4, depth: 256, down: 128, across: 1024, tile: tileGo, axpy: axpyGo, dot: dotGo}

// tileGo is the tile's function without assembly.
func tileGo(t *tile) {
	if t.rows == 2 && t.cols == 4 {
		tileFull(t)
		return
	}
	for i := range t.rows {
		for j := range t.cols {
			var sum float32
			for p := range t.depth {
				sum += float32(t.a[i*t.aRow+p*t.aStep] * t.b[p*t.bStep+j])
			}
			if c := &t.c[i*t.cRow+j]; t.add {
				*c += sum
			} else {
				*c = sum
			}
		}
	}
}

// tileFull has the sums of a full tile in registers.
func tileFull(t *tile) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	a0, a1 := t.a, t.a[t.aRow:]
	for p := range t.depth {
		b := (*[4]float32)(t.b[p*t.bStep:])
		x, y := a0[p*t.aStep], a1[p*t.aStep]
		s00 += float32(x * b[0])
		s01 += float32(x * b[1])
		s02 += float32(x * b[2])
		s03 += float32(x * b[3])
		s10 += float32(y * b[0])
		s11 += float32(y * b[1])
		s12 += float32(y * b[2])
		s13 += float32(y * b[3])
	}
	store4(t.c, t.add, s00, s01, s02, s03)
	store4(t.c[t.cRow:], t.add, s10, s11, s12, s13)
}

func store4(c []float32, add bool, s0, s1, s2, s3 float32) {
	d := (*[4]float32)(c)
	if add {
		s0, s1, s2, s3 = d[0]+s0, d[1]+s1, d[2]+s2, d[3]+s3
	}
	*d = [4]float32{s0, s1, s2, s3}
}

// axpyGo is axpy without assembly.
func axpyGo(v *vectors) {
	y := v.y[:v.n]
	if !v.add {
		clear(y)
	}
	for i := range v.rows {
		x, m := v.x[i], v.m[i*v.row:][:len(y)]
		for j := range y {
			y[j] += float32(x * m[j])
		}
	}
}

// dotGo is dot without assembly. Four sums, so that additions do not wait for each other.
func dotGo(v *vectors) {
	for i := range v.rows {
		var s0, s1, s2, s3 float32
		x, m := v.x[:v.n], v.m[i*v.row:][:v.n]
		for ; len(x) >= 4; x, m = x[4:], m[4:] {
			s0 += float32(x[0] * m[0])
			s1 += float32(x[1] * m[1])
			s2 += float32(x[2] * m[2])
			s3 += float32(x[3] * m[3])
		}
		for j := range x {
			s0 += float32(x[j] * m[j])
		}
		v.y[i] = (s0 + s1) + (s2 + s3)
	}
}
