// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

func foreignView(h driver.Host, at, n int) js.Value {
	v := h.Foreign.(js.Value)
	return js.Global().Get("Uint8Array").New(v.Get("buffer"), v.Get("byteOffset").Int()+h.Offset+at, n)
}

func loadForeign(h driver.Host) []byte {
	b := make([]byte, h.Size)
	js.CopyBytesToGo(b, foreignView(h, 0, h.Size))
	return b
}

func storeForeign(h driver.Host, at int, b []byte) error {
	js.CopyBytesToJS(foreignView(h, at, len(b)), b)
	return nil
}
