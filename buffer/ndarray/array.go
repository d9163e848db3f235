// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package. Compare with errors.Is; all but [PrecisionError] come wrapped in a [gpu.OpError]. Others
// are those of packages gpu and buffer.
var (
	ErrType      = fault.New("ErrType", "element type that is not possible here")
	ErrLength    = fault.New("ErrLength", "sizes in bytes differ")
	ErrValue     = fault.New("ErrValue", "value that the element type does not have")
	ErrPrecision = fault.New("ErrPrecision", "value beyond the precision")
	ErrName      = fault.New("ErrName", "unknown name")
)

func fail(op string, err error, detail ...any) error {
	return fault.Fail("ndarray: "+op, err, fault.Text(detail...))
}

// named returns an error of a lower package, or nil, under the name of this package's call.
func named(op string, err error) error { return fault.In("ndarray: ", op, err) }

// text writes a shape as "2x3", one without dimensions as "scalar".
func text(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	var b []byte
	for i, d := range shape {
		if i > 0 {
			b = append(b, 'x')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	return string(b)
}

// Array is a handle of an array of any number of dimensions in the memory of a device or of the host. Make one with
// [Alloc], [FromSlice], [Wrap] or [New], and Close it when done. All methods may be called from
// several goroutines.
type Array struct {
	layout
	dev *gpu.Device
	box atomic.Pointer[container] // nil: closed
}

// container is the reference-counted state that the handles of one array share. A view counts as a reference to its base.
type container struct {
	refs  atomic.Int32
	base  *container
	store *storage
}

func (c *container) release() error {
	for c.refs.Add(-1) == 0 {
		if c.base == nil {
			return c.store.drop()
		}
		c = c.base
	}
	return nil
}

func handle(l layout, dev *gpu.Device, c *container) *Array {
	a := &Array{layout: l, dev: dev}
	a.box.Store(c)
	return a
}

func newArray(l layout, dev *gpu.Device, base *container, store *storage) *Array {
	c := &container{base: base, store: store}
	c.refs.Store(1)
	return handle(l, dev, c)
}

// container returns the handle's container, or an error for a nil or closed handle.
func (a *Array) container(op string) (*container, error) {
	if a == nil {
		return nil, fail(op, buffer.ErrNil, "nil array")
	}
	if c := a.box.Load(); c != nil {
		return c, nil
	}
	return nil, fail(op, gpu.ErrClosed, "the array")
}

// retain returns the handle's container with another reference.
func (a *Array) retain(op string) (*container, error) {
	c, err := a.container(op)
	if err != nil {
		return nil, err
	}
	for n := c.refs.Load(); n > 0; n = c.refs.Load() {
		if c.refs.CompareAndSwap(n, n+1) {
			return c, nil
		}
	}
	return nil, fail(op, gpu.ErrClosed, "the array")
}

// derive makes a view: another array that keeps this one's memory alive.
func (a *Array) derive(op string, change func(layout) (layout, error)) (*Array, error) {
	if _, err := a.container(op); err != nil {
		return nil, err
	}
	l, err := change(a.layout)
	if err != nil {
		return nil, err
	}
	c, err := a.retain(op)
	if err != nil {
		return nil, err
	}
	if l.elements() == 0 {
		l.strides = make([]int, len(l.shape))
	}
	return newArray(l, a.dev, c, c.store), nil
}

// Share returns another handle of the same array: changes made through one are seen through all. Each needs its own Close; closing one
// twice has no effect on the others.
func (a *Array) Share() (*Array, error) {
	c, err := a.retain("Share")
	if err != nil {
		return nil, err
	}
	return handle(a.layout, a.dev, c), nil
}

// Move returns a new handle of the array and closes this one.
func (a *Array) Move() (*Array, error) {
	const op = "Move"
	c, err := a.container(op)
	if err != nil {
		return nil, err
	}
	if !a.box.CompareAndSwap(c, nil) {
		return nil, fail(op, gpu.ErrClosed, "the array")
	}
	return handle(a.layout, a.dev, c), nil
}

// Clone returns an array with the same layout and elements. It is copied on write: at the first write to one of the two, or to a view of
// them, that one gets a copy of the whole memory. Memory that may be changed elsewhere - wrapped memory that is not read-only, and a
// buffer of which others have shares - is copied at once. The clone of read-only memory may be written. Results that kernels wrote into
// memory larger than the device's largest buffer must be synced before: [buffer.ErrUnsynced].
func (a *Array) Clone() (*Array, error) { return a.clone(context.Background()) }

func (a *Array) clone(ctx context.Context) (*Array, error) {
	const op = "Clone"
	c, err := a.container(op)
	if err != nil {
		return nil, err
	}
	s, err := c.store.share(ctx, op)
	if err != nil {
		return nil, err
	}
	return newArray(a.layout, a.dev, nil, s), nil
}

// Close drops the handle. When all handles and views of an array are closed and no clone shares its memory, owned memory is freed and the
// release function of wrapped memory is called. Later calls do nothing. If a handle becomes garbage without Close, only owned memory is
// freed.
func (a *Array) Close() error {
	if a == nil {
		return nil
	}
	if c := a.box.Swap(nil); c != nil {
		return c.release()
	}
	return nil
}

// UseCount returns how many handles and views use the array, 0 for a closed handle. Other goroutines may change it at any time.
func (a *Array) UseCount() int {
	if c, err := a.container("UseCount"); err == nil {
		return int(c.refs.Load())
	}
	return 0
}

// Same reports whether b is a handle of the same array. Views and clones are different arrays.
func (a *Array) Same(b *Array) bool {
	ca, erra := a.container("Same")
	cb, errb := b.container("Same")
	return erra == nil && errb == nil && ca == cb
}

// DType returns the element type.
func (a *Array) DType() dtype.Type { return a.at().t }

// Shape returns the dimensions. The slice is the caller's.
func (a *Array) Shape() []int { return slices.Clone(a.at().shape) }

// Strides returns the distances in elements of neighbours along each dimension. The slice is the caller's.
func (a *Array) Strides() []int { return slices.Clone(a.at().strides) }

// Offset returns the offset of the first element in the buffer, in bytes.
func (a *Array) Offset() int { return a.at().offset }

// Len returns the number of elements.
func (a *Array) Len() int { return a.at().elements() }

// Size returns the size of the elements in bytes, gaps not counted.
func (a *Array) Size() int { return a.at().bytes() }

// Device returns the device of the memory.
func (a *Array) Device() *gpu.Device {
	if a == nil {
		return nil
	}
	return a.dev
}

// IsContiguous reports whether the elements lie in C order without gaps. Strides of dimensions of one element do not
// matter, and an array without elements is contiguous.
func (a *Array) IsContiguous() bool { return a.at().contiguous() }

// Buffer returns a share of the memory, which the caller closes: for kernels, matrices and DLPack. Memory shared with clones is copied
// before, as by a write, unless it is wrapped and read-only. As long as the caller has the share, Clone copies at once.
func (a *Array) Buffer() (share *buffer.Buffer, err error) {
	const op = "Buffer"
	c, err := a.container(op)
	if err != nil {
		return nil, err
	}
	lend := func(*buffer.Buffer) error {
		share, err = c.store.use(op, (*buffer.Buffer).Share)
		return err
	}
	ctx := context.Background()
	if err = c.store.write(ctx, op, lend); errors.Is(err, gpu.ErrReadOnly) {
		err = c.store.read(ctx, op, lend)
	}
	return share, err
}

// read calls fn with the memory.
func (a *Array) read(ctx context.Context, op string, fn func(*buffer.Buffer) error) error {
	c, err := a.container(op)
	if err != nil {
		return err
	}
	return c.store.read(ctx, op, fn)
}

// write calls fn with the memory, which no clone uses.
func (a *Array) write(ctx context.Context, op string, fn func(*buffer.Buffer) error) error {
	c, err := a.writable(op)
	if err != nil {
		return err
	}
	return c.store.write(ctx, op, fn)
}

// writable is container for arrays that will be written. Arrays with overlapping elements cannot be.
func (a *Array) writable(op string) (*container, error) {
	c, err := a.container(op)
	if err == nil && a.repeats() {
		err = fail(op, buffer.ErrStride, "elements share memory")
	}
	return c, err
}
