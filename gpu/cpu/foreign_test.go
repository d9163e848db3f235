// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"bytes"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// elsewhere is memory that copies itself, as that of a page.
type elsewhere struct{ bytes []byte }

func (e *elsewhere) Load(at int, into []byte) int { return copy(into, e.bytes[min(at, len(e.bytes)):]) }

func (e *elsewhere) Store(at int, from []byte) int {
	return copy(e.bytes[min(at, len(e.bytes)):], from)
}

// TestForeignShortened takes bytes away from memory that is to be written from and read into.
func TestForeignShortened(t *testing.T) {
	dev := open(t, 0)
	must(t, dev.NewBuffer(1, 8, false))
	mem := &elsewhere{[]byte{1, 2, 3, 4, 5, 6, 7, 8}}
	host := driver.Host{Foreign: mem, Size: 8}
	list, read := new(driver.CommandList), driver.Transfer{Buffer: 1, Host: host, Width: 8, Count: 1}
	list.Write(1, 0, host)
	must(t, dev.Submit(list))
	mem.bytes = make([]byte, 8)
	must(t, dev.Read(t.Context(), read))
	if !bytes.Equal(mem.bytes, []byte{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Error(mem.bytes)
	}
	mem.bytes = mem.bytes[:4]
	want(t, dev.Read(t.Context(), read), fault.ErrInvalid)
	want(t, dev.Submit(list), fault.ErrInvalid)
	mem.bytes = nil
	want(t, dev.Submit(list), fault.ErrInvalid)
	must(t, dev.Wait(t.Context()))
}
