// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

func TestHostParts(t *testing.T) {
	mem := []byte{0, 1, 2, 3, 4, 5, 6, 7}
	h := host.Memory{Bytes: mem, Offset: 2, Size: 5, ReadOnly: true}
	if !h.Valid() || !bytes.Equal(h.Mem(), mem[2:7]) || cap(h.Mem()) != 5 {
		t.Errorf("%+v: % x", h, h.Mem())
	}
	p := h.Part(1, 3)
	if !p.Valid() || !p.ReadOnly || p.Offset != 0 || !bytes.Equal(p.Mem(), mem[3:6]) {
		t.Errorf("a part: %+v", p)
	}
	foreign := host.Memory{Foreign: "a", Offset: 3, Size: 10}.Part(4, 6)
	if !foreign.Valid() || foreign.Offset != 7 || foreign.Size != 6 || foreign.Mem() != nil {
		t.Errorf("a foreign part: %+v", foreign)
	}
	for _, c := range [][2]int{{0, 6}, {5, 1}, {6, 0}, {-1, 1}, {1, -1}, {math.MaxInt, math.MaxInt}, {1, math.MaxInt}} {
		if q := h.Part(c[0], c[1]); q.Valid() || q.Mem() != nil {
			t.Errorf("%v of 5 bytes: %+v", c, q)
		}
	}
	for _, bad := range []host.Memory{
		{Bytes: mem, Offset: -1, Size: 1},
		{Bytes: mem, Size: 9},
		{Bytes: mem, Offset: 8, Size: 1},
		{Bytes: mem, Offset: 9},
		{Size: -1},
		{Bytes: mem, Offset: math.MaxInt, Size: math.MaxInt},
		{Foreign: 1, Offset: -1},
		{Foreign: 1, Size: -1},
	} {
		if bad.Valid() || bad.Mem() != nil || bad.Part(0, 0).Valid() {
			t.Errorf("%+v is valid", bad)
		}
	}
}

func TestWriter(t *testing.T) {
	mem := []byte("abcdefgh")
	write, err := host.Bytes(mem).Part(2, 4).Writer()
	if err != nil {
		t.Fatal(err)
	}
	write([]byte("123"))
	write([]byte("45678")) // there is no room for all of that
	if !bytes.Equal(mem, []byte("ab4567gh")) {
		t.Errorf("%s", mem)
	}
	for want, m := range map[error]host.Memory{
		fault.ErrInvalid:  {Bytes: mem, Size: 9},
		fault.ErrReadOnly: {Bytes: mem, Size: 8, ReadOnly: true},
	} {
		if _, err := m.Writer(); !errors.Is(err, want) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	foreign := host.Memory{Foreign: 3, Size: 1}
	if _, err := foreign.Writer(); !errors.Is(err, fault.ErrUnsupported) && !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("foreign memory: %v", err)
	}
}
