// SPDX-License-Identifier: Apache-2.0

package ir

// Types makes types and keeps them, so that equal ones are the same.
type Types struct{ made map[typeKey]*Type }

type typeKey struct {
	kind Kind
	elem *Type
	len  int
}

func (s *Types) intern(t Type) *Type {
	k := typeKey{t.Kind, t.Elem, t.Len}
	if old := s.made[k]; old != nil {
		return old
	}
	if s.made == nil {
		s.made = map[typeKey]*Type{}
	}
	made := t // on the heap, which what is found need not be
	s.made[k] = &made
	return &made
}

// Scalar returns Bool, I32, U32 or F32.
func (s *Types) Scalar(k Kind) *Type { return s.intern(Type{Kind: k, Size: 4, Align: 4}) }

// Vector returns a vector of 2 to 4 scalars of a kind.
func (s *Types) Vector(n int, k Kind) *Type {
	align := 16
	if n == 2 {
		align = 8
	}
	return s.intern(Type{Kind: Vector, Elem: s.Scalar(k), Len: n, Size: 4 * n, Align: align, Stride: 4})
}

// Matrix returns a matrix of 2 to 4 columns and rows.
func (s *Types) Matrix(cols, rows int) *Type {
	c := s.Vector(rows, F32)
	return s.intern(Type{Kind: Matrix, Elem: c, Len: cols, Size: cols * c.Align, Align: c.Align, Stride: c.Align})
}

// Atomic returns an atomic of I32 or U32.
func (s *Types) Atomic(k Kind) *Type {
	return s.intern(Type{Kind: Atomic, Elem: s.Scalar(k), Size: 4, Align: 4})
}

// Array returns an array, with n = 0 one without a length.
func (s *Types) Array(elem *Type, n int) *Type {
	stride := (elem.Size + elem.Align - 1) / elem.Align * elem.Align
	return s.intern(Type{Kind: Array, Elem: elem, Len: n, Size: max(n, 1) * stride, Align: elem.Align, Stride: stride})
}
