// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

func pack(words []uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func unpack(b []byte) []uint32 {
	words := make([]uint32, len(b)/4)
	for k := range words {
		words[k] = word(b, k)
	}
	return words
}

// program is the text of a kernel, whose marks must be gone but for a parameter that keeps its value.
func program(t *testing.T, l *Launch, f *fuse.Func) shaders.Program {
	t.Helper()
	p := l.Program(f)
	for _, mark := range []string{"@fuse", "@end", "@param"} {
		if strings.Contains(p.Source, mark) && (mark != "@param" || strings.Count(p.Source, mark) > 1) {
			t.Errorf("%s is not specialised: %s", p.Name, mark)
		}
	}
	return p
}

// TestScatter places entries that are bound from different places on, and passes over those out of range.
func TestScatter(t *testing.T) {
	rows := []uint32{88, 0, 2, 1, 7, 0xffffffff, 0, 1}
	cols := []uint32{1, 1, 9, 1, 2, 3}
	values := []uint32{88, 88, 88, 12, 13, 14, 15, 16}
	s := Scatter{Count: 6, Rows: 3, Cols: 4, Values: 2, RowAt: 2, ColAt: 0, Offset: 1, RowStep: 1, ColStep: 4}
	dense := make([]byte, 4*18)
	l := s.Launch()
	if len(l.Shape) != 12 || l.Groups != [3]uint32{1, 1, 1} {
		t.Errorf("not a launch: %+v", l)
	}
	launched(t, program(t, l, nil), l.Groups, shaders.Words(nil, l.Shape...), [][]byte{pack(values), pack(rows), pack(cols), dense})
	want := make([]uint32, 18)
	want[1+4*1+2], want[1+4*1+1], want[1+4*2], want[1+4*3+1] = 88, 12, 15, 16
	if got := unpack(dense); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// loading is the function of a product: it reads a dense factor of cols columns and stores what the kernel computed.
func loading(typ fuse.Type) *fuse.Func {
	return &fuse.Func{
		Type: typ, Code: []fuse.Instr{{Op: fuse.OpLoad, Type: typ}},
		Loads: []fuse.View{{Type: typ, Class: fuse.Gather, Slot: 1}},
		Store: fuse.View{Type: typ, Class: fuse.Gather}, Slots: []fuse.Slot{{Type: typ}, {Type: typ}},
	}
}

// TestRows multiplies small matrices of small numbers in all types and forms, by one vector and by several of an invocation.
func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for way := range 6 {
		typ, device := []fuse.Type{fuse.F32, fuse.I32, fuse.U32}[way/2], []*Device{&Portable, {Software: true}}[way%2]
		bits := func(v int) uint32 {
			if typ == fuse.F32 {
				return math.Float32bits(float32(v))
			}
			return uint32(v)
		}
		const m, k, n = 5, 7, 6
		a, b, want := make([]int, m*k), make([]int, k*n), make([]uint32, m*n)
		for i := range a {
			a[i] = rng.IntN(5)
		}
		var dense []uint32
		for i := range b {
			b[i] = rng.IntN(9)
			dense = append(dense, bits(b[i]))
		}
		for i := range m {
			for j := range n {
				sum := 0
				for l := range k {
					sum += a[i*k+l] * b[l*n+j]
				}
				want[i*n+j] = bits(sum)
			}
		}
		var values, byColumn, indices, pointers, places []uint32
		for i := range m {
			pointers = append(pointers, uint32(len(values)))
			for l := range k {
				values, indices = append(values, bits(a[i*k+l])), append(indices, uint32(l))
				places = append(places, uint32(l*m+i))
			}
		}
		for l := range k {
			for i := range m {
				byColumn = append(byColumn, bits(a[i*k+l]))
			}
		}
		pointers = append(pointers, uint32(len(values)))
		f := loading(typ)
		run := func(r SparseRows, base int, values []uint32) []uint32 {
			r.Cols, r.Inner = n, k
			l := r.Launch(typ, device)
			l.Shape[SparseBase] = base
			p := program(t, l, f)
			out := make([]byte, 4*r.Rows*n)
			params := f.Params(shaders.Words(nil, l.Shape...), fuse.Place{Row: n, Col: 1}, []fuse.Place{{Row: n, Col: 1}}, nil)
			launched(t, p, l.Groups, params, [][]byte{pack(values), pack(indices), pack(pointers), pack(places), out, pack(dense)})
			return unpack(out)
		}
		var parts []uint32 // rows of three entries, or of what is left
		for i := range m {
			for part := range uint32(3) {
				parts = append(parts, pointers[i]+3*part)
			}
		}
		whole := pointers
		pointers = append(parts, whole[m])
		cut := run(SparseRows{Rows: 3 * m, Entries: m * k}, 0, values)
		pointers = whole
		for name, got := range map[string][]uint32{
			"in order": run(SparseRows{Rows: m, Entries: m * k}, 0, values),
			"placed":   run(SparseRows{Placed: true, Rows: m, Entries: m * k}, -2, byColumn[2:]),
			"cut":      sumRows(t, typ, cut, m, n),
		} {
			if name == "placed" { // what lies before the binding reads as 0 and differs in column 0 of rows 0 and 1
				got, want := got[2*n:], want[2*n:]
				if !slices.Equal(got, want) {
					t.Errorf("type %d, %s: got %v, want %v", typ, name, got, want)
				}
				continue
			}
			if !slices.Equal(got, want) {
				t.Errorf("type %d, %s: got %v, want %v", typ, name, got, want)
			}
		}
		// Broken structures: pointers beyond the entries and backwards, indices beyond the dense factor.
		pointers[1], pointers[2], indices[0], indices[30] = 0xffffffff, 3, 0x80000000, k
		run(SparseRows{Rows: m, Entries: m * k}, 0, values)
	}
}

// sumRows adds three rows to each of m by the kernel of that name.
func sumRows(t *testing.T, typ fuse.Type, parts []uint32, m, n int) []uint32 {
	t.Helper()
	f := identity(fuse.View{Type: typ, Class: fuse.Gather})
	l := SparseSum(m, n)
	p := program(t, l, f)
	stride := 4 * shaders.Ceil(n, 4)
	padded, pointers := make([]uint32, 3*m*stride), []uint32{0}
	for i := range 3 * m {
		copy(padded[i*stride:], parts[i*n:][:n])
	}
	for i := range m {
		pointers = append(pointers, uint32(3*i+3))
	}
	out := make([]byte, 4*m*n)
	params := f.Params(shaders.Words(nil, l.Shape...), fuse.Place{Row: n, Col: 1}, nil, nil)
	launched(t, p, l.Groups, params, [][]byte{pack(padded), pack(pointers), out})
	return unpack(out)
}

// TestChunk bounds the turns of both kernels for rows of any length.
func TestChunk(t *testing.T) {
	for _, n := range []int{0, 1, shortRow, shortRow + 1, 59999, 65536, 1 << 20, 1 << 28, math.MaxInt32} {
		chunk := Chunk([]int32{0, 0, int32(n), int32(n)})
		if n <= shortRow {
			if chunk != 0 {
				t.Errorf("%d entries are cut", n)
			}
			continue
		}
		turns := func(n int) int { return n + shaders.Ceil(n, 32) }
		if turns(chunk) > shaders.LoopLimit || turns(shaders.Ceil(n, chunk)) > shaders.LoopLimit || chunk < 1 {
			t.Errorf("%d entries are cut to %d", n, chunk)
		}
	}
	if n := Chunk([]int32{0}); n != 0 {
		t.Errorf("no rows are cut to %d", n)
	}
}

func TestCut(t *testing.T) {
	parts, rows := Cut([]int32{0, 0, 3, 6, 13, 14}, 3)
	if want := []int32{0, 0, 3, 6, 9, 12, 13, 14}; !slices.Equal(parts, want) {
		t.Errorf("parts %v, want %v", parts, want)
	}
	if want := []int32{0, 1, 2, 3, 6, 7}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	if parts, rows = Cut([]int32{0}, 3); len(parts) != 1 || len(rows) != 1 {
		t.Errorf("nothing is cut to %v, %v", parts, rows)
	}
}

// TestLimit compares the bound in the kernel's text with that of all kernels.
func TestLimit(t *testing.T) {
	if !strings.Contains(*sparseRows.text, "const LIMIT: u32 = 58000u;") || 58000+shaders.Ceil(58000, 32) > shaders.LoopLimit {
		t.Error("rows takes too many turns")
	}
}
