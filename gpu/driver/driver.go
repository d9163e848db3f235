// SPDX-License-Identifier: Apache-2.0

// Package driver is the seam between Sublet and whatever executes its kernels.
//
// A driver knows buffers of bytes, kernels and command lists. It knows nothing of matrices, element types or
// expressions. Everything above hands it integers: buffers, kernels and binding sets are small numbers that the caller
// chooses, so a command list is one flat slice of words that can be printed, recorded, replayed, sent across a language
// border in one call, or executed by a fake.
//
// # Order
//
// Commands take effect in the order in which they were submitted, and within a list in the order in which they stand.
// [Device.Submit] does not wait. [Device.Read], [Device.Map] and [Device.Wait] wait for everything submitted before.
//
// # Safety
//
// Native WebGPU ends the process on many mistakes, so a driver never forwards a command it has not checked. The check is
// the same everywhere and is written once, in [Objects]: every driver embeds it and refuses a list before the first of
// its commands has run.
//
// # Concurrency
//
// All methods of a Device may be called from several goroutines. Who needs an order between them arranges it.
package driver

import (
	"cmp"
	"context"
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// Driver finds adapters of one kind of platform interface.
type Driver struct {
	Name string // for users: "oliver", "browser", "cpu"
	// Adapters lists what there is, best first, and each processor once, by the best of its backends. None is no error.
	Adapters func(ctx context.Context) ([]Adapter, error)
	// OfBackend lists the adapters of one backend, whose name is in lower case. A driver without it has the backends that Adapters shows.
	OfBackend func(ctx context.Context, backend string) ([]Adapter, error)
	// Adopt makes a Device of one that the caller already has: a *wgpu.Device natively, a GPUDevice in the browser.
	// Closing the result does not destroy it. A handle the driver does not know is ErrUnsupported. A registered driver may leave
	// Adopt nil, and adopts nothing then.
	Adopt func(ctx context.Context, handle any) (Device, error)
	// Experimental drivers are known to do some things wrong, which package gpu/driver/expected lists, or were tried little.
	Experimental bool
}

// Adapter is a processor that can be opened, several times if need be.
type Adapter struct {
	Info AdapterInfo
	// Open requests a device with the highest limits and all features of [Features] that the adapter has.
	Open func(ctx context.Context) (Device, error)
}

// Device executes command lists. See the package comment for order, safety and concurrency. Its methods must not panic: package gpu
// calls them under locks, which then stay locked.
type Device interface {
	// Info is the adapter's, with the limits and features that this device was granted.
	Info() AdapterInfo

	// NewBuffer makes a buffer of size bytes, a positive multiple of 4, filled with zeros. All buffers can be bound as
	// storage and copied from and to; a mappable one also by the CPU, where the device has FeatureMappable.
	NewBuffer(id BufferID, size uint64, mappable bool) error
	// ImportBuffer gives an id to a buffer that the caller made: a *wgpu.Buffer natively, a GPUBuffer in the browser, of
	// this very device, usable as storage and for copies, and of a size that is a multiple of 4. It returns that id and the size. A
	// buffer that was imported and is not freed keeps the id that it has, which is returned instead: a platform refuses a buffer in
	// two roles, so it has to be known that it is the same. FreeBuffer only forgets it.
	ImportBuffer(id BufferID, handle any) (known BufferID, size uint64, err error)
	// DestroyBuffer destroys a buffer that the caller made, unmapping it if need be, once the work submitted so far no longer
	// needs it. No id names it any more. One that NewBuffer made is ErrInvalid, and goes on.
	DestroyBuffer(handle any) error
	// FreeBuffer releases a buffer once the work submitted so far no longer needs it.
	FreeBuffer(id BufferID)

	// NewKernel compiles. It may take long and waits only for its own result, so other calls go on meanwhile.
	NewKernel(ctx context.Context, id KernelID, k *Kernel) error
	// FreeKernel forgets a kernel.
	FreeKernel(id KernelID)

	// Submit checks the list, executes nothing if it is wrong, and returns once everything is queued. What the list's
	// host data holds is taken over before Submit returns. Platforms that find mistakes later report them by the next call of
	// Submit, Read, Wait or Map, and may do so until a Submit has: a [Refusal] if the list had a number, and then the call itself
	// did nothing.
	Submit(list *CommandList) error
	// Read copies bytes of a buffer into host memory after everything submitted so far.
	Read(ctx context.Context, t Transfer) error
	// Wait returns when everything submitted so far is done.
	Wait(ctx context.Context) error

	// Map waits for everything submitted so far and lets the CPU at size bytes of a mappable buffer from offset on, not
	// none and multiples of 4 and 8. The slice is the buffer's own memory and is dead after Unmap. While any of it is
	// mapped, a list that names the buffer is ErrMapped, and so is another Map. The memory stays until Unmap even if the device is closed.
	Map(ctx context.Context, id BufferID, offset, size uint64) ([]byte, error)
	Unmap(id BufferID) error

	// Lost is closed when the device is lost; LostReason then says why.
	Lost() <-chan struct{}
	LostReason() string
	// Handle returns the platform's object behind a buffer, or the device's behind 0, or nil where there is none.
	Handle(id BufferID) any
	// Close releases everything. A second call does nothing.
	Close() error
}

// Refusal is the error of a list that the platform found to be wrong, or did not execute to its end, after Submit had returned.
// What the list and those after it were to write holds anything.
//
// Or it is that of a buffer for which there was no memory after all, as NewBuffer had returned: nothing can use that.
type Refusal struct {
	List   uint64   // its number
	Buffer BufferID // that of the buffer instead; it may name none
	Err    error
}

// Error returns the text of the error.
func (r Refusal) Error() string { return cmp.Or[error](r.Err, fault.ErrInvalid).Error() }

// Unwrap returns the error.
func (r Refusal) Unwrap() error { return r.Err }

// BufferID, KernelID and BindingsID are chosen by the caller, who keeps them small: drivers use them as indices. 0 is none.
type (
	BufferID   uint32
	KernelID   uint32
	BindingsID uint32
)

// Access tells what a kernel does with one of its bindings.
type Access uint8

// The kinds of binding. Params is a uniform buffer that the driver fills from [CommandList.Params].
const (
	AccessNone Access = iota
	AccessRead
	AccessReadWrite
	AccessParams
)

// Layout lists the bindings of a kernel, all in group 0, at two bits each: binding i is Access(l>>(2*i))&3.
type Layout uint64

// MaxBindings is how many bindings a Layout can describe.
const MaxBindings = 32

// NewLayout packs the accesses of bindings 0, 1, 2 ...
func NewLayout(access ...Access) Layout {
	var l Layout
	for i, a := range access[:min(len(access), MaxBindings)] {
		l |= Layout(a&3) << (2 * i)
	}
	return l
}

// At returns the access of binding i, AccessNone where there is no such binding.
func (l Layout) At(i int) Access {
	if i < 0 || i >= MaxBindings {
		return AccessNone
	}
	return Access(l>>(2*i)) & 3
}

// lowBits are the low ones of the two bits of each binding. Storage has one of the two, the parameter block both.
const lowBits = 0x5555555555555555

// Storage counts the storage bindings.
func (l Layout) Storage() int { return bits.OnesCount64(uint64(l^l>>1) & lowBits) }

// Written returns which storage bindings a kernel may write: bit i is set for the i-th, counting storage bindings only.
func (l Layout) Written() (bits uint32) {
	n := 0
	for i := range MaxBindings {
		switch l.At(i) {
		case AccessReadWrite:
			bits |= 1 << n
			n++
		case AccessRead:
			n++
		}
	}
	return bits
}

// HasParams reports whether one of the bindings is the parameter block.
func (l Layout) HasParams() bool { return l.params() > 0 }

func (l Layout) params() int { return bits.OnesCount64(uint64(l&(l>>1)) & lowBits) }

// Kernel is a compute shader and, for the library's own, its reference implementation in Go.
type Kernel struct {
	Label  string // for error messages and tools
	Source string // WGSL
	Entry  string // name of the entry point
	Layout Layout
	// Bounded promises that the loops of an invocation stay below MaxLoopsPerInvoking. A driver with such a limit instruments the loops
	// of other kernels: a list that exceeds it is a [Refusal] with fault.ErrLimit.
	Bounded bool
	// Fused says that the source repeats calls of a user's functions for many elements, so that compilation may take longer.
	Fused bool
	// Exact promises that every index written to is in range, and that an index read from is beyond the end by at most three elements of
	// four bytes, whose values do not matter. A driver need not check them.
	Exact bool
	// Native computes the same in Go, with the arguments of Reference. A native driver that computes on the CPU runs it instead of Source,
	// since it is faster. It may use goroutines, which must have ended when it returns. It may be nil.
	Native func(groups [3]uint32, params []byte, storage [][]byte)
	// Reference computes the same in Go, for the oracle: the workgroup counts of the dispatch, the parameter block, and the
	// bytes of each storage binding in the order of the bindings. Nil means that only a device with FeatureWGSL runs it.
	Reference func(groups [3]uint32, params []byte, storage [][]byte)
}

// Host is memory of the CPU: Go bytes, or something of the platform's such as a JavaScript Uint8Array, which only
// that platform's driver can read.
type Host = host.Memory

// HostBytes makes a Host of Go memory.
func HostBytes(b []byte) Host { return host.Bytes(b) }

// Transfer describes a copy from a buffer into host memory: Count rows of Width bytes each, Pitch bytes apart on both
// sides. Bytes of the host between the rows are left alone. A plain copy has Count 1.
type Transfer struct {
	Buffer     BufferID
	Offset     uint64 // of the first row in the buffer; a multiple of 4 is not required
	Host       Host
	HostOffset int
	Width      int
	Pitch      int
	Count      int
}

// Span returns how many bytes lie between the first and the last byte of the transfer, both included.
func (t Transfer) Span() int {
	if t.Count <= 0 || t.Width <= 0 {
		return 0
	}
	return (t.Count-1)*t.Pitch + t.Width
}

// Kind is the kind of processor of an adapter.
type Kind uint8

// The kinds of adapter. Software adapters (llvmpipe, SwiftShader) and the oracle are of kind CPU.
const (
	KindUnknown Kind = iota
	KindDiscrete
	KindIntegrated
	KindVirtual
	KindCPU
)

// String returns the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[KindUnknown]
}

var kindNames = [...]string{"unknown", "discrete", "integrated", "virtual", "cpu"}

// Limits of an adapter, or what an open device was granted. Sizes are in bytes.
type Limits struct {
	MaxBufferSize       uint64    // one buffer
	MaxBindingSize      uint64    // the part of a buffer that one binding shows to a kernel
	MaxStorageBuffers   uint32    // storage bindings of one kernel
	MaxGroups           uint32    // workgroups of one dispatch, per dimension
	MaxInvocations      uint32    // invocations of one workgroup
	MaxGroupSize        [3]uint32 // invocations of one workgroup, per dimension
	MaxWorkgroupMemory  uint32    // var<workgroup> of one kernel
	BindingOffsetAlign  uint32    // a binding's offset is a multiple of it
	MaxLoopsPerInvoking uint32    // turns of all loops of one invocation together; 0 is no limit
	TimestampPeriod     float32   // nanoseconds of a tick of a device's clock, with FeatureTimestamps; 0 where only an open device tells
}

// Features is a set of optional abilities.
type Features uint32

// The features the library makes use of.
const (
	// FeatureMappable: a buffer can be storage for kernels and mapped by the CPU, without copies.
	FeatureMappable Features = 1 << iota
	// FeatureHalf: kernels may compute in f16.
	FeatureHalf
	// FeatureDouble: kernels may compute in f64.
	FeatureDouble
	// FeatureSubgroups: kernels may use subgroup operations.
	FeatureSubgroups
	// FeatureWGSL: the device compiles any WGSL. The oracle does not.
	FeatureWGSL
	// FeatureTimestamps: command lists can ask for the device's clock.
	FeatureTimestamps
)

var featureNames = [...]string{"mappable", "half", "double", "subgroups", "wgsl", "timestamps"}

// Has reports whether all of x is in f.
func (f Features) Has(x Features) bool { return f&x == x }

// Names lists the features in words.
func (f Features) Names() []string {
	names := make([]string, 0, len(featureNames))
	for i, n := range featureNames {
		if f.Has(1 << i) {
			names = append(names, n)
		}
	}
	return names
}

// AdapterInfo describes an adapter or an open device.
type AdapterInfo struct {
	Driver   string // the driver's name, for example "oliver", by which it is chosen
	Name     string // the adapter's own name
	Vendor   string
	Backend  string // "vulkan", "metal", "d3d12", "opengl", "webgpu", "go"
	Kind     Kind
	Limits   Limits
	Features Features
}

func fail(op string, err error, detail ...any) error {
	return fault.Fail(op, err, fault.Text(detail...))
}

// CheckRange wants an offset and a size in multiples of 4 within a buffer of so many bytes. Package gpu calls it and the checks
// below when a command is recorded, [Objects] when the list is submitted. op begins the error's text.
func CheckRange(op string, offset, size, buffer uint64) error {
	if offset%4 != 0 || size%4 != 0 {
		return fail(op, fault.ErrInvalid, "offset ", offset, " or size ", size, " is not a multiple of 4")
	}
	if offset > buffer || size > buffer-offset {
		return fail(op, fault.ErrInvalid, size, " bytes at ", offset, " of a buffer of ", buffer)
	}
	return nil
}

// CheckGroups checks the workgroup counts of a launch.
func (l *Limits) CheckGroups(op string, groups [3]uint32) error {
	if l == nil {
		l = &Limits{}
	}
	for _, g := range groups {
		if g > l.MaxGroups {
			return fail(op, fault.ErrLimit, g, " workgroups, the most per dimension are ", l.MaxGroups)
		}
	}
	return nil
}

// CheckBindings checks the buffer ranges that are bound for a kernel of the layout. sizes are those of the buffers.
//
// WebGPU refuses a buffer that is bound for reading and for writing, whatever the ranges, and ranges that overlap and are
// both writable: https://www.w3.org/TR/webgpu/#programming-model-resource-usages
func (l *Limits) CheckBindings(op string, layout Layout, entries []Binding, sizes []uint64) error {
	if l == nil {
		l = &Limits{}
	}
	switch {
	case len(entries) != layout.Storage() || len(sizes) < len(entries):
		return fail(op, fault.ErrInvalid, len(entries), " entries and ", len(sizes), " sizes for ", layout.Storage(), " storage bindings")
	case layout.params() > 1:
		return fail(op, fault.ErrInvalid, "more than one parameter block")
	case len(entries) > int(l.MaxStorageBuffers):
		return fail(op, fault.ErrLimit, len(entries), " storage bindings")
	}
	var writes [MaxBindings]bool
	binding := -1
	for i, e := range entries {
		for binding++; layout.At(binding) == AccessNone || layout.At(binding) == AccessParams; binding++ {
		}
		writes[i] = layout.At(binding) == AccessReadWrite
		if err := l.checkBinding(op, e, sizes[i]); err != nil {
			return fail(op, err, ", argument ", i)
		}
		for j, f := range entries[:i] {
			overlap := e.Offset < f.Offset+f.Size && f.Offset < e.Offset+e.Size
			if f.Buffer == e.Buffer && (writes[i] != writes[j] || writes[i] && overlap) {
				return fail(op, fault.ErrInvalid, "arguments ", j, " and ", i, " are one buffer, bound for reading and for writing")
			}
		}
	}
	return nil
}

func (l *Limits) checkBinding(op string, e Binding, buffer uint64) error {
	switch {
	case e.Size == 0 || e.Size%4 != 0:
		return fail(op, fault.ErrInvalid, "size ", e.Size, " is not a positive multiple of 4")
	case l.BindingOffsetAlign > 0 && e.Offset%uint64(l.BindingOffsetAlign) != 0:
		return fail(op, fault.ErrInvalid, "offset ", e.Offset, " is not a multiple of ", l.BindingOffsetAlign)
	case e.Offset > buffer || e.Size > buffer-e.Offset:
		return fail(op, fault.ErrInvalid, e.Size, " bytes at ", e.Offset, " of a buffer of ", buffer)
	case e.Size > l.MaxBindingSize:
		return fail(op, fault.ErrLimit, e.Size, " bytes, the largest binding has ", l.MaxBindingSize)
	}
	return nil
}
