// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"cmp"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pbnjay/memory"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// Elem is the constraint of element types. WGSL has no 8-bit and 16-bit numbers; [Flags] say what kernels see
// instead. It has no 64-bit ones either: pass two words.
type Elem interface {
	float32 | int32 | uint32 | int8 | uint8 | int16 | uint16
}

// Bytes is the element type of structures, which kernels see as words: opaque data by the codes of DLPack.
var Bytes = dtype.Type{Code: 3, Bits: 8, Lanes: 1}

// types are those of elements.
var types = []dtype.Type{dtype.Float32, dtype.Int32, dtype.Uint32, dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16, Bytes}

func typeOf[T Elem]() dtype.Type {
	var z T
	t := dtype.Type{Code: dtype.Uint32.Code, Bits: 8 * uint8(unsafe.Sizeof(z)), Lanes: 1}
	switch any(z).(type) {
	case float32:
		t.Code = dtype.Float32.Code
	case int8, int16, int32:
		t.Code = dtype.Int32.Code
	}
	return t
}

// Any is an array whose element type is known at run time. Its elements are in host memory, the caller's or the library's, and each
// cruncher that uses the array has copies on its devices. Device memory is released when the array is closed or garbage.
type Any struct{ *body }

// body is the state of an array. Crunchers refer to it and not to the array, so that an array which the program drops is collected.
type body struct {
	name   string
	t      dtype.Type
	n      int
	host   gpu.Host
	record int // bytes of a structure of the caller's, 0 if unknown

	mu      sync.Mutex
	flags   Flags
	tracked bool   // only calls change the host's elements, and they increment version
	version uint64 // of the host's elements
	marked  uint64 // the version of the last [Any.MarkDirty]
	release func()
	closed  bool
	users   map[*Cruncher]*residency // told when the array is closed
	behind  atomic.Bool              // one of them has newer elements than the host
}

// Array is an array of elements that kernels of a [Cruncher] read and write under its name.
type Array[T Elem] struct{ *Any }

// any is the array, nil if it is none of Go memory with elements of type T, or of halves as []uint16.
func (a *Array[T]) any() *Any {
	if a == nil || a.none() || a.host.Foreign != nil || a.t.Size() != typeOf[T]().Size() {
		return nil
	}
	return a.Any
}

// inGo returns an array with a copy of foreign memory.
func (a *Any) inGo(op string) (*Any, error) {
	from := a.host.Copier()
	if from == nil {
		return nil, fail(op, gpu.ErrUnsupported, a.name, " is in memory that only drivers know")
	}
	mem := make([]byte, a.host.Size)
	if from.Load(a.host.Offset, mem) < len(mem) {
		return nil, fail(op, gpu.ErrInvalid, a.name, " is in memory that has become shorter, or was detached")
	}
	return &Any{&body{name: a.name, t: a.t, n: a.n, host: gpu.HostBytes(mem)}}, nil
}

// NewArray makes an array of n zeros in the library's memory. It is tracked; see [Any.Track].
func NewArray[T Elem](name string, n int) (*Array[T], error) {
	t := typeOf[T]()
	switch {
	case n < 0 || n > maxBytes/t.Size():
		return nil, fail("NewArray", ErrRange, itoa(n), " elements")
	case uint64(n*t.Size()) > cmp.Or(memory.TotalMemory(), 1<<31): // Go ends a program that asks for more than there is
		return nil, fail("NewArray", gpu.ErrNoMemory, itoa(n), " elements")
	}
	a, err := newAny("NewArray", name, t, gpu.HostBytes(make([]byte, (n*t.Size()+7)/8*8)[:n*t.Size()]))
	if err != nil {
		return nil, err
	}
	a.tracked = true
	return &Array[T]{a}, nil
}

// Wrap makes an array of the caller's own slice, to which results are written. The caller may change the slice between calls, so each
// call that reads it uploads it again, unless [Any.Track] is called.
func Wrap[T Elem](name string, data []T) (*Array[T], error) {
	a, err := newAny("Wrap", name, typeOf[T](), gpu.HostBytes(host.BytesOf(data)))
	if err != nil {
		return nil, err
	}
	return &Array[T]{a}, nil
}

// WrapStructs makes an array of bytes of the caller's structures, with ElementsPerItem set to the size of one. Their size is a multiple of
// 4, otherwise the error is [ErrRange]. Structures that hold pointers, as strings and slices do, are [gpu.ErrInvalid]. Kernels see words,
// or with the flag Struct structs.
func WrapStructs[S any](name string, data []S) (*Any, error) {
	var z S
	size := int(unsafe.Sizeof(z))
	if size == 0 || size%4 != 0 {
		return nil, fail("WrapStructs", ErrRange, "structures of ", itoa(size), " bytes")
	}
	if !plain(reflect.TypeFor[S]()) {
		return nil, fail("WrapStructs", gpu.ErrInvalid, "structures with pointers, which a kernel must not change")
	}
	a, err := newAny("WrapStructs", name, Bytes, gpu.HostBytes(host.BytesOf(data)))
	if err != nil {
		return nil, err
	}
	a.flags.ElementsPerItem, a.record = size, size
	return a, nil
}

// plain reports whether values of a type hold no pointers.
func plain(t reflect.Type) bool {
	switch kind := t.Kind(); kind {
	case reflect.Array:
		return t.Len() == 0 || plain(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !plain(f.Type) {
				return false
			}
		}
		return true
	default:
		return kind >= reflect.Bool && kind <= reflect.Complex128
	}
}

// WrapHost is [Wrap] for other host memory: a mapped file, or in a page a typed array. release, which may be nil, is called
// once when the array is closed.
func WrapHost(name string, t dtype.Type, mem gpu.Host, release func()) (*Any, error) {
	const op = "WrapHost"
	if !slices.Contains(types, t) {
		return nil, fail(op, gpu.ErrInvalid, "unknown element type")
	}
	if !mem.Valid() || mem.Size > maxBytes {
		return nil, fail(op, ErrRange, "memory shorter than it says")
	}
	a, err := newAny(op, name, t, mem.Part(0, mem.Size))
	if err != nil {
		return nil, err
	}
	a.release = release
	return a, nil
}

// maxBytes keeps products of sizes from overflowing, and on 32-bit machines sizes that are rounded up.
const maxBytes = min(1<<56, math.MaxInt-7)

func newAny(op, name string, t dtype.Type, mem gpu.Host) (*Any, error) {
	if !identifier(name) {
		return nil, fail(op, ErrName, fault.Short(name))
	}
	if mem.Size%t.Size() != 0 {
		return nil, fail(op, ErrRange, itoa(mem.Size), " bytes of ", t.String())
	}
	a := &Any{&body{name: name, t: t, n: mem.Size / t.Size(), host: mem, version: 1}}
	a.flags = DefaultFlags()
	if mem.ReadOnly {
		a.flags.ReadOnly = true
		a.flags.lock(a.flags)
	}
	runtime.AddCleanup(a, func(b *body) { go b.leave() }, a.body) // may wait for calls
	return a, nil
}

// identifier reports whether kernels can use the name.
func identifier(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return strings.IndexAny(s, letters) == 0 && strings.Trim(s, letters+"0123456789") == "" &&
		s != "_" && !strings.HasPrefix(s, "__") && len(s) <= 64
}

// Name returns what kernels call the array.
func (a *Any) Name() string {
	if a.none() {
		return ""
	}
	return a.name
}

// Len returns the number of elements.
func (a *Any) Len() int {
	if a.none() {
		return 0
	}
	return a.n
}

// Track promises that [Any.MarkDirty] is called after every change of the host memory that was not made by the array's methods or by
// results of its calls, such as results of another array of the same memory. Elements that the devices have already are then not
// uploaded again. Arrays of [NewArray] are tracked from the start.
func (a *Any) Track() { a.change(func(*Flags) { a.tracked = true }) }

// MarkDirty says that the caller has written to the host memory. If the next call uploads the array, with Read or PartialRead, the
// host's elements replace newer ones on devices. Without it, newer elements of a tracked array stay, and are not uploaded over.
func (a *Any) MarkDirty() {
	a.change(func(f *Flags) {
		a.version++
		a.marked = a.version
		if f.goesUp() {
			a.overtake(a.all(), nil)
		}
	})
}

// Close gives the array's memory back, on all devices, and calls its release function. Later calls do nothing.
func (a *Any) Close() error {
	if a.none() {
		return nil
	}
	var release func()
	a.change(func(*Flags) { release, a.release, a.closed = a.release, nil, true })
	a.leave()
	if release != nil {
		release()
	}
	return nil
}

// none reports whether the array is nil or was not made by this package.
func (a *Any) none() bool { return a == nil || a.body == nil }

// leave releases the device memory.
func (a *body) leave() {
	a.mu.Lock()
	users := a.users
	a.users = nil
	a.behind.Store(false)
	a.mu.Unlock()
	for cr := range users {
		cr.drop(a)
	}
}

// use notes that a cruncher has device memory for the array.
func (a *body) use(cr *Cruncher, r *residency) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fail("Compute", gpu.ErrClosed, "array ", a.name)
	}
	if a.users == nil {
		a.users = map[*Cruncher]*residency{}
	}
	a.users[cr] = r
	return nil
}

func (a *Any) usable(op string) error {
	if a.none() {
		return fail(op, gpu.ErrInvalid, "nil array")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fail(op, gpu.ErrClosed, "array ", a.name)
	}
	return nil
}

// Flags say which elements of an array a call copies and how kernels see them. As in Cekirdekler, "read" means from the host to the
// devices and "write" back. A new array has [DefaultFlags].
type Flags struct {
	Read        bool // the whole array goes to every device before its kernels run
	PartialRead bool // a device gets the elements of its own work items only
	Write       bool // each device's elements come back after its kernels ran
	// WriteAll, with Write, brings the whole array back, from one device: the one whose number is the array's place among the
	// parameters, modulo the number of devices.
	WriteAll bool
	// ReadOnly clears Write and WriteAll and keeps them clear until it is cleared itself. Kernels cannot write the array. In a cruncher
	// that first uses the array with ReadOnly or WriteOnly, its device memory stays like that until [Cruncher.Evict].
	ReadOnly  bool
	WriteOnly bool // clears Read and PartialRead and keeps them so
	// ZeroCopy asks for device memory that the CPU can map, where a device has such: elements are then copied directly into it.
	// It takes effect when a cruncher first uses the array, and has none on calls in blobs.
	ZeroCopy bool
	// AutoFetch makes methods that need elements which are newer on devices fetch them first, as [Cruncher.Fetch] does, from all
	// crunchers that use the array, after waiting for the calls of these. It is [ErrBatch] while one of them has a batch open. Without
	// AutoFetch such methods return [ErrStale].
	AutoFetch bool

	// ElementsPerItem is how many elements belong to each work item: those of item i begin at element i*ElementsPerItem. 0 is 1,
	// or all bytes of a structure of [WrapStructs]. With Struct, 1 stands for all bytes of a struct.
	ElementsPerItem int
	// Halo is the number of elements before and after a device's own elements that it also gets of an array with PartialRead: the
	// neighbours that a stencil reads.
	Halo int

	// Mode is what kernels see of 8-bit and 16-bit elements: Widened, Packed or Atomic. Arrays of 32-bit integers can be Atomic, too.
	Mode kernel.Mode
	// Struct makes an array of bytes an array of the source's struct of this name instead of one of words. WGSL must lay the struct out
	// as it is in host memory.
	Struct string
}

// DefaultFlags returns the flags of a new array: Read and Write, one element per item.
func DefaultFlags() Flags { return Flags{Read: true, Write: true, ElementsPerItem: 1} }

// goesUp reports whether calls upload the array.
func (f Flags) goesUp() bool { return f.Read || f.PartialRead }

// lock clears the flags that ReadOnly and WriteOnly exclude. If both are set, the one that was set before wins.
func (f *Flags) lock(before Flags) {
	if f.ReadOnly && f.WriteOnly {
		f.ReadOnly, f.WriteOnly = before.ReadOnly, before.WriteOnly
	}
	if f.ReadOnly {
		f.Write, f.WriteAll = false, false
	}
	if f.WriteOnly {
		f.Read, f.PartialRead = false, false
	}
}

// Flags returns the flags. Without an array they are zero.
func (a *Any) Flags() (f Flags) {
	a.change(func(now *Flags) { f = *now })
	return f
}

// SetFlags changes the flags. Calls in progress and the results of [Params] keep the former flags. As in Cekirdekler, ReadOnly and
// WriteOnly clear the flags that they exclude, clearing them does not set those again, and one of the two cannot be set before the
// other is cleared.
//
// It is ErrInvalid for negative numbers, an unknown mode, a Struct for elements other than bytes, and for ReadOnly and
// WriteOnly together if neither was set before.
func (a *Any) SetFlags(f Flags) error {
	const op = "SetFlags"
	if a.none() {
		return fail(op, gpu.ErrInvalid, "no array")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case f.ElementsPerItem < 0 || f.Halo < 0:
		return fail(op, gpu.ErrInvalid, "a negative number of elements")
	case f.Mode > kernel.Atomic:
		return fail(op, gpu.ErrInvalid, "unknown mode")
	case f.Struct != "" && a.t != Bytes:
		return fail(op, gpu.ErrInvalid, a.name, " does not hold bytes, which alone can be structs")
	case f.ReadOnly && f.WriteOnly && !a.flags.ReadOnly && !a.flags.WriteOnly:
		return fail(op, gpu.ErrInvalid, "both read-only and write-only")
	}
	if f.ElementsPerItem == 0 {
		f.ElementsPerItem = max(a.record, 1)
	}
	f.lock(a.flags)
	a.flags = f
	return nil
}

// change changes the state that the array's lock guards.
func (a *Any) change(set func(f *Flags)) {
	if !a.none() {
		a.mu.Lock()
		set(&a.flags)
		a.mu.Unlock()
	}
}

// access says how kernels of a cruncher may use an array, fixed at its first use. The zero value allows reads and writes.
type access struct{ readOnly, writeOnly bool }

func (f Flags) access() access { return access{f.ReadOnly, f.WriteOnly} }
