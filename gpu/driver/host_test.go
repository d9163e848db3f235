// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

func TestHostParts(t *testing.T) {
	mem := []byte{0, 1, 2, 3, 4, 5, 6, 7}
	h := driver.Host{Bytes: mem, Offset: 2, Size: 5, ReadOnly: true}
	if !h.Valid() || !bytes.Equal(h.Mem(), mem[2:7]) || cap(h.Mem()) != 5 {
		t.Errorf("%+v: % x", h, h.Mem())
	}
	p := h.Part(1, 3)
	if !p.Valid() || !p.ReadOnly || p.Offset != 0 || !bytes.Equal(p.Mem(), mem[3:6]) {
		t.Errorf("a part: %+v", p)
	}
	foreign := driver.Host{Foreign: "a", Offset: 3, Size: 10}.Part(4, 6)
	if !foreign.Valid() || foreign.Offset != 7 || foreign.Size != 6 || foreign.Mem() != nil {
		t.Errorf("a foreign part: %+v", foreign)
	}
	for _, c := range [][2]int{{0, 6}, {5, 1}, {6, 0}, {-1, 1}, {1, -1}, {math.MaxInt, math.MaxInt}, {1, math.MaxInt}} {
		if q := h.Part(c[0], c[1]); q.Valid() || q.Mem() != nil {
			t.Errorf("%v of 5 bytes: %+v", c, q)
		}
	}
	for _, bad := range []driver.Host{
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
