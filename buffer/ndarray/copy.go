// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/host"
)

// readLayout copies elements to dst in C order.
func readLayout(ctx context.Context, b *buffer.Buffer, l layout, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	w := l.walk()
	lo, hi, _ := l.span()
	r, _ := w.region(lo, hi)
	if l.contiguous() {
		return b.Read(ctx, r, gpu.HostBytes(dst), 0)
	}
	return b.Access(ctx, r, buffer.Reads, func(mem []byte) error {
		w.gather(dst, mem, l.offset-lo)
		return nil
	})
}

// fewRows is how many rows are written one by one, sooner than everything between the first and the last is read first.
const fewRows = 32

// writeLayout copies elements in C order to where they belong.
func writeLayout(ctx context.Context, b *buffer.Buffer, l layout, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if l.contiguous() {
		return b.Patch(ctx, l.offset, src)
	}
	w := l.walk()
	lo, hi, _ := l.span()
	r, rows := w.region(lo, hi)
	if !rows || r.Count > fewRows || (r.Offset|r.Width|r.Pitch)%4 != 0 {
		return b.Access(ctx, buffer.Range(lo, hi-lo), buffer.Writes, func(mem []byte) error {
			w.scatter(mem, l.offset-lo, src)
			return nil
		})
	}
	for i := range r.Count {
		if err := b.Patch(ctx, lo+i*r.Pitch, src[i*r.Width:][:r.Width]); err != nil {
			return err
		}
	}
	return nil
}

// Bytes waits for what is queued and returns the elements in C order.
func (a *Array) Bytes(ctx context.Context) ([]byte, error) {
	return a.packed(ctx, "Bytes", a.at())
}

// at is the layout, that of no elements for a nil array.
func (a *Array) at() layout {
	if a == nil {
		return layout{shape: []int{0}, strides: []int{0}}
	}
	return a.layout
}

func (a *Array) packed(ctx context.Context, op string, l layout) ([]byte, error) {
	dst := make([]byte, l.bytes())
	err := a.read(ctx, op, func(b *buffer.Buffer) error { return readLayout(ctx, b, l, dst) })
	if err != nil {
		return nil, err
	}
	return dst, nil
}

// CopyToBytes is Bytes into memory of the caller's, which must have exactly the array's size: [ErrLength] otherwise.
func (a *Array) CopyToBytes(ctx context.Context, dst []byte) error {
	const op = "CopyToBytes"
	if err := a.takes(op, dst); err != nil {
		return err
	}
	return a.read(ctx, op, func(b *buffer.Buffer) error { return readLayout(ctx, b, a.layout, dst) })
}

// CopyFromBytes replaces all elements by those in src, in C order. There must be exactly as many bytes: [ErrLength]
// otherwise. It waits only where elements share words of the device's memory with others.
func (a *Array) CopyFromBytes(ctx context.Context, src []byte) error {
	const op = "CopyFromBytes"
	if err := a.takes(op, src); err != nil {
		return err
	}
	return a.write(ctx, op, func(b *buffer.Buffer) error { return writeLayout(ctx, b, a.layout, src) })
}

// takes checks that bytes are as many as the array has.
func (a *Array) takes(op string, b []byte) error {
	if _, err := a.container(op); err != nil {
		return err
	}
	if len(b) != a.bytes() {
		return fail(op, ErrLength, len(b), " bytes for ", text(a.shape), " of ", a.t.String())
	}
	return nil
}

// CopyFrom copies the bits of src, in C order on both sides. Sizes in bytes must be equal, [ErrLength] otherwise; types and
// shapes may differ, and nothing is converted. Unlike the reference it honours strides, and the arrays may overlap and lie
// on different devices. Within a device nothing passes the host if both are contiguous and in words of their own.
func (a *Array) CopyFrom(ctx context.Context, src *Array) error {
	const op = "CopyFrom"
	if err := pair(op, a, src); err != nil {
		return err
	}
	if a.bytes() != src.bytes() {
		return fail(op, ErrLength, src.bytes(), " bytes of ", text(src.shape), " of ", src.t.String(), " to ", a.bytes(), " of ", text(a.shape), " of ",
			a.t.String())
	}
	if a.dev == src.dev && a.contiguous() && src.contiguous() {
		if done, err := copyOnDevice(ctx, op, a, src); done || err != nil {
			return err
		}
	}
	return a.through(ctx, op, src, src.layout)
}

// pair refuses arrays of which one is nil or closed, and a destination that cannot be written.
func pair(op string, dst, src *Array) error {
	_, err := dst.writable(op)
	if err == nil {
		_, err = src.container(op)
	}
	return err
}

// through copies elements of src, laid out as from, by way of the host.
func (a *Array) through(ctx context.Context, op string, src *Array, from layout) error {
	data, err := src.packed(ctx, op, from)
	if err != nil {
		return err
	}
	return a.write(ctx, op, func(b *buffer.Buffer) error { return writeLayout(ctx, b, a.layout, data) })
}

// copyOnDevice queues a copy between two arrays, if that is possible, and reports whether it is. It does not wait for others
// that use src, of whom one may copy the other way and wait for a.
func copyOnDevice(ctx context.Context, op string, a, src *Array) (done bool, err error) {
	c, err := src.container(op)
	if err != nil {
		return false, err
	}
	from := c.store
	err = a.write(ctx, op, func(to *buffer.Buffer) error {
		if !from.turn.Try() {
			return nil
		}
		defer from.turn.Give()
		same := func(b *buffer.Buffer) *buffer.Buffer { return b }
		buf, err := from.use(op, same)
		if err != nil || onHost(buf) || src.offset%4 != 0 || to.Same(buf) {
			return err
		}
		read, _, err := buf.Use(ctx, a.dev, buffer.Range(0, buf.Size()), buffer.Reads)
		if err != nil || uint64(src.offset)+uint64(src.bytes()+3)/4*4 > read.Size() {
			return err
		}
		done, err = onDevice(ctx, to, a.offset, a.bytes(), func(mem *gpu.Buffer, size uint64) error {
			return mem.CopyFrom(uint64(a.offset), read, uint64(src.offset), size)
		})
		return err
	})
	return done, err
}

// onDevice has the device write n bytes of its memory from offset on, if that is where the bits are and the bytes are whole
// words, and reports whether it does.
func onDevice(ctx context.Context, b *buffer.Buffer, offset, n int, write func(mem *gpu.Buffer, size uint64) error) (bool, error) {
	size, in := n, buffer.Writes
	if offset+n == b.Size() {
		size = (n + 3) / 4 * 4 // what follows is nobody's
	}
	if n == 0 || onHost(b) || offset%4 != 0 || size%4 != 0 {
		return false, nil
	}
	if n == b.Size() {
		in = buffer.Replaces
	}
	mem, _, err := b.Use(ctx, b.Device(), buffer.Range(0, b.Size()), in)
	if err != nil || uint64(offset)+uint64(size) > mem.Size() {
		return false, err
	}
	if err := write(mem, uint64(size)); err != nil {
		return false, err
	}
	b.Wrote(b.Device(), buffer.Range(offset, n))
	return true, nil
}

// onHost reports whether the bits are where the CPU gets at them. Of what the device holds in parts they are brought there.
func onHost(b *buffer.Buffer) bool {
	return b.HasHost() && (b.Windowed() || b.Location()&buffer.Host != 0) || b.InPlace()
}

// CopyToDevice makes an array of the same type and shape on a device, also the array's own, with a copy of the elements.
func (a *Array) CopyToDevice(ctx context.Context, dev *gpu.Device) (*Array, error) {
	const op = "CopyToDevice"
	if _, err := a.container(op); err != nil {
		return nil, err
	}
	c, err := Placement{}.make(op, dev, a.t, a.shape, true, func(size int) (*buffer.Buffer, error) { return buffer.New(dev, size) })
	if err != nil {
		return nil, err
	}
	if err := c.CopyFrom(ctx, a); err != nil {
		_ = c.Close()
		return nil, named(op, err)
	}
	return c, nil
}

// Sync waits for what is queued and brings results into the memory that the array wraps, only what changed.
func (a *Array) Sync(ctx context.Context) error {
	return a.read(ctx, "Sync", func(b *buffer.Buffer) error { return b.Sync(ctx) })
}

// Touch says that the caller wrote into the memory that the array wraps.
func (a *Array) Touch() error {
	return a.read(context.Background(), "Touch", func(b *buffer.Buffer) error { return b.Touch() })
}

// Data waits for what is queued and returns the elements in C order. The array's type must be T's, [ErrType] otherwise;
// the bits of types that Go does not have can be read as unsigned integers. Any bool that is not 0 is true.
func Data[T Elem](ctx context.Context, a *Array) ([]T, error) {
	const op = "Data"
	if _, err := a.container(op); err != nil {
		return nil, err
	}
	if !holds(typeOf[T](), a.t) {
		return nil, fail(op, ErrType, a.t.String(), " as ", typeOf[T]().String())
	}
	data := make([]T, a.elements())
	raw := host.BytesOf(data)
	if err := a.CopyToBytes(ctx, raw); err != nil {
		return nil, named(op, err)
	}
	if _, isBool := any(data).([]bool); isBool {
		for i, v := range raw { // Go knows bools of 0 and 1 only
			raw[i] = min(v, 1)
		}
	}
	return data, nil
}

// holds reports whether a slice of Go's type g shows elements of t.
func holds(g, t dtype.Type) bool {
	foreign := t.Code > dtype.Float32.Code || t == dtype.Float16 || t == dtype.Bool1
	unsigned := g.Code == dtype.Uint8.Code && g.Size() == t.Size() && t.Lanes == 1
	return g == t || foreign && unsigned || t == dtype.Bool1 && g == dtype.Bool8
}

// Assign sets all elements to those of src, which must have the same type: [ErrType] otherwise. Dimensions must
// agree, those of 1 not counted, or be stretched by NumPy's rules: [buffer.ErrShape] otherwise. The arrays may overlap.
func (a *Array) Assign(ctx context.Context, src *Array) error {
	const op = "Assign"
	if err := pair(op, a, src); err != nil {
		return err
	}
	if src.t != a.t {
		return fail(op, ErrType, src.t.String(), " to ", a.t.String())
	}
	from, ok := src.stretch(a.shape)
	if !ok {
		from, ok = src.squeeze().stretch(a.squeeze().shape)
	}
	if !ok {
		return fail(op, buffer.ErrShape, text(src.shape), " to ", text(a.shape), ": dimensions have to be equal, or 1")
	}
	return a.through(ctx, op, src, from)
}

// stretch repeats dimensions of 1, and what is there as a whole, so that the shape becomes another.
func (l layout) stretch(shape []int) (layout, bool) {
	more := len(shape) - len(l.shape)
	for more < 0 && l.shape[0] == 1 {
		l.shape, l.strides, more = l.shape[1:], l.strides[1:], more+1
	}
	if more < 0 {
		return l, false
	}
	strides := make([]int, len(shape))
	for d, n := range l.shape {
		if shape[more+d] == n {
			strides[more+d] = l.strides[d]
		} else if n != 1 {
			return l, false
		}
	}
	l.shape, l.strides = shape, strides
	return l, true
}

// squeeze leaves dimensions of 1 out.
func (l layout) squeeze() layout {
	out := layout{t: l.t, offset: l.offset}
	for d, n := range l.shape {
		if n != 1 {
			out.shape, out.strides = append(out.shape, n), append(out.strides, l.strides[d])
		}
	}
	return out
}

// fillStep is about how many bytes are filled at a time.
const fillStep = 4 << 20

// Fill sets all elements to a value: integers of 8 to 64 bits, truncated towards 0 as in C, and floats of 16, 32 and 64,
// rounded to nearest. [ErrValue] is a number that the integer type does not have, [ErrType] another type.
func (a *Array) Fill(ctx context.Context, value float64) error {
	const op = "Fill"
	if _, err := a.container(op); err != nil {
		return err
	}
	element, err := encode(op, a.t, value)
	if err != nil {
		return err
	}
	l, n := a.layout, a.bytes()
	return a.write(ctx, op, func(b *buffer.Buffer) error {
		if !l.contiguous() {
			return writeLayout(ctx, b, l, slices.Repeat(element, l.elements()))
		}
		if !slices.ContainsFunc(element, func(b byte) bool { return b != 0 }) {
			clear := func(mem *gpu.Buffer, size uint64) error { return mem.Clear(uint64(l.offset), size) }
			if done, err := onDevice(ctx, b, l.offset, n, clear); done || err != nil {
				return err
			}
		}
		pattern := slices.Repeat(element, min(n, fillStep)/len(element))
		for done := 0; done < n; done += len(pattern) {
			if err := b.Patch(ctx, l.offset+done, pattern[:min(len(pattern), n-done)]); err != nil {
				return err
			}
		}
		return nil
	})
}

// encode returns the bytes of an element, all lanes with the value.
func encode(op string, t dtype.Type, v float64) ([]byte, error) {
	var bits uint64
	size := int(t.Bits)
	switch {
	case t.Code == dtype.Float32.Code && size == 64:
		bits = math.Float64bits(v)
	case t.Code == dtype.Float32.Code && size == 32:
		bits = uint64(math.Float32bits(float32(v)))
	case t.Code == dtype.Float32.Code && size == 16:
		bits = uint64(dtype.ToHalf(v).Bits())
	case (t.Code == dtype.Int8.Code || t.Code == dtype.Uint8.Code) && 8 <= size && size <= 64:
		lo, hi := 0.0, math.Ldexp(1, size)
		if t.Code == dtype.Int8.Code {
			lo, hi = -hi/2, hi/2
		}
		n := math.Trunc(v)
		if !(lo <= n && n < hi) { // NaN too
			return nil, fail(op, ErrValue, strconv.FormatFloat(v, 'g', -1, 64), " as ", t.String())
		}
		if t.Code == dtype.Int8.Code {
			bits = uint64(int64(n))
		} else {
			bits = uint64(n)
		}
	default:
		return nil, fail(op, ErrType, t.String())
	}
	one := binary.LittleEndian.AppendUint64(nil, bits)[:size/8]
	return slices.Repeat(one, int(t.Lanes)), nil
}
