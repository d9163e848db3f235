// SPDX-License-Identifier: Apache-2.0

package mapfile

import (
	"errors"
	"math"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/edsrzf/mmap-go"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
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
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fail(op, gpu.ErrInvalid, path, ": not a regular file")
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	f := &File{writable: prot == mmap.RDWR, file: file, open: true, users: 1}
	if err := f.mapped(op, prot); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// mapped maps the file that is open, which may be another one by now than the path led to before.
func (f *File) mapped(op string, prot int) error {
	path := f.file.Name()
	info, err := f.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fail(op, gpu.ErrInvalid, path, ": not a regular file")
	case info.Size() == 0:
		return fail(op, ErrRange, path, ": nothing to map")
	case info.Size() > math.MaxInt:
		return fail(op, gpu.ErrNoMemory, "no room in the address space: ", path)
	}
	f.mem, err = mmap.MapRegion(f.file, int(info.Size()), prot, 0, 0)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOMEM):
		return fail(op, gpu.ErrNoMemory, "no room in the address space: ", path, ": ", err.Error())
	case errors.Is(err, syscall.ENODEV), errors.Is(err, errors.ErrUnsupported):
		return fail(op, gpu.ErrUnsupported, path, ": ", err.Error())
	}
	return &os.PathError{Op: "mmap", Path: path, Err: err}
}

// Share returns the mapped bytes from offset on, for functions that wrap memory of the caller's. The memory stays where it is
// until release is called, even if the File is closed before. Give release to [matrix.Options] as Release, or call it when what wraps
// the memory fails; [Wrap] does both. Calls of it after the first do nothing.
func (f *File) Share(offset int64) (mem gpu.Host, release func(), err error) {
	return f.share("Share", offset)
}

func (f *File) share(op string, offset int64) (mem gpu.Host, release func(), err error) {
	if f == nil {
		return gpu.Host{}, nil, fail(op, gpu.ErrInvalid, "nil file")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.open:
		return gpu.Host{}, nil, fail(op, gpu.ErrClosed, "the file")
	case offset < 0:
		return gpu.Host{}, nil, fail(op, gpu.ErrInvalid, "offset ", num(offset))
	case offset > int64(len(f.mem)):
		return gpu.Host{}, nil, fail(op, ErrRange, "offset ", num(offset), " of ", num(int64(len(f.mem))), " bytes")
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
	_, release, err := f.share("Flush", 0) // it must not be unmapped meanwhile
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

func num(n int64) string { return strconv.FormatInt(n, 10) }
