// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// isCSV reports whether a file's name says that it is text with commas.
func isCSV(path string) bool { return strings.EqualFold(filepath.Ext(path), ".csv") }

// errFormat is the error of files that are not of their format.
var errFormat = fault.New("ErrFormat", "malformed file")

// readCSV reads rows of numbers, all of them as long as the first. A first line in which no field is a number has headings.
func readCSV(ctx context.Context, path string, r io.Reader) (*array, error) {
	x := &array{path: path, Header: npy.Header{Type: dtype.Float32}}
	in := csv.NewReader(r)
	in.ReuseRecord, in.TrimLeadingSpace, in.FieldsPerRecord = true, true, -1
	rows, cols := int64(0), 0
	for first := true; ; first = false {
		record, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			x.Shape = []int64{rows, int64(cols)}
			return x, ctx.Err()
		case err != nil:
			return nil, fault.Fail(path, errFormat, err.Error())
		case rows%4096 == 0 && ctx.Err() != nil:
			return nil, ctx.Err()
		case first && headings(record):
			continue
		case rows > 0 && len(record) != cols:
			line, _ := in.FieldPos(0)
			return nil, fault.Fail(path, errFormat, fmt.Sprintf("line %d has %d numbers, the first row has %d", line, len(record), cols))
		}
		rows, cols = rows+1, len(record)
		for k, field := range record {
			v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
			if err != nil && !math.IsInf(v, 0) || err == nil && math.IsInf(float64(float32(v)), 0) && !math.IsInf(v, 0) {
				line, _ := in.FieldPos(k)
				return nil, fault.Fail(path, errFormat, fmt.Sprintf("line %d: %q is no number of float32", line, field))
			}
			x.data = binary.LittleEndian.AppendUint32(x.data, math.Float32bits(float32(v)))
		}
	}
}

func headings(record []string) bool {
	for _, field := range record {
		if _, err := strconv.ParseFloat(strings.TrimSpace(field), 64); err == nil {
			return false
		}
	}
	return len(record) > 0
}

// writeCSV writes rows of numbers.
func writeCSV[T number](w io.Writer, rows, cols int, values []T) error {
	out := bufio.NewWriter(w)
	for i := range rows {
		for j := range cols {
			if j > 0 {
				_ = out.WriteByte(',') // Flush tells
			}
			_, _ = fmt.Fprint(out, values[i*cols+j])
		}
		_ = out.WriteByte('\n')
	}
	return out.Flush()
}
