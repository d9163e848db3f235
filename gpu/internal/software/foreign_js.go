// SPDX-License-Identifier: Apache-2.0

package software

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/host"
)

// copierOf returns memory that is not Go's as what copies it, or nil.
func copierOf(foreign any) copier {
	if v, ok := foreign.(js.Value); ok && host.Tag(v) == "Uint8Array" {
		return array{v}
	}
	c, _ := foreign.(copier)
	return c
}

// array is a Uint8Array.
type array struct{ js.Value }

// Load implements copier.
func (a array) Load(at int, into []byte) (n int) {
	if at+len(into) <= a.Length() { // one that was detached has none
		n = js.CopyBytesToGo(into, a.Call("subarray", at))
	}
	return n
}

// Store implements copier.
func (a array) Store(at int, from []byte) (n int) {
	if at < a.Length() {
		n = js.CopyBytesToJS(a.Call("subarray", at), from)
	}
	return n
}
