// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"bufio"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Banner begins every .mtx file, in letters of any case.
const Banner = "%%MatrixMarket"

// ReadMTX reads a matrix of the Matrix Market: coordinates, which come out by rows with duplicates added up, or an array, which is dense;
// of real numbers, integers or patterns, of which all entries are 1; general, symmetric or skew-symmetric, of which both triangles come out.
// Complex and Hermitian matrices are [file.ErrType].
func ReadMTX(r io.Reader) (*Matrix, error) {
	if r == nil {
		return nil, fault.Fail("sparse: ReadMTX", fault.ErrInvalid, "no input")
	}
	s := &scanner{r: bufio.NewReaderSize(stream.Checked{Reader: r}, 1<<16)}
	k, err := s.banner()
	if err != nil {
		return nil, err
	}
	if k.array {
		return s.array(k)
	}
	return s.coordinates(k)
}

// kind is what the first line of a file says.
type kind struct {
	array, integer, pattern bool
	mirrored                float64 // what the other triangle is multiplied by: 0 of a general matrix
}

// scanner cuts a file into words.
type scanner struct {
	r     *bufio.Reader
	line  int
	words []string // of the line that are left
}

func (s *scanner) fail(err error, detail string) error {
	return malformed("mtx", err, "line "+strconv.Itoa(max(s.line, 1))+": "+detail)
}

// maxLine is the longest line, which no number needs.
const maxLine = 1 << 20

// next reads a line. It returns io.EOF after the last one.
func (s *scanner) next() (string, error) {
	var all []byte
	for {
		part, err := s.r.ReadSlice('\n')
		all = append(all, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(all) > maxLine {
				return "", s.fail(file.ErrFormat, "longer than 1048576 bytes")
			}
			continue
		case errors.Is(err, io.EOF) && len(all) == 0:
			return "", io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return "", malformed("mtx", err, "")
		}
		s.line++
		return string(all), nil
	}
}

// word returns the next word outside comments.
func (s *scanner) word() (string, error) {
	for len(s.words) == 0 {
		line, err := s.next()
		if errors.Is(err, io.EOF) {
			return "", s.fail(file.ErrTruncated, "numbers are missing")
		}
		if err != nil {
			return "", err
		}
		if !strings.HasPrefix(line, "%") {
			s.words = strings.Fields(line)
		}
	}
	w := s.words[0]
	s.words = s.words[1:]
	return w, nil
}

// count reads a whole number from least to most.
func (s *scanner) count(what string, least, most int) (int, error) {
	w, err := s.word()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(w)
	switch {
	case err != nil:
		return 0, s.fail(file.ErrFormat, strconv.Quote(cut(w))+" for "+what)
	case n < least:
		return 0, s.fail(file.ErrFormat, w+" for "+what)
	case n > most && most == maxDim:
		return 0, s.fail(file.ErrTooLarge, w+" for "+what+", the most are "+strconv.Itoa(most))
	case n > most:
		return 0, s.fail(file.ErrFormat, w+" for "+what+", the most are "+strconv.Itoa(most))
	}
	return n, nil
}

// number reads a value.
func (s *scanner) number(k kind) (float64, error) {
	w, err := s.word()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.ToLower(w), "d", "e"), 64) // Fortran's 1.0D+3
	switch {
	case errors.Is(err, strconv.ErrRange) && math.IsInf(v, 0):
		return 0, s.fail(file.ErrFormat, cut(w)+" is out of range")
	case err != nil && !errors.Is(err, strconv.ErrRange), k.integer && v != math.Trunc(v):
		return 0, s.fail(file.ErrFormat, strconv.Quote(cut(w))+" for a value")
	}
	return v, nil
}

func cut(w string) string { return w[:min(len(w), 40)] }

// end refuses what follows the last number.
func (s *scanner) end() error {
	for len(s.words) == 0 {
		line, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, "%") {
			s.words = strings.Fields(line)
		}
	}
	return s.fail(file.ErrFormat, strconv.Quote(cut(s.words[0]))+" after the last number")
}

func (s *scanner) banner() (k kind, err error) {
	line, err := s.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return k, err
	}
	words := strings.Fields(strings.ToLower(line))
	if len(words) != 5 || words[0] != strings.ToLower(Banner) || words[1] != "matrix" {
		return k, s.fail(file.ErrFormat, "no line such as "+Banner+" matrix coordinate real general")
	}
	switch words[2] {
	case "coordinate":
	case "array":
		k.array = true
	default:
		return k, s.fail(file.ErrFormat, "format "+strconv.Quote(cut(words[2])))
	}
	switch words[3] {
	case "real", "double":
	case "integer", "unsigned-integer":
		k.integer = true
	case "pattern":
		k.pattern = true
	case "complex":
		return k, s.fail(file.ErrType, "complex numbers")
	default:
		return k, s.fail(file.ErrFormat, "field "+strconv.Quote(cut(words[3])))
	}
	switch words[4] {
	case "general":
	case "symmetric":
		k.mirrored = 1
	case "skew-symmetric":
		k.mirrored = -1
	case "hermitian":
		return k, s.fail(file.ErrType, "Hermitian matrices")
	default:
		return k, s.fail(file.ErrFormat, "symmetry "+strconv.Quote(cut(words[4])))
	}
	if k.array && k.pattern {
		return k, s.fail(file.ErrFormat, "a pattern of all elements")
	}
	return k, nil
}

// size reads the rows and columns.
func (s *scanner) size(k kind) (rows, cols int, err error) {
	if rows, err = s.count("rows", 0, maxDim); err != nil {
		return 0, 0, err
	}
	if cols, err = s.count("columns", 0, maxDim); err != nil {
		return 0, 0, err
	}
	if k.mirrored != 0 && rows != cols {
		return 0, 0, s.fail(file.ErrFormat, "a symmetric matrix that is not square")
	}
	return rows, cols, nil
}

func (s *scanner) coordinates(k kind) (*Matrix, error) {
	rows, cols, err := s.size(k)
	if err != nil {
		return nil, err
	}
	entries, err := s.count("entries", 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	var is, js []int32
	var values []float64
	for range entries {
		i, err := s.count("a row", 1, rows)
		if err != nil {
			return nil, err
		}
		j, err := s.count("a column", 1, cols)
		if err != nil {
			return nil, err
		}
		v := 1.0
		if !k.pattern {
			if v, err = s.number(k); err != nil {
				return nil, err
			}
		}
		is, js, values = append(is, int32(i-1)), append(js, int32(j-1)), append(values, v)
		switch {
		case k.mirrored < 0 && i == j && v != 0:
			return nil, s.fail(file.ErrFormat, "a diagonal element of a skew-symmetric matrix")
		case k.mirrored != 0 && i != j:
			is, js, values = append(is, int32(j-1)), append(js, int32(i-1)), append(values, k.mirrored*v)
		}
		if len(values) > math.MaxInt32-1 {
			return nil, s.fail(file.ErrTooLarge, "more than 2147483647 entries")
		}
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return fromTriplets(rows, cols, is, js, values), nil
}

// array reads the elements column by column, of a symmetric matrix those from the diagonal down, of a skew-symmetric one those below.
func (s *scanner) array(k kind) (*Matrix, error) {
	rows, cols, err := s.size(k)
	if err != nil {
		return nil, err
	}
	if cols > 0 && rows > math.MaxInt32/cols {
		return nil, s.fail(file.ErrTooLarge, strconv.Itoa(rows)+"x"+strconv.Itoa(cols))
	}
	first := func(j int) int {
		switch {
		case k.mirrored == 0:
			return 0
		case k.mirrored > 0:
			return j
		}
		return j + 1
	}
	var list []float64 // as in the file, of which the size is a claim
	for j := range cols {
		for i := first(j); i < rows; i++ {
			v, err := s.number(k)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	m := &Matrix{Rows: rows, Cols: cols, Dense: make([]float64, rows*cols)}
	at := 0
	for j := range cols {
		for i := first(j); i < rows; i++ {
			m.Dense[i*cols+j] = list[at]
			if k.mirrored != 0 && i != j {
				m.Dense[j*cols+i] = k.mirrored * list[at]
			}
			at++
		}
	}
	return m, nil
}

// WriteMTX writes a matrix: its entries as coordinates, or an array of one that is dense, with the digits that tell each number from its
// neighbours in float32 where it is one, and in float64 elsewhere.
func WriteMTX(w io.Writer, m *Matrix) error {
	const op = "WriteMTX"
	if w == nil {
		return fault.Fail("sparse: "+op, fault.ErrInvalid, "no output")
	}
	if err := m.check(op); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	line := []byte(Banner + " matrix coordinate real general\n")
	if m.Dense != nil {
		line = []byte(Banner + " matrix array real general\n")
	}
	put := func(numbers ...int) {
		for _, n := range numbers {
			line = append(strconv.AppendInt(line, int64(n), 10), ' ')
		}
	}
	flush := func() error {
		line[len(line)-1] = '\n'
		_, err := out.Write(line)
		line = line[:0]
		return err
	}
	if put(m.Rows, m.Cols); m.Dense == nil {
		put(len(m.Values))
	}
	err := flush()
	if m.Dense == nil {
		err = errors.Join(err, m.each(func(row, col int, v float64) error {
			put(row+1, col+1)
			line = append(appendNumber(line, v), ' ')
			return flush()
		}))
	}
	for k := range m.Dense { // column by column
		line = append(appendNumber(line, m.Dense[k%m.Rows*m.Cols+k/m.Rows]), ' ')
		if err == nil {
			err = flush()
		}
	}
	return errors.Join(err, out.Flush())
}

func appendNumber(line []byte, v float64) []byte {
	bits := 64
	if float64(float32(v)) == v {
		bits = 32
	}
	return strconv.AppendFloat(line, v, 'g', -1, bits)
}
