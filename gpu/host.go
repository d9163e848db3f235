// SPDX-License-Identifier: Apache-2.0

package gpu

// HostWriter returns a function that copies bytes to the beginning of host memory, without any device. They must fit in. It is ready to use until something else is waited for: a page's memory may be gone then.
//
// It is [ErrInvalid] for memory that is not there, [ErrReadOnly], and [ErrUnsupported] for what the platform does not know.
func HostWriter(h Host) (write func(src []byte), err error) {
	const op = "HostWriter"
	switch {
	case !h.Valid():
		return nil, fail(op, ErrInvalid, "memory shorter than it says")
	case h.ReadOnly:
		return nil, fail(op, ErrReadOnly)
	case h.Foreign != nil:
		return foreignWriter(op, h)
	}
	mem := h.Mem()
	return func(src []byte) { copy(mem, src) }, nil
}
