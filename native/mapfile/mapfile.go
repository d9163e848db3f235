// SPDX-License-Identifier: Apache-2.0

// Package mapfile lets matrices use the bytes of a file where they lie, natively: the file is mapped into memory, and
// the operating system fetches its pages when they are needed and drops them when memory is short. So a file may be
// larger than the machine's memory. A matrix larger than a buffer of the device, or than a quarter of its budget ([gpu.WithMemory]), is
// used in parts, and expressions of it are computed block by block: see [matrix.Dense.AssignContext] and [matrix.WithProgress].
//
//	f, err := mapfile.Open("weights.bin")
//	defer f.Close()
//	w, err := mapfile.Wrap[float32](dev, f, 128, 4096, 4096) // from byte 128 on
//
// [Open] maps for reading, [OpenWritable] for writing too. Numbers are in the byte order of the machine, for practical
// purposes little-endian. The file is unmapped once the [File] and all matrices made of it are closed, in whatever order.
//
// Results reach a writable mapping at [matrix.Dense.Sync], like any wrapped memory; from then on everybody who reads the
// file sees them. [File.Flush] returns once they are on the disk. A matrix of a read-only mapping is
// no destination: [gpu.ErrReadOnly]. Where [matrix.Dense.Access] shows it, nothing must be written: the operating system
// stops a program that does.
//
// # Files that change
//
// A mapped file must not become shorter: the operating system stops a program that touches the pages behind its new end
// (SIGBUS); on Windows such a file cannot be shortened. Sublet touches them when a matrix is read, first used by a kernel, or
// synced. [runtime/debug.SetPanicOnFault] makes a panic of it where Go code does so, but not in a driver. The same happens
// where results reach a hole of a sparse file and the disk is full. What others write into the file meanwhile may be seen or
// not: a matrix is told with [matrix.Dense.Touch].
package mapfile

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"syscall"

	"github.com/edsrzf/mmap-go"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// ErrRange is the error for a part of a file that it does not have, and for an empty file. The others are those of packages
// gpu and matrix, and of the operating system, such as fs.ErrNotExist.
var ErrRange = fault.New("ErrRange", "beyond the end")

func fail(op string, err error, detail ...string) error {
	return fault.Fail("mapfile: "+op, err, detail...)
}

// File is a file in memory. Make one with [Open] or [OpenWritable] and Close it when done. Methods may be called from several
// goroutines.
type File struct {
	writable bool
	file     *os.File

	mu    sync.Mutex
	open  bool
	users int // shares, and the File itself while it is open
	mem   mmap.MMap
}

// Open maps a regular file, as long as it is now, for reading. Nothing is read yet. It fails with [gpu.ErrInvalid] for what is
// no regular file, [ErrRange] for an empty one, [gpu.ErrNoMemory] where the machine cannot address that much,
// [gpu.ErrUnsupported] where there are no mappings, or an error of package os.
func Open(path string) (*File, error) { return open("Open", path, os.O_RDONLY, mmap.RDONLY) }

// OpenWritable is [Open] for reading and writing: what is written reaches the file.
func OpenWritable(path string) (*File, error) {
	return open("OpenWritable", path, os.O_RDWR, mmap.RDWR)
}

func open(op, path string, flag, prot int) (*File, error) {
	info, err := os.Stat(path) // before it is opened, since opening a pipe waits for its other end
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fail(op, gpu.ErrInvalid, path, ": not a regular file")
	case info.Size() == 0:
		return nil, fail(op, ErrRange, path, ": nothing to map")
	case info.Size() > math.MaxInt:
		return nil, fail(op, gpu.ErrNoMemory, "no room in the address space: ", path)
	}
	f := &File{writable: prot == mmap.RDWR, open: true, users: 1}
	if f.file, err = os.OpenFile(path, flag, 0); err != nil {
		return nil, err
	}
	if f.mem, err = mmap.Map(f.file, prot, 0); err == nil {
		return f, nil
	}
	_ = f.file.Close() // nothing was written
	switch {
	case errors.Is(err, syscall.ENOMEM):
		return nil, fail(op, gpu.ErrNoMemory, "no room in the address space: ", path)
	case errors.Is(err, syscall.ENODEV), errors.Is(err, errors.ErrUnsupported):
		return nil, fail(op, gpu.ErrUnsupported, path, ": ", err.Error())
	}
	return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
}

// Share returns the mapped bytes from offset on, for functions that wrap memory of the caller's. The memory stays where it is
// until release is called, even if the File is closed before. Give release to [matrix.Options] as Release, or call it when what wraps
// the memory fails; [Wrap] does both. Calls of it after the first do nothing.
func (f *File) Share(offset int64) (mem gpu.Host, release func(), err error) {
	const op = "Share"
	if f == nil {
		return gpu.Host{}, nil, fail(op, gpu.ErrInvalid, "nil file")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.open:
		return gpu.Host{}, nil, fail(op, gpu.ErrClosed, "the file")
	case offset < 0:
		return gpu.Host{}, nil, fail(op, gpu.ErrInvalid, fmt.Sprintf("offset %d", offset))
	case offset > int64(len(f.mem)):
		return gpu.Host{}, nil, fail(op, ErrRange, fmt.Sprintf("offset %d of %d bytes", offset, len(f.mem)))
	}
	f.users++
	mem = gpu.HostBytes(f.mem[offset:len(f.mem):len(f.mem)])
	mem.ReadOnly = !f.writable
	return mem, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.leave() // nobody is there to be told; who wants to know whether everything is on the disk calls Flush
	}), nil
}

// Flush returns when everything that was written to the mapping is on the disk. For a read-only mapping there is nothing
// to do.
func (f *File) Flush() error {
	_, release, err := f.Share(0) // it must not be unmapped meanwhile
	if err != nil {
		return err
	}
	defer release()
	if !f.writable {
		return nil
	}
	return f.mem.Flush()
}

// Close ends the use of the File. What has been wrapped stays usable; the file is unmapped when that is closed, too.
// Later calls do nothing.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		return nil
	}
	f.open = false
	return f.leave()
}

// leave counts down the users. The last one unmaps.
func (f *File) leave() error {
	if f.users--; f.users > 0 {
		return nil
	}
	return errors.Join(f.mem.Unmap(), f.file.Close())
}

// Wrap makes a matrix of rows x cols elements of the file: those from byte offset on, placed as the
// options say. Nothing is read now; kernels get the bits when they first need them. The matrix keeps the file mapped
// until it and its views are closed; Release among the options is called, too.
//
// A matrix that fits into a buffer of the device goes there as a whole, with what Offset among the options skips, so offset is the way
// to a small part far behind the start. It must be a multiple of the element's size: [matrix.ErrAlignment] otherwise. A matrix that
// reaches beyond the file is [buffer.ErrShort].
func Wrap[T matrix.Elem](
	dev *gpu.Device, f *File, offset int64, rows, cols int, opts ...matrix.Options,
) (*matrix.Dense[T], error) {
	mem, release, err := f.Share(offset)
	if err != nil {
		return nil, err
	}
	if t := (*matrix.Dense[T])(nil).DType(); offset%int64(t.Size()) != 0 {
		release()
		return nil, fail("Wrap", matrix.ErrAlignment, fmt.Sprintf("%v at byte %d of the file", t, offset))
	}
	o := matrix.Options{}
	if len(opts) > 0 {
		o = opts[0]
	}
	theirs := o.Release
	o.Release = func() {
		release()
		if theirs != nil {
			theirs()
		}
	}
	m, err := matrix.FromBuffer[T](dev, rows, cols, mem, buffer.DontOwnBuffer, o)
	if err != nil {
		release()
		return nil, err
	}
	return m, nil
}
