// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/sparse"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// npyMagic begins every .npy file.
const npyMagic = "\x93NUMPY"

// operand reads a file of the task: a .csv, .mtx or .npz by its name, and all but the last from standard input, where the first bytes tell.
func (t *task) operand(ctx context.Context, path string) (*array, error) {
	check := func(x *array) error { return t.check(ctx, x) }
	isCSV, isMTX, isNPZ := hasSuffix(path, ".csv"), hasSuffix(path, ".mtx"), hasSuffix(path, ".npz")
	if path != standard && !isCSV && !isMTX && !isNPZ {
		return t.readArray(ctx, path, t.cast, check)
	}
	in := &input{File: t.in, ctx: ctx}
	name := "standard input"
	if path != standard {
		var err error
		if in, err = openInput(ctx, path); err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }() // it was only read
		name = path
	} else if t.in == nil {
		return nil, cli.Usagef("there is no standard input")
	}
	size, err := in.size()
	if err != nil {
		return nil, err
	}
	if isNPZ {
		return t.readNPZ(ctx, name, in, size)
	}
	r := bufio.NewReaderSize(in, 1<<16)
	if isMTX {
		return t.readMTX(ctx, name, r, size)
	}
	if !isCSV {
		first, err := r.Peek(len(sparse.Banner))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, inFile(name, err)
		}
		if strings.EqualFold(string(first), sparse.Banner) {
			return t.readMTX(ctx, name, r, size)
		}
		if bytes.HasPrefix(first, []byte(npyMagic[:1])) || len(first) == 0 {
			return t.arrayOf(ctx, name, r, size, t.cast, check)
		}
	}
	return t.readCSV(ctx, name, r, size)
}

// readCSV reads rows of numbers, one a line.
func (t *task) readCSV(ctx context.Context, path string, r *bufio.Reader, size int64) (*array, error) {
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	t.progress.enter("reading", size)
	if mark, _ := r.Peek(3); string(mark) == "\ufeff" { // what cannot be read is an error below
		_, _ = r.Discard(3)
	}
	lines := csv.NewReader(&inLines{r: r})
	lines.FieldsPerRecord, lines.ReuseRecord, lines.TrimLeadingSpace = -1, true, true
	x := &array{path: path, Header: npy.Header{Type: dtype.Float32}}
	rows, cols, done := int64(0), -1, int64(0)
	for first := true; ; first = false {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, fault.Fail(path, file.ErrFormat, fmt.Sprintf("line %d, column %d: %v", wrong.Line, wrong.Column, wrong.Err))
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, inFile(path, err)
		}
		line, _ := lines.FieldPos(0)
		if cols >= 0 && len(record) != cols {
			return nil, fault.Fail(path, file.ErrFormat, fmt.Sprintf("line %d: %d numbers, and %d in those before", line, len(record), cols))
		}
		if cols = len(record); first && t.header {
			continue
		}
		if err := x.appendCSV(lines, record, first); err != nil {
			return nil, err
		}
		rows++
		t.progress.add(lines.InputOffset() - done)
		done = lines.InputOffset()
	}
	if cols < 0 {
		return nil, fault.Fail(path, file.ErrFormat, "no numbers")
	}
	x.Shape = []int64{rows, int64(cols)}
	return x, t.check(ctx, x)
}

// mostOfLine is how many bytes a line of a .csv may have.
const mostOfLine = 64 << 20

// inLines is a reader whose lines have an end: who reads whole lines would take memory for what has none.
type inLines struct {
	r    io.Reader
	line int // bytes since the last end of a line
}

func (l *inLines) Read(p []byte) (n int, err error) {
	n, err = l.r.Read(p)
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		l.line = n - i - 1
	} else {
		l.line += n
	}
	if l.line > mostOfLine {
		return 0, fmt.Errorf("%w: a line of more than 64 MiB", file.ErrFormat)
	}
	return n, err
}

// appendCSV adds the numbers of a line.
func (x *array) appendCSV(lines *csv.Reader, record []string, first bool) error {
	for i, text := range record {
		line, column := lines.FieldPos(i)
		place := fmt.Sprintf("line %d, column %d: ", line, column)
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		f := float32(v)
		switch {
		case errors.Is(err, strconv.ErrRange) || math.IsInf(float64(f), 0) && !math.IsInf(v, 0):
			return fault.Fail(x.path, errOverflow, fmt.Sprintf("%s%.40s does not fit float32", place, text))
		case err != nil && first:
			return fault.Fail(x.path, file.ErrFormat, fmt.Sprintf("%s%.40q is no number; --header skips a first line of names", place, text))
		case err != nil:
			return fault.Fail(x.path, file.ErrFormat, fmt.Sprintf("%s%.40q is no number", place, text))
		}
		if change := math.Abs(float64(f)-v) / math.Abs(v); change > x.change { // not so for NaN
			x.change = change
		}
		x.data = binary.LittleEndian.AppendUint32(x.data, math.Float32bits(f))
	}
	return nil
}
