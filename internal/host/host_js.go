// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strconv"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/fault"
)

var (
	toString = js.Global().Get("Object").Get("prototype").Get("toString")
	isView   = js.Global().Get("ArrayBuffer").Get("isView")
	bytes    = js.Global().Get("Uint8Array")
)

// Tag returns the name of a value's class, such as "GPUBuffer", also for objects of another realm, for which instanceof fails.
func Tag(v js.Value) string {
	s := toString.Call("call", v).String() // "[object GPUBuffer]"
	const prefix = "[object "
	if len(s) <= len(prefix) {
		return ""
	}
	return s[len(prefix) : len(s)-1]
}

// Buffer returns the ArrayBuffer or SharedArrayBuffer that holds the memory of a typed array, DataView or such a buffer, and where
// the memory begins there. It is fault.ErrInvalid for anything else, and where fewer bytes are there than the memory says: an
// ArrayBuffer that was transferred to a worker has none, one that was resized may have fewer.
func (m Memory) Buffer(op string) (buffer js.Value, at int, err error) {
	v, ok := m.Foreign.(js.Value)
	if !ok || v.Type() != js.TypeObject {
		return v, 0, notMemory(op)
	}
	size, at := v.Get("byteLength"), m.Offset
	if isView.Invoke(v).Bool() {
		at += v.Get("byteOffset").Int()
		v = v.Get("buffer")
	} else if tag := Tag(v); tag != "ArrayBuffer" && tag != "SharedArrayBuffer" {
		return v, 0, notMemory(op)
	}
	if n := size.Int(); !m.Valid() || m.Offset > n || m.Size > n-m.Offset {
		return v, 0, fault.Fail(op, fault.ErrInvalid, "host memory has ", strconv.Itoa(n), " bytes where ", strconv.Itoa(m.Size), " from ",
			strconv.Itoa(m.Offset), " on are wanted; an ArrayBuffer that was transferred has none, one that was resized may have fewer")
	}
	return v, at, nil
}

func notMemory(op string) error {
	return fault.Fail(op, fault.ErrInvalid, "host memory is no typed array, DataView or ArrayBuffer")
}

func (m Memory) foreignWriter(op string) (write func(src []byte), err error) {
	defer rescue(op, &err)
	v, at, err := m.Buffer(op)
	if err != nil {
		return nil, err
	}
	view := bytes.New(v, at, m.Size)
	return func(src []byte) { js.CopyBytesToJS(view, src) }, nil
}

func (m Memory) foreignCopier() Copier {
	if v, ok := m.Foreign.(js.Value); ok {
		return page{v}
	}
	return nil
}

// page is memory of the page.
type page struct{ object js.Value }

// view returns a Uint8Array that begins at a place of the memory and has at least size bytes. Callers copy no more than that.
func (p page) view(at, size int) (view js.Value, err error) {
	defer rescue("", &err)
	// Not Length: in Node 20 that was seen to be what it had been before the buffer was detached, once the engine had optimised it.
	if at == 0 && p.object.InstanceOf(bytes) && p.object.Get("byteLength").Int() >= max(size, 1) {
		return p.object, nil // to make another view takes several calls of JavaScript
	}
	v, at, err := Memory{Foreign: p.object, Offset: at, Size: size}.Buffer("")
	if err != nil {
		return v, err
	}
	return bytes.New(v, at, size), nil
}

func (p page) Load(at int, into []byte) int {
	v, err := p.view(at, len(into))
	if err != nil {
		return 0
	}
	return js.CopyBytesToGo(into, v)
}

func (p page) Store(at int, from []byte) int {
	v, err := p.view(at, len(from))
	if err != nil {
		return 0
	}
	return js.CopyBytesToJS(v, from)
}

// spaces numbers ArrayBuffers as long as they are there.
var spaces struct {
	numbers js.Value // a WeakMap
	last    int
}

func (m Memory) foreignPlace() (space uint64, at int, ok bool) {
	var err error
	defer rescue("", &err) // ok is still false then
	v, at, err := m.Buffer("")
	if err != nil {
		return 0, 0, false
	}
	if spaces.last == 0 {
		spaces.numbers = js.Global().Get("WeakMap").New()
	}
	number := spaces.numbers.Call("get", v)
	if number.IsUndefined() {
		spaces.last++
		number = js.ValueOf(spaces.last)
		spaces.numbers.Call("set", v, number)
	}
	return uint64(number.Int()), at, true
}

// rescue turns what JavaScript throws into an error.
func rescue(op string, err *error) {
	if recover() != nil {
		*err = fault.Fail(op, fault.ErrInvalid, "JavaScript refuses the memory")
	}
}
