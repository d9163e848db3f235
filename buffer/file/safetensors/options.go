// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"maps"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Option is a choice of [NewReader] or [NewWriter]. One that the call does not know is [fault.ErrInvalid].
type Option func(*config) error

// config is what options set, and for whom.
type config struct {
	call      string
	size      int64
	maxHeader int64
	metadata  map[string]string
}

const (
	forReader = "NewReader"
	forWriter = "NewWriter"
)

func configure(call string, opts []Option) (config, error) {
	c := config{call: call, size: -1, maxHeader: maxHeader}
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
	return fault.Fail("safetensors: "+c.call, fault.ErrInvalid, why)
}

// Size tells how many bytes the input of [NewReader] holds, where it cannot tell itself.
func Size(bytes int64) Option {
	return func(c *config) error {
		if c.call != forReader || bytes < 0 {
			return c.invalid("Size is for NewReader and not negative")
		}
		c.size = bytes
		return nil
	}
}

// MaxHeader lowers the format's limit for headers, 100,000,000 bytes. Reading takes several times as much memory as the
// header has bytes. Longer ones are [file.ErrTooLarge].
func MaxHeader(bytes int64) Option {
	return func(c *config) error {
		if c.call != forReader || bytes < 0 || bytes > maxHeader {
			return c.invalid("MaxHeader is for NewReader, from 0 to 100,000,000")
		}
		c.maxHeader = bytes
		return nil
	}
}

// Metadata is written into the header for whoever reads it: texts under names of their own, all UTF-8.
func Metadata(m map[string]string) Option {
	return func(c *config) error {
		if c.call != forWriter {
			return c.invalid("Metadata is for NewWriter; a Reader has a method")
		}
		c.metadata = maps.Clone(m)
		return nil
	}
}
