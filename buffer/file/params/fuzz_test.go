// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/params"
)

// FuzzRead reads anything. What is a dictionary is saved again as the same one.
func FuzzRead(f *testing.F) {
	for _, s := range samples(f) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { try(t, string(b)) })
}

// FuzzWrite writes tensors of any type and shape. What is written is read as it was, what is not leaves nothing.
func FuzzWrite(f *testing.F) {
	f.Add([]byte("\x01a\x02\x20\x01\x02\x03\x02\x01b\x00\x08\x01\x00"), uint16(3), false)
	f.Add([]byte("\x01a\x02\x20\x01\x01\x03\x01a\x06\x08\x01\x01\x00"), uint16(1), true)
	f.Fuzz(func(t *testing.T, spec []byte, part uint16, lastWins bool) {
		all := invent(spec)
		opts := params.Options{LastWins: lastWins}
		var data []byte
		for _, e := range all {
			data = append(data, e.Data...)
		}
		var out bytes.Buffer
		w, err := params.NewWriter(&out, filetest.Headers(all), opts)
		if err != nil {
			if _, ok := errors.AsType[*file.Error](err); !ok || out.Len() > 0 {
				t.Fatalf("%v after %d bytes", err, out.Len())
			}
			return
		}
		for len(data) > 0 {
			n := min(len(data), int(part)+1)
			if _, err := w.Write(data[:n]); err != nil {
				t.Fatal(err)
			}
			data = data[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := readString(out.String(), params.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		filetest.Same(t, got, survivors(all), out.Bytes())
	})
}

// invent makes small tensors of bytes: a name's length and bytes, a type, dimensions.
func invent(spec []byte) []entry {
	next := func() (c byte) {
		if len(spec) > 0 {
			c, spec = spec[0], spec[1:]
		}
		return c
	}
	var all []entry
	for len(spec) > 0 && len(all) < 50 {
		n := min(int(next()%8), len(spec))
		h := file.Header{Name: string(spec[:n])}
		spec = spec[n:]
		h.Type = dtype.Type{Code: next(), Bits: next(), Lanes: uint16(next())}
		for range next() % 40 {
			h.Shape = append(h.Shape, int64(int8(next()))%6)
		}
		if _, size, ok := h.Type.Bytes(h.Shape); ok && size < 1<<16 {
			h.Size = size
		} else {
			h.Shape = []int64{-1}
		}
		e := entry{Header: h, Data: make([]byte, h.Size)}
		for i := range e.Data {
			e.Data[i] = byte(i + len(all))
		}
		all = append(all, e)
	}
	return all
}

// survivors are the last tensors of their names.
func survivors(all []entry) []entry {
	last := map[string]int{}
	for i, e := range all {
		last[e.Name] = i
	}
	var s []entry
	for i, e := range all {
		if last[e.Name] == i {
			s = append(s, e)
		}
	}
	return s
}
