// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Region is a set of rows of bytes: Count rows of Width bytes, Pitch bytes apart, the first at Offset.
type Region = memory.Region

// Range returns the region of size bytes from offset on.
func Range(offset, size int) Region { return memory.Between(offset, offset+size) }

// Mode says who owns the memory of a buffer.
type Mode uint8

// The modes.
const (
	Owned Mode = iota
	External
	Mapped
)

// String returns the mode in lower case.
func (m Mode) String() string { return [...]string{"owned", "external", "mapped"}[m%3] }

// Flags say how a matrix uses the memory that it is made from or set to. 0 means that it is host memory, of which the matrix keeps a copy.
type Flags uint8

// The flags, which exclude each other.
const (
	DontOwnBuffer    Flags = 1 << iota // the matrix uses the memory itself
	SetValueOnDevice                   // the memory is the device's, and is copied
)

// Location says where the current bytes of a buffer are.
type Location uint8

// The locations. None is the state of an owned buffer before the first write: it reads as zeros.
const (
	None   Location = 0
	Host   Location = 1
	Device Location = 2
	Both            = Host | Device
)

// String returns the location in lower case.
func (l Location) String() string { return [...]string{"none", "host", "device", "both"}[l&3] }

// The errors of this package, beside those of package gpu.
var (
	ErrNil   = fault.New("ErrNil", "nil memory")
	ErrShort = fault.New("ErrShort", "memory too short")
	ErrSize  = fault.New("ErrSize", "impossible size")
	// Errors of packages matrix and ndarray about layouts, which are here so that both return the same ones.
	ErrShape  = fault.New("ErrShape", "dimension mismatch")
	ErrIndex  = fault.New("ErrIndex", "index out of range")
	ErrStride = fault.New("ErrStride", "impossible stride or offset")
	// ErrUnsynced: a call that must not wait needs results on the host, or has to copy them through it. Call Sync before. This concerns
	// copies of memory larger than the device's largest buffer and, in a page, results that kernels wrote to overlapping memory on
	// another device, or at a distance that is no multiple of 4 bytes.
	ErrUnsynced = memory.ErrUnsynced
	// ErrIncomplete: a result larger than the device's budget was being written to wrapped memory when its computation failed.
	// Uses of the memory are this error until it is replaced as a whole, or its owner says Touch.
	ErrIncomplete = fault.New("ErrIncomplete", "a result was written in part")
)

func fail(op string, err error, detail ...any) error {
	return fault.Fail("buffer: "+op, err, fault.Text(detail...))
}

// named returns an error of a lower package, or nil, under the name of this package's call.
func named(op string, err error) error { return fault.In("buffer: ", op, err) }

// Buffer is memory that kernels can use. Make one with [New], [FromHost], [Wrap], [WrapDevice] or [Map], and Close it
// when done.
type Buffer struct {
	dev      *gpu.Device
	mode     Mode
	windowed bool // host memory larger than what the device can hold as a whole
	size     int

	mu       sync.Mutex
	shares   int
	readers  int             // functions of Access that read
	changing bool            // a function of Access has the memory to itself
	spoiled  error           // why a region holds a part of a result only, if one does
	spoil    *Region         // that region
	host     gpu.Host        // the host side of external and paired memory
	back     *memory.Backing // where its newest bytes are; nil before its first use
	cleanup  *cleanup.Cleanup
	release  func()
	imported uint32 // what buffers of one imported GPU buffer have in common
}

// New makes an owned buffer of zeros. Memory is taken when it is first used.
func New(dev *gpu.Device, size int) (*Buffer, error) {
	const op = "New"
	if err := check(op, dev, size); err != nil {
		return nil, err
	}
	if err := fits(op, dev, size); err != nil {
		return nil, err
	}
	return &Buffer{dev: dev, size: size, shares: 1}, nil
}

func check(op string, dev *gpu.Device, size int) error {
	if dev == nil {
		return fail(op, gpu.ErrInvalid, "nil device")
	}
	if err := dev.Usable(); err != nil {
		return named(op, err)
	}
	if size < 0 {
		return fail(op, ErrSize, size, " bytes")
	}
	return nil
}

// fits checks that the device can hold as much in one piece.
func fits(op string, dev *gpu.Device, size int) error {
	if largest := dev.Info().Limits.MaxBufferSize; uint64(size) > largest {
		return fail(op, gpu.ErrLimit, size, " bytes, the largest buffer has ", largest)
	}
	return nil
}

// FromHost makes an owned buffer with a copy of the host memory.
func FromHost(dev *gpu.Device, src gpu.Host) (*Buffer, error) {
	const op = "FromHost"
	b, err := New(dev, src.Size)
	if err != nil {
		return nil, named(op, err)
	}
	if err := b.Write(0, src); err != nil {
		_ = b.Close()
		return nil, named(op, err)
	}
	return b, nil
}

// Wrap makes an external buffer of host memory. The memory stays the caller's: kernels read it when they need it, and
// results reach it at Sync. Calls that would write memory that is ReadOnly fail at once with ErrReadOnly. Go memory
// may be larger than the device can hold, and is then used in ranges; see [Buffer.Use]. release may be nil.
func Wrap(dev *gpu.Device, mem gpu.Host, release func()) (*Buffer, error) {
	b := &Buffer{}
	if err := b.InitWrap(dev, mem, release); err != nil {
		return nil, err
	}
	return b, nil
}

// InitWrap is [Wrap] for a Buffer inside another object, which saves an allocation. b is the zero value.
func (b *Buffer) InitWrap(dev *gpu.Device, mem gpu.Host, release func()) error {
	const op = "Wrap"
	if b == nil || b.dev != nil {
		return fail(op, gpu.ErrInvalid, "no buffer, or one that is in use")
	}
	if err := check(op, dev, mem.Size); err != nil {
		return err
	}
	if !mem.Valid() {
		return fail(op, ErrShort)
	}
	mem = mem.Part(0, mem.Size)
	if mem.Foreign != nil {
		if err := fits(op, dev, mem.Size); err != nil {
			return err
		}
	}
	b.dev, b.size, b.shares = dev, mem.Size, 1
	b.windowed = mem.Foreign == nil && uint64(mem.Size) > memory.Largest(dev)
	b.mode, b.host, b.release = External, mem, release
	return nil
}

// WrapDevice makes an external buffer of a GPU buffer of this very device: a *wgpu.Buffer natively, a GPUBuffer in a
// page. Kernels use it in place. release may be nil.
func WrapDevice(dev *gpu.Device, handle any, release func()) (*Buffer, error) {
	const op = "WrapDevice"
	if dev == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil device")
	}
	if handle == nil {
		return nil, fail(op, ErrNil)
	}
	mem, err := dev.ImportBuffer(handle)
	if err != nil {
		return nil, named(op, err)
	}
	b := &Buffer{dev: dev, mode: External, size: int(mem.Size()), shares: 1, release: release, imported: mem.Identity()}
	b.hold(mem, false)
	return b, nil
}

// hold makes device memory that has the current bytes the memory of a new buffer.
func (b *Buffer) hold(mem *gpu.Buffer, mappable bool) {
	m, _ := b.backing().Lock(context.Background()) // it is nobody else's
	m.Hold(b.back, mem, mappable)
	m.Unlock()
}

// Map makes memory that the CPU and kernels both use: one memory on a device with FeatureMappable, else a host and a device copy.
func Map(dev *gpu.Device, size int) (*Buffer, error) {
	const op = "Map"
	b, err := New(dev, size)
	if err != nil {
		return nil, named(op, err)
	}
	b.mode = Mapped
	if !dev.Info().Features.Has(driver.FeatureMappable) {
		b.host = gpu.HostBytes(make([]byte, size))
		return b, nil
	}
	mem, err := dev.NewMappable(uint64(size))
	if err != nil {
		return nil, named(op, err)
	}
	b.hold(mem, true)
	return b, nil
}

// backing returns the record of the buffer in its memory, which it makes at first use. The buffer is locked and not closed.
func (b *Buffer) backing() *memory.Backing {
	if b.back == nil {
		b.back = memory.New(b.dev, b.size, b.host, b.mode == External, b.windowed)
		b.cleanup = forgotten(b.back)
	}
	return b.back
}

// forgotten returns the cleanup that releases the memory of a buffer which is garbage and was not closed.
func forgotten(k *memory.Backing) *cleanup.Cleanup {
	return cleanup.New(func() {
		go func() { // it may wait for calls
			if m, err := k.Lock(context.Background()); err == nil {
				_ = m.Close(k)
				m.Unlock()
			}
		}()
	})
}

// begin locks the buffer's memory for a call, which unlocks it. It waits for other calls until the context ends, and not for functions of
// Access.
func (b *Buffer) begin(ctx context.Context, op string, in Intent) (*memory.Memory, error) {
	k, err := b.ready(op, in)
	if err == nil {
		err = fault.Ended(ctx, "buffer: ", op)
	}
	if err != nil {
		return nil, err
	}
	m, err := k.Lock(ctx)
	if err != nil {
		return nil, fail(op, err)
	}
	if _, err = b.ready(op, in); err != nil {
		m.Unlock()
		return nil, err
	}
	return m, nil
}

// ready returns the buffer's record for a call, or why the call cannot be made.
func (b *Buffer) ready(op string, in Intent) (*memory.Backing, error) {
	if b == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil buffer")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.shares == 0:
		return nil, fail(op, gpu.ErrClosed, "the buffer")
	case in != Reads && b.host.ReadOnly:
		return nil, fail(op, gpu.ErrReadOnly, "the wrapped memory")
	case streams && b.spoiled != nil && op != "Touch" && op != "Evict":
		return nil, fail(op, ErrIncomplete, b.spoiled.Error())
	case b.changing || in != Reads && b.readers > 0:
		return nil, fail(op, gpu.ErrMapped, "a function of Access runs")
	}
	return b.backing(), nil
}

// beginIn is begin for a region, which it returns as [Buffer.place] does.
func (b *Buffer) beginIn(ctx context.Context, op string, in Intent, r Region) (m *memory.Memory, w Region, err error) {
	if m, err = b.begin(ctx, op, in); err != nil {
		return nil, w, err
	}
	if w, err = b.place(op, r); err != nil {
		m.Unlock()
	}
	return m, w, err
}

// place returns a region of the buffer with the offsets of the memory that the buffer is a part of. It fails for a region beyond the buffer.
func (b *Buffer) place(op string, r Region) (Region, error) {
	switch {
	case r.Offset < 0 || r.Width < 0 || r.Count < 0 || r.Offset > b.size,
		r.Count > 1 && (r.Pitch < r.Width || r.Pitch > 0 && r.Count-1 > b.size/r.Pitch),
		r.Span() < 0 || r.Span() > b.size-r.Offset:
		return r, fail(op, gpu.ErrInvalid, r.Span(), " bytes at ", r.Offset, " of a buffer of ", b.size)
	}
	r.Offset += b.back.At
	return r.Joined(), nil
}

// orClosed returns the buffer, or a closed one if it is nil.
func (b *Buffer) orClosed() *Buffer {
	if b == nil {
		return &Buffer{}
	}
	return b
}

// Device returns the device the buffer belongs to.
func (b *Buffer) Device() *gpu.Device { return b.orClosed().dev }

// Size returns the size in bytes.
func (b *Buffer) Size() int { return b.orClosed().size }

// Mode returns who owns the memory. That of a nil buffer is Owned.
func (b *Buffer) Mode() Mode { return b.orClosed().mode }

// hostSide returns the host's side of the memory.
func (b *Buffer) hostSide() gpu.Host {
	b = b.orClosed()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.host
}

// HasHost reports whether the memory has a host side: a wrapped slice or typed array, or the host's half of a pair.
func (b *Buffer) HasHost() bool { return hasHost(b.hostSide()) }

func hasHost(h gpu.Host) bool { return h.Bytes != nil || h.Foreign != nil }

// ReadOnly reports whether the memory is the caller's and must not be written.
func (b *Buffer) ReadOnly() bool { return b.hostSide().ReadOnly }

// InPlace reports whether the CPU maps the device's memory, so that there is no copy of it on the host.
func (b *Buffer) InPlace() bool { return b.orClosed().inPlace(b.hostSide()) }

func (b *Buffer) inPlace(h gpu.Host) bool { return b.mode == Mapped && !hasHost(h) }

// Accessed reports whether a function of [Buffer.Access] runs, which other calls may not disturb.
func (b *Buffer) Accessed() bool {
	b = b.orClosed()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accessed()
}

// Location returns where the current bytes are. Memory that the device holds in windows is on the Device while a window has
// results that the host lacks.
func (b *Buffer) Location() Location {
	if b == nil {
		return None
	}
	b.mu.Lock()
	if b.shares == 0 {
		b.mu.Unlock()
		return None
	}
	k := b.backing()
	b.mu.Unlock()
	switch written, lacks, current := k.Look(); {
	case !k.Hosted && !written:
		return None
	case !k.Hosted, lacks:
		return Device
	case current:
		return Both
	}
	return Host
}

// Share adds a share: one more Close is needed. It returns b.
func (b *Buffer) Share() *Buffer {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	b.shares++
	b.mu.Unlock()
	return b
}

// Shares returns how many shares there are.
func (b *Buffer) Shares() int {
	b = b.orClosed()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shares
}

// SetRelease gives external memory the function that is called when the last share is closed.
func (b *Buffer) SetRelease(release func()) {
	b = b.orClosed()
	b.mu.Lock()
	b.release = release
	b.mu.Unlock()
}

// Close drops a share. The last one frees the memory and calls the release function; where a call or a function of [Buffer.Access] still
// runs that happens when it ends. Closing more often than there are shares does nothing.
func (b *Buffer) Close() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	last := b.shares == 1 && !b.accessed()
	b.shares = max(b.shares-1, 0)
	b.mu.Unlock()
	if !last {
		return nil
	}
	return b.free()
}

// warnUnsynced logs that results are dropped which were never copied to wrapped memory.
func (b *Buffer) warnUnsynced(m *memory.Memory, k *memory.Backing) {
	if log := b.dev.Logger(); log != nil && b.mode == External && k.Hosted && m.Lacks(k.All()) {
		log.Warn("sublet: wrapped memory closed without Sync", "bytes", uint64(b.size))
	}
}

// accessed reports whether a function of Access runs. The buffer is locked.
func (b *Buffer) accessed() bool { return b.changing || b.readers > 0 }

// free frees the memory of a buffer without users.
func (b *Buffer) free() error {
	b.mu.Lock()
	k := b.back
	b.mu.Unlock()
	if k == nil {
		if release := b.forget(); release != nil {
			release()
		}
		return nil
	}
	m, turn := k.Enter()
	if !turn {
		m.Later(func(m *memory.Memory) func() {
			b.warnUnsynced(m, k)
			_ = m.Close(k) // nobody is there to know
			return b.forget()
		})
		return nil
	}
	b.warnUnsynced(m, k)
	err := m.Close(k)
	release := b.forget()
	if m.Unlock(); release != nil {
		release()
	}
	return err
}

// forget drops what the buffer refers to and returns its release function.
func (b *Buffer) forget() (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	release = b.release
	if b.back != nil {
		b.cleanup.Stop()
	}
	b.release, b.host, b.back = nil, gpu.Host{}, nil
	return release
}
