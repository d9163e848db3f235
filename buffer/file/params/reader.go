// SPDX-License-Identifier: Apache-2.0

package params

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

var _ file.Reader = (*Reader)(nil)

// Reader reads a dictionary as a stream. It is not for several goroutines.
type Reader struct {
	src     *source
	opts    options
	memory  int64 // what is left of the limit
	names   []string
	last    map[string]int // each name's last index, with LastWins
	next    int            // index of the tensor that Next goes to
	data    int64          // bytes left of the tensor before it
	err     error          // what ended reading, io.EOF after the last tensor
	trailed int64          // bytes counted after the last tensor
}

// NewReader reads the list of names. r stands at the dictionary's first byte, and offsets count from there. If r has a
// method Seek or Len, the claims of the file are checked against its size at once, else as the bytes run out. r may be
// read some way past the last tensor, unless [Size] says where the file ends.
func NewReader(r io.Reader, opts ...Option) (*Reader, error) {
	p := &Reader{}
	if err := p.opts.apply(opts, true); err != nil {
		return nil, err
	}
	p.memory = p.opts.memory
	var err error
	if p.src, err = newSource(r, p.opts.size); err != nil {
		return nil, err
	}
	if err := p.readList(); err != nil {
		return nil, err
	}
	if !p.opts.lastWins {
		p.last = nil
	}
	return p, nil
}

func (r *Reader) readList() error {
	err := r.src.expect(binary.LittleEndian.AppendUint64(nil, listMagic), func(got uint64) string {
		if got == mxnetMagic {
			return "this is an MXNet NDArray list, not a dictionary of TVM or CVM"
		}
		return "a dictionary starts with b7 9c 04 05 4f 8d e5 f7"
	})
	if err != nil {
		return err
	}
	if _, err := r.src.u64(); err != nil { // reserved
		return err
	}
	at := r.src.pos
	count, err := r.src.u64()
	if err != nil {
		return err
	}
	if count > uint64(r.src.left())/8 { // each has at least a length
		return r.src.lacks(at, count, " names")
	}
	if count > uint64(max(r.memory, 0))/nameCost {
		return fail(at, file.ErrTooLarge, strconv.FormatUint(count, 10)+" names")
	}
	if err := r.readNames(int(count)); err != nil {
		return err
	}
	return r.src.expect(binary.LittleEndian.AppendUint64(nil, count), func(got uint64) string {
		return strconv.FormatUint(count, 10) + " names, " + strconv.FormatUint(got, 10) + " tensors"
	})
}

// nameCost is about what a name takes in memory beside its bytes: in the list and in the map that finds duplicates.
const nameCost = 80

func (r *Reader) readNames(count int) error {
	r.last = map[string]int{}
	var buf []byte
	for i := range count {
		at := r.src.pos
		length, err := r.src.u64()
		if err != nil {
			return err
		}
		if length > uint64(r.src.left()) {
			return r.src.lacks(at, length, " bytes of a name")
		}
		if err := r.charge(at, int64(length)+nameCost); err != nil {
			return err
		}
		if buf, err = r.src.text(buf, int64(length)); err != nil {
			return err
		}
		name := string(buf)
		if first, ok := r.last[name]; ok && !r.opts.lastWins {
			return duplicate(at+8, name, first, i)
		}
		r.last[name] = i
		r.names = append(r.names, name)
	}
	return nil
}

// charge takes bytes from the limit of memory.
func (r *Reader) charge(at, n int64) error {
	if n < 0 || n > r.memory {
		return fail(at, file.ErrTooLarge, "names and headers take more than "+decimal(r.opts.memory)+" bytes of memory")
	}
	r.memory -= n
	return nil
}

// Names returns the names in the order of the tensors: those that Next returns.
func (r *Reader) Names() []string {
	names := make([]string, 0, len(r.names))
	for i, name := range r.names {
		if !r.hidden(i) {
			names = append(names, name)
		}
	}
	return names
}

// hidden reports whether a later tensor of the same name takes this one's place.
func (r *Reader) hidden(i int) bool {
	return r.opts.lastWins && r.last[r.names[i]] != i
}

// Next goes to the next tensor, over what was not read of the last one. It returns io.EOF after the last one. The header's
// shape is the caller's to keep. After an error every call returns it again.
func (r *Reader) Next() (file.Header, error) {
	if r.src == nil {
		return file.Header{}, errNotMade
	}
	if r.err != nil {
		return file.Header{}, r.err
	}
	h, err := r.advance()
	if err != nil {
		r.err = err
		return file.Header{}, err
	}
	return h, nil
}

var errNotMade = invalid("not made by NewReader or NewWriter")

func (r *Reader) advance() (file.Header, error) {
	for {
		if err := r.src.skip(r.data); err != nil {
			return file.Header{}, r.src.wrap(err)
		}
		r.data = 0
		if r.next == len(r.names) {
			return file.Header{}, r.finish()
		}
		h, err := r.header(r.names[r.next])
		if err != nil {
			return file.Header{}, err
		}
		r.data = h.Size
		r.next++
		if !r.hidden(r.next - 1) {
			return h, nil
		}
	}
}

// header reads a tensor's header field by field, so that the first wrong one is what the error tells of.
func (r *Reader) header(name string) (h file.Header, err error) {
	s, base := r.src, r.src.pos
	about := func(what string) func(uint64) string {
		return func(got uint64) string {
			return "tensor " + stream.Quote(name) + ": " + what + strconv.FormatUint(got, 10)
		}
	}
	err = s.expect(binary.LittleEndian.AppendUint64(nil, tensorMagic), func(uint64) string {
		return "tensor " + stream.Quote(name) + ": a tensor starts with 3f a1 b4 96 f0 40 5e dd"
	})
	if err != nil {
		return h, err
	}
	if _, err := s.u64(); err != nil { // reserved
		return h, err
	}
	if err := s.expect([]byte{cpu, 0, 0, 0}, about("its device has to be the CPU (1), not ")); err != nil {
		return h, err
	}
	if _, err := s.u32(); err != nil { // device id
		return h, err
	}
	dims, err := s.u32()
	if err != nil {
		return h, err
	}
	if f := checkDims(int32(dims)); f != nil {
		return h, f.error(base, name)
	}
	typ, err := s.u32()
	if err != nil {
		return h, err
	}
	t := dtype.Type{Code: dtype.Code(typ), Bits: uint8(typ >> 8), Lanes: uint16(typ >> 16)}
	if f := checkType(t); f != nil {
		return h, f.error(base, name)
	}
	h = file.Header{Name: name, Type: r.opts.typeOf(t), Shape: make([]int64, dims)}
	for i := range h.Shape {
		d, err := s.u64()
		if err != nil {
			return h, err
		}
		h.Shape[i] = int64(d)
	}
	return h, r.place(&h, base)
}

// place checks a tensor's shape against its size, and both against the file.
func (r *Reader) place(h *file.Header, base int64) error {
	size, f := checkShape(h.Type, h.Shape)
	if f != nil {
		return f.error(base, h.Name)
	}
	err := r.src.expect(binary.LittleEndian.AppendUint64(nil, uint64(size)), func(got uint64) string {
		return "tensor " + stream.Quote(h.Name) + ": its shape takes " + decimal(size) + " bytes, its data " + decimal(int64(got))
	})
	if err != nil {
		return err
	}
	h.Offset, h.Size = r.src.pos, size
	switch left := r.src.left(); {
	case size <= left:
		return nil
	case r.src.known:
		return fail(r.src.in.end, file.ErrTruncated, "tensor "+stream.Quote(h.Name)+": "+decimal(left)+" of "+decimal(size)+" bytes are there")
	default:
		return fail(h.Offset-8, file.ErrFormat, "tensor "+stream.Quote(h.Name)+": no file is that long")
	}
}

// finish looks at what follows the last tensor.
func (r *Reader) finish() error {
	if !r.opts.strict {
		return io.EOF
	}
	err := r.src.fill()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return r.src.wrap(err)
	}
	detail := "bytes after the last tensor"
	if r.src.known {
		detail = decimal(r.src.left()) + " " + detail
	}
	return fail(r.src.pos, file.ErrFormat, detail)
}

// Read reads the data of the tensor that Next returned. It returns io.EOF at their end, and also before the first Next.
func (r *Reader) Read(b []byte) (int, error) {
	switch {
	case r.src == nil:
		return 0, errNotMade
	case r.err != nil:
		return 0, r.err
	case len(b) == 0:
		return 0, nil
	case r.data == 0:
		return 0, io.EOF
	}
	n, err := r.src.read(b[:min(int64(len(b)), r.data)])
	r.data -= int64(n)
	if err != nil {
		r.err = r.src.wrap(err)
	}
	return n, r.err
}

// Trailing returns how many bytes follow the last tensor, once Next has returned io.EOF. Where the size of the file is
// unknown it reads on to its end.
func (r *Reader) Trailing() (int64, error) {
	switch {
	case r.src == nil:
		return 0, errNotMade
	case r.err == nil:
		return 0, invalid("there are more tensors")
	case !errors.Is(r.err, io.EOF):
		return 0, r.err
	case r.src.known:
		return r.src.left(), nil
	}
	from := r.src.pos
	err := r.src.skip(math.MaxInt64)
	r.trailed += r.src.pos - from
	if err != nil && !errors.Is(err, io.EOF) {
		return r.trailed, r.src.wrap(err)
	}
	return r.trailed, nil
}
