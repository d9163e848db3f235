// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/recent"
)

// code is a compiled kernel, which does not depend on a device.
type code struct {
	wasm     []byte
	text     *translation
	scratch  int       // bytes of memory that each worker needs
	bindings []binding // of the module, in the order of its arguments
}

// binding is one that a module uses.
type binding struct {
	number int
	access driver.Access
	least  int // bytes that it needs
}

// codes has the kernels that were compiled last, for all devices: to compile takes some milliseconds.
var codes = cache{recent: recent.Map[string, *code]{Most: 512}}

type cache struct {
	mu     sync.Mutex
	recent recent.Map[string, *code]
}

// of returns the code of a kernel.
func (c *cache) of(ctx context.Context, k *driver.Kernel, conf *config) (*code, error) {
	flags := [...]string{"", "b", "e", "be"}[flag(k.Bounded)+2*flag(k.Exact)]
	key := strings.Join([]string{flags, k.Entry, k.Source}, "\x00")
	c.mu.Lock()
	found := c.recent.Get(key)
	c.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made, err := conf.compile(k, describe(conf.turns).Limits)
	if err != nil {
		if o, ok := errors.AsType[*fault.OpError](err); ok {
			o.Detail = labelled(k) + o.Detail
		}
		return nil, err
	}
	if made.text, err = translate(ctx, made.wasm); err != nil {
		return nil, fail("NewKernel", fault.ErrCompile, labelled(k), err.Error())
	}
	made.wasm = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent.Put(key, made)
	return made, nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// labelled says which kernel something is wrong with, if that has a name.
func labelled(k *driver.Kernel) string {
	if k.Label == "" {
		return ""
	}
	return fault.Short(k.Label) + ": "
}

// match finds the storage bindings of the code among those of a kernel's layout.
func (c *code) match(k *driver.Kernel) (storage []int, err error) {
	place := map[int]int{}
	for i := range driver.MaxBindings {
		if a := k.Layout.At(i); a == driver.AccessRead || a == driver.AccessReadWrite {
			place[i] = len(place)
		}
	}
	for _, b := range c.bindings {
		switch has := k.Layout.At(b.number); {
		case has != b.access:
			return nil, fail("NewKernel", fault.ErrCompile, labelled(k), "binding ", b.number, " is ", accesses[b.access], " in the text and ",
				accesses[has], " in the layout")
		case has != driver.AccessParams:
			storage = append(storage, place[b.number])
		}
	}
	return storage, nil
}

var accesses = [...]string{"none", "read-only storage", "storage to be written", "a parameter block"}
