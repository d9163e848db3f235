// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// append adds an entry behind all others, on the host.
func (s *sparseCore) append(op string, i, j int, value []byte) error {
	if err := s.alive(op); err != nil {
		return err
	}
	major, minor, n := j, i, len(s.index)
	if s.format == CSR {
		major, minor = i, j
	}
	switch {
	case s.external:
		return fail(op, ErrExternalResize, "nothing can be appended")
	case s.view:
		return fail(op, ErrView, "nothing can be appended to a slice")
	case s.format == BlockColumn:
		return fail(op, gpu.ErrUnsupported, "block columns have no single entries")
	case major < 0 || major >= s.majors || minor < 0 || minor >= s.minors:
		return fail(op, buffer.ErrIndex, itoa(i), ", ", itoa(j), " of ", s.shape().String())
	case s.values.Shares() > 1 || s.indices.Shares() > 1:
		return fail(op, ErrView, "the matrix has views")
	case major < s.begun || major == s.begun && n > int(s.ptr[major]) && minor <= int(s.index[n-1]):
		return fail(op, ErrOrder, itoa(i), ", ", itoa(j), " is not behind the last entry")
	case n >= math.MaxInt32:
		return fail(op, gpu.ErrLimit, "more than 2147483647 entries")
	}
	for c := s.begun + 1; c <= major; c++ {
		s.ptr[c] = int32(n)
	}
	s.begun = major
	s.ptr[major+1] = int32(n + 1)
	s.index = append(s.index, int32(minor))
	s.tail = append(s.tail, value...)
	s.changes.Add(1)
	return nil
}

// settle brings the pointers up to date and sends what was appended to the device. What it has sent if it fails is beyond what
// anybody reads.
func (s *sparseCore) settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == len(s.index) && !s.torn {
		return nil
	}
	var err error
	if s.sent < len(s.index) {
		for c := s.begun + 2; c <= s.majors; c++ {
			s.ptr[c] = int32(len(s.index))
		}
		err = s.extend(&s.values, s.sent, gpu.HostBytes(s.tail))
	}
	if err == nil {
		err = s.restructure()
	}
	if s.torn = err != nil; !s.torn {
		s.tail, s.sent = s.tail[:0], len(s.index)
	}
	return err
}

// restructure sends the indices that the device does not have, or all of them, and the pointers.
func (s *sparseCore) restructure() (err error) {
	from := s.sent
	if s.torn { // what a refused batch was to write says so until it is replaced
		_, err = s.indices.Memory(buffer.Replaces)
		from = 0
	}
	if err == nil {
		err = s.extend(&s.indices, from, hostOf(s.index[from:]))
	}
	if err == nil && s.pointers != nil {
		err = s.pointers.Write(0, hostOf(s.ptr))
	}
	return err
}

// tear notes that work on the matrix failed, and with it perhaps what wrote its structure. Of a slice nothing can be sent, and external
// memory is the caller's to touch.
func (s *sparseCore) tear() {
	s.uploads.Add(1)
	if s.external || s.view || s.made != nil {
		return
	}
	s.mu.Lock()
	s.torn = true
	s.mu.Unlock()
}

// extend writes what was appended behind the first words of a buffer, which is replaced by one of twice the size if it is too small,
// once that has everything.
func (s *sparseCore) extend(b **buffer.Buffer, first int, tail gpu.Host) error {
	old, used := *b, 4*first
	need := used + tail.Size
	if old.Size() >= need {
		return old.Write(used, tail)
	}
	most := s.dev.Info().Limits.MaxBufferSize / 4 * 4
	next, err := buffer.New(s.dev, max(need, int(min(uint64(2*old.Size()), most))))
	if err != nil {
		return err
	}
	if err = copied(next, old, used); err == nil {
		err = next.Write(used, tail)
	}
	if err != nil {
		return firstError(err, next.Close())
	}
	*b = next
	return old.Close()
}

// copied copies the first bytes of a buffer by a command of the device: evaluations that wait for this one may do so.
func copied(to, from *buffer.Buffer, size int) error {
	if size == 0 {
		return nil
	}
	src, err := from.Memory(buffer.Reads)
	if err != nil {
		return err
	}
	dst, err := to.Memory(buffer.Replaces)
	if err != nil {
		return err
	}
	if err = dst.CopyFrom(0, src, 0, uint64(size)); err == nil {
		to.Wrote(to.Device(), buffer.Range(0, size))
	}
	return err
}
