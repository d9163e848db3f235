// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/internal/host"
)

// TestPlaceOfPages tells views of one ArrayBuffer from those of others.
func TestPlaceOfPages(t *testing.T) {
	make := func(class string, args ...any) js.Value { return js.Global().Get(class).New(args...) }
	buf := make("ArrayBuffer", 64)
	place := func(v js.Value, offset, size int) (space uint64, at int, ok bool) {
		return host.Memory{Foreign: v, Offset: offset, Size: size}.Place()
	}
	space, at, ok := place(buf, 8, 8)
	if space == 0 || at != 8 || !ok {
		t.Errorf("the buffer is at %d of %d, %v", at, space, ok)
	}
	if s, at, ok := place(make("Float32Array", buf, 16, 4), 4, 8); s != space || at != 20 || !ok {
		t.Errorf("an array is at %d of %d, %v", at, s, ok)
	}
	if s, at, ok := place(make("DataView", buf, 3), 0, 8); s != space || at != 3 || !ok {
		t.Errorf("a DataView is at %d of %d, %v", at, s, ok)
	}
	if s, _, ok := place(make("Uint8Array", 64), 0, 8); s == space || !ok {
		t.Errorf("another buffer is %d, %v", s, ok)
	}
	for _, v := range []js.Value{js.Undefined(), js.ValueOf(3), make("Object"), make("Uint8Array", 4)} {
		if _, _, ok := place(v, 0, 8); ok {
			t.Errorf("%v has a place", v)
		}
	}
}
