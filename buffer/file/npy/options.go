// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Option is a choice of [NewReader], [NewZipReader] or [NewZipWriter]. One that the call does not know is
// [fault.ErrInvalid].
type Option func(*config) error

// config is what options set, and for whom.
type config struct {
	call          string
	littleEndian  bool
	maxTransposed int64
	deflate       bool
}

const (
	forReader    = "NewReader"
	forZipReader = "NewZipReader"
	forZipWriter = "NewZipWriter"
)

func configure(call string, opts []Option) (config, error) {
	c := config{call: call, maxTransposed: 256 << 20}
	for _, o := range opts {
		if o == nil {
			return c, c.invalid("an option is nil")
		}
		if err := o(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *config) invalid(why string) error {
	return fault.Fail("npy: "+c.call, fault.ErrInvalid, why)
}

// RefuseBigEndian makes elements with the high byte first [file.ErrType]; otherwise they are converted as they are read.
func RefuseBigEndian() Option {
	return func(c *config) error {
		if c.call == forZipWriter {
			return c.invalid("RefuseBigEndian is for reading")
		}
		c.littleEndian = true
		return nil
	}
}

// MaxTransposed sets how many bytes the elements of an array in Fortran order may take. A [ZipReader] holds them in
// memory while it reads them row by row; otherwise it holds next to nothing. More are [file.ErrTooLarge]. Without the
// option the limit is 256 MiB.
func MaxTransposed(bytes int64) Option {
	return func(c *config) error {
		if c.call != forZipReader || bytes < 0 {
			return c.invalid("MaxTransposed is for NewZipReader and not negative")
		}
		c.maxTransposed = bytes
		return nil
	}
}

// Deflate compresses an archive's members, as NumPy's savez_compressed does.
func Deflate() Option {
	return func(c *config) error {
		if c.call != forZipWriter {
			return c.invalid("Deflate is for NewZipWriter")
		}
		c.deflate = true
		return nil
	}
}
