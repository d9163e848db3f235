// SPDX-License-Identifier: Apache-2.0

package gpu

import "context"

// Map waits for what is queued, gives the CPU size bytes of the buffer's own memory from offset on while access runs, and
// takes them back. It needs a buffer of [Device.NewMappable]. On devices that take memory when it is first used, only that
// of the range is taken. The slice is dead afterwards.
func (b *Buffer) Map(ctx context.Context, offset, size uint64, access func([]byte) error) (err error) {
	const op = "Map"
	if err := b.lock(op); err != nil {
		return err
	}
	switch {
	case !b.mappable:
		err = fail(op, ErrUnsupported, "the buffer is not mappable")
	case access == nil:
		err = fail(op, ErrInvalid, "nil function")
	case offset > b.size || size > b.size-offset:
		err = fail(op, ErrInvalid, num(size), " bytes at ", num(offset), " of ", num(b.size))
	case size > 0:
		err = b.dev.flush()
	}
	drv := b.dev.drv
	b.dev.mu.Unlock()
	if err != nil {
		return err
	}
	if size == 0 {
		return access(nil)
	}
	skip := offset % 8
	mem, err := drv.Map(ctx, b.id, offset-skip, (skip+size+3)/4*4) // b.size is a multiple of 4
	if err != nil {
		return err
	}
	defer func() {
		if uerr := drv.Unmap(b.id); err == nil {
			err = uerr
		}
	}()
	return access(mem[skip : skip+size : skip+size])
}
