// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Type is the type of an array's elements, in NumPy's words: a kind and a size in bytes.
type Type struct {
	Kind byte // 'f' float, 'i' int, 'u' uint, 'b' bool
	Size int
}

// The types with an element type of package matrix of their own.
var (
	Float32 = Type{'f', 4}
	Float16 = Type{'f', 2}
	Int32   = Type{'i', 4}
	Uint32  = Type{'u', 4}
)

var kindNames = map[byte]string{'f': "float", 'i': "int", 'u': "uint", 'b': "bool"}

// String returns NumPy's long name of the type, for example "float32".
func (t Type) String() string {
	if t.Kind == 'b' {
		return "bool"
	}
	return kindNames[t.Kind] + strconv.Itoa(8*t.Size)
}

func (t Type) valid() bool {
	switch t.Kind {
	case 'b':
		return t.Size == 1
	case 'i', 'u':
		return t.Size == 1 || t.Size == 2 || t.Size == 4 || t.Size == 8
	case 'f':
		return t.Size == 2 || t.Size == 4 || t.Size == 8
	}
	return false
}

// Header says what an array holds and how.
type Header struct {
	Type      Type
	BigEndian bool
	Fortran   bool // the first index varies fastest: column by column
	Shape     []int
}

// Len returns how many elements there are.
func (h Header) Len() int {
	n := 1
	for _, d := range h.Shape {
		n *= d
	}
	return n
}

// size returns the bytes of the elements, and whether they fit an int64 at all. A shape without elements fits whatever
// its other dimensions are.
func (h Header) size() (int64, bool) {
	n := uint64(h.Type.Size)
	if slices.Contains(h.Shape, 0) {
		return 0, true
	}
	for _, d := range h.Shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		n = lo
	}
	return int64(n), n/uint64(h.Type.Size) <= math.MaxInt
}

func (h Header) check() error {
	if !h.Type.valid() {
		return wrongType("%c%d", h.Type.Kind, h.Type.Size)
	}
	for _, d := range h.Shape {
		if d < 0 {
			return malformed("negative dimension %d", d)
		}
	}
	if _, ok := h.size(); !ok {
		return malformed("shape %v is too large", h.Shape)
	}
	return nil
}

const (
	magic = "\x93NUMPY"
	// maxHeader is far beyond any header of an array of numbers. NumPy itself refuses more than 10,000 bytes.
	maxHeader = 64 << 10
	// align is the multiple of bytes at which NumPy starts the elements.
	align = 64
)

// readHeader returns the header and how many bytes it took.
func readHeader(r io.Reader) (Header, int64, error) {
	var pre [12]byte
	if err := readFull(r, pre[:8]); err != nil {
		return Header{}, 0, err
	}
	if string(pre[:6]) != magic {
		return Header{}, 0, malformed("it does not start with \\x93NUMPY")
	}
	var at, length int
	switch pre[6] {
	case 1:
		at = 10
	case 2, 3:
		at = 12
	default:
		return Header{}, 0, malformed("unknown version %d.%d", pre[6], pre[7])
	}
	if err := readFull(r, pre[8:at]); err != nil {
		return Header{}, 0, err
	}
	if at == 10 {
		length = int(binary.LittleEndian.Uint16(pre[8:]))
	} else if n := binary.LittleEndian.Uint32(pre[8:]); n > maxHeader {
		return Header{}, 0, malformed("header of %d bytes", n)
	} else {
		length = int(n)
	}
	text := make([]byte, length)
	if err := readFull(r, text); err != nil {
		return Header{}, 0, err
	}
	h, err := parseHeader(string(text))
	return h, int64(at + length), err
}

// text returns the bytes of a file before the elements.
func (h Header) text() []byte {
	var b strings.Builder
	order := map[bool]string{false: "<", true: ">"}[h.BigEndian]
	if h.Type.Size == 1 {
		order = "|"
	}
	fortran := map[bool]string{false: "False", true: "True"}[h.Fortran]
	fmt.Fprintf(&b, "{'descr': '%s%c%d', 'fortran_order': %s, 'shape': (", order, h.Type.Kind, h.Type.Size, fortran)
	for i, d := range h.Shape {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(d))
	}
	if len(h.Shape) == 1 {
		b.WriteString(",")
	}
	b.WriteString("), }")
	const prefix = len(magic) + 4
	for (prefix+b.Len()+1)%align != 0 {
		b.WriteByte(' ')
	}
	b.WriteByte('\n')
	out := append([]byte(magic), 1, 0, byte(b.Len()), byte(b.Len()>>8))
	return append(out, b.String()...)
}
