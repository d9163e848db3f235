// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/params"
)

const (
	listMagic   = "\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7"
	tensorMagic = "\x3f\xa1\xb4\x96\xf0\x40\x5e\xdd"
	zero        = "\x00\x00\x00\x00\x00\x00\x00\x00"
	float32Code = "\x02\x20\x01\x00"
	int8Code    = "\x00\x08\x01\x00"
	int32Code   = "\x00\x20\x01\x00"
)

func u64(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
func u32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }

// list is a dictionary up to its first tensor.
func list(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(u64(uint64(len(n))) + n)
	}
	count := u64(uint64(len(names)))
	return listMagic + zero + count + b.String() + count
}

// head is a tensor's header up to its data's size.
func head(code string, shape ...int64) string {
	var dims []byte
	for _, d := range shape {
		dims = binary.LittleEndian.AppendUint64(dims, uint64(d))
	}
	return tensorMagic + zero + u32(1) + u32(0) + u32(uint32(len(shape))) + code + string(dims)
}

// tensor is a whole one.
func tensor(code, data string, shape ...int64) string {
	return head(code, shape...) + u64(uint64(len(data))) + data
}

// annotated is the 85 bytes that CVM writes for {"s": int32 scalar}, field by field.
const annotated = "\xB7\x9C\x04\x05\x4F\x8D\xE5\xF7" + "\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x01\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "s" +
	"\x01\x00\x00\x00\x00\x00\x00\x00" + "\x3F\xA1\xB4\x96\xF0\x40\x5E\xDD" + "\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x01\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00" + "\x20" + "\x01\x00" +
	"\x04\x00\x00\x00\x00\x00\x00\x00" + "\x03\x0A\x11\x18"

// samples are whole dictionaries of every kind.
func samples(t testing.TB) map[string]string {
	t.Helper()
	s := map[string]string{
		"empty":      list(),
		"annotated":  annotated,
		"two":        list("a", "bc") + tensor(float32Code, "12345678", 2, 1) + tensor(int8Code, "abcdef", 1, 2, 3),
		"no numbers": list("x", "y", "z") + tensor(int8Code, "", 0, 3) + tensor(float32Code, "", 3, 0) + tensor(int32Code, "", 0),
		"bool":       list("old", "new") + tensor("\x01\x01\x01\x00", "\x00\x01\x01", 3) + tensor("\x06\x08\x01\x00", "\x01", 1),
		"names":      list("", "n\x00l", "\xff\xfe") + strings.Repeat(tensor(int8Code, "?"), 3),
	}
	files, err := filepath.Glob("testdata/*.params")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s[filepath.Base(f)] = string(b)
	}
	return s
}

// entry is a tensor and its data. The name tensor is taken.
type entry = filetest.Tensor

// only returns the options of a call that may have none.
func only(opts []params.Options) params.Options {
	return append(opts, params.Options{})[0]
}

func readString(s string, opts ...params.Options) ([]entry, error) {
	r, err := params.NewReader(strings.NewReader(s), only(opts))
	if err != nil {
		return nil, err
	}
	return filetest.ReadAll(r)
}

// readStream reads what has no size.
func readStream(s string, opts ...params.Options) ([]entry, error) {
	r, err := params.NewReader(io.MultiReader(strings.NewReader(s)), only(opts))
	if err != nil {
		return nil, err
	}
	return filetest.ReadAll(r)
}

// extent is the size of a dictionary, and what follows it.
type extent struct{ Size, Trailing int64 }

// scan passes over the data of all tensors.
func scan(r io.Reader, opts params.Options) (headers []file.Header, _ extent, err error) {
	p, err := params.NewReader(r, opts)
	for err == nil {
		var h file.Header
		if h, err = p.Next(); err == nil {
			headers = append(headers, h)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, extent{}, err
	}
	i := extent{Size: int64(len(list()))}
	if n := len(headers); n > 0 {
		i.Size = headers[n-1].Offset + headers[n-1].Size
	}
	i.Trailing, err = p.Trailing()
	return headers, i, err
}

func mustRead(t testing.TB, s string, opts ...params.Options) []entry {
	t.Helper()
	all, err := readString(s, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// write makes a dictionary again.
func write(all []entry, opts ...params.Options) (string, error) {
	var b bytes.Buffer
	w, err := params.NewWriter(&b, filetest.Headers(all), only(opts))
	if err != nil {
		return "", err
	}
	for _, e := range all {
		if _, err := w.Write(e.Data); err != nil {
			return "", err
		}
	}
	err = errors.Join(w.Close(), w.Close())
	return b.String(), err
}

// writer makes dictionaries.
func writer(w io.Writer, headers []file.Header) (file.Writer, error) {
	return params.NewWriter(w, headers, params.Options{})
}

// wantError wants a file error of a kind at an offset.
func wantError(t testing.TB, err, kind error, offset int64) {
	t.Helper()
	filetest.WantError(t, "params", err, kind, offset)
}

// sameEntries compares two readings.
func sameEntries(a, b []entry) bool {
	return slices.EqualFunc(a, b, func(x, y entry) bool {
		return x.Name == y.Name && x.Type == y.Type && slices.Equal(x.Shape, y.Shape) && x.Offset == y.Offset &&
			x.Size == y.Size && bytes.Equal(x.Data, y.Data)
	})
}
