// SPDX-License-Identifier: Apache-2.0

package mapfile

import (
	"errors"
	"math"
	"os"
	"strconv"
	"sync"

	"github.com/edsrzf/mmap-go"

	"github.com/sublet-gpu/sublet/gpu"
)

// File is a file, or a part of one, in memory. Make one with [Open] and Close it when done. Methods may be called from
// several goroutines.
type File struct {
	size     int64
	start    int64 // where in the file the memory begins
	writable bool

	mu    sync.Mutex
	open  bool
	users int // shares, and the File itself while it is open
	all   mmap.MMap
	mem   []byte   // the part of all that was asked for
	file  *os.File // of a writable mapping: flushing needs it on some systems
}

// Option says how to map a file.
type Option func(*request)

type request struct {
	writable, part bool
	offset, length int64
}

// Writable maps the file for reading and writing: what is written reaches the file.
func Writable() Option { return func(r *request) { r.writable = true } }

// Range maps length bytes from offset on, which may be any. They must be in the file: [ErrRange] otherwise. Without it
// the whole file is mapped.
func Range(offset, length int64) Option {
	return func(r *request) { r.part, r.offset, r.length = true, offset, length }
}

// granule is what the start of a mapping is a multiple of: a page, on Windows 64 KiB.
const granule = 64 << 10

// Open maps a regular file, as long as it is now. Nothing is read yet. It fails with [gpu.ErrInvalid] for what is no regular
// file and for a negative range, [ErrRange] for one that is not in the file and for an empty one, [gpu.ErrNoMemory] where the
// machine cannot address that much, [gpu.ErrUnsupported] where there are no mappings, or an error of package os.
func Open(path string, opts ...Option) (*File, error) {
	const op = "Open"
	var r request
	for _, o := range opts {
		if o != nil {
			o(&r)
		}
	}
	if r.offset < 0 || r.length < 0 {
		return nil, fail(op, gpu.ErrInvalid, path, ": ", num(r.length), " bytes at ", num(r.offset))
	}
	file, size, err := openRegular(op, path, r.writable)
	if err != nil {
		return nil, err
	}
	f, err := mapped(op, path, file, size, r)
	if err != nil || !r.writable {
		// What is mapped for reading stays so without the file.
		if cerr := file.Close(); err == nil && cerr != nil {
			err = errors.Join(cerr, f.all.Unmap())
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openRegular looks before it opens, since opening a pipe waits for its other end, and then again, since the path may
// lead elsewhere by then.
func openRegular(op, path string, writable bool) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fail(op, gpu.ErrInvalid, path, ": not a regular file")
	}
	flag := os.O_RDONLY
	if writable {
		flag = os.O_RDWR
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fail(op, gpu.ErrInvalid, path, ": not a regular file")
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// mapped maps the part of the file that is asked for, from the last possible place before it on.
func mapped(op, path string, file *os.File, size int64, r request) (*File, error) {
	if !r.part {
		r.length = size
	}
	switch {
	case r.offset > size || r.length > size-r.offset:
		return nil, fail(op, ErrRange, path, ": ", num(r.length), " bytes at ", num(r.offset), " of ", num(size))
	case r.length == 0:
		return nil, fail(op, ErrRange, path, ": nothing to map")
	}
	step := max(granule, int64(os.Getpagesize()))
	before := r.offset % step
	if r.length > math.MaxInt-before {
		return nil, fail(op, gpu.ErrNoMemory, "no room in the address space: ", path, ": ", num(r.length), " bytes")
	}
	prot := mmap.RDONLY
	if r.writable {
		prot = mmap.RDWR
	}
	all, err := mmap.MapRegion(file, int(before+r.length), prot, 0, r.offset-before)
	if err != nil {
		return nil, mapError(op, path, err)
	}
	f := &File{size: r.length, start: r.offset, writable: r.writable, open: true, users: 1, all: all, mem: all[before:]}
	if r.writable {
		f.file = file
	}
	return f, nil
}

// Size returns how many bytes are mapped.
func (f *File) Size() int64 {
	if f == nil {
		return 0
	}
	return f.size
}

// Writable reports whether results can be written to the file.
func (f *File) Writable() bool { return f != nil && f.writable }

// Share returns the mapped bytes from offset on, counted from the start of the mapping, for functions that wrap memory
// of the caller's. The memory stays where it is until release is called, even if the File is closed before. Give release
// to [matrix.Options] as Release, or call it when what wraps the memory fails; [Wrap] does both. Calls of it after the first do
// nothing.
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
		return gpu.Host{}, nil, fail(op, gpu.ErrInvalid, "offset ", num(offset))
	case offset > f.size:
		return gpu.Host{}, nil, fail(op, ErrRange, "offset ", num(offset), " of ", num(f.size), " bytes")
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
		return renamed("Flush", err)
	}
	defer release()
	if !f.writable {
		return nil
	}
	return f.all.Flush()
}

// renamed says which method failed where another one noticed.
func renamed(op string, err error) error {
	if e, ok := errors.AsType[*gpu.OpError](err); ok {
		return fail(op, e.Err, e.Detail)
	}
	return err
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
	err := f.all.Unmap()
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	f.mem, f.file = nil, nil
	return err
}

func num(n int64) string { return strconv.FormatInt(n, 10) }
