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
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/modules"
)

// code is a compiled kernel, which does not depend on a device. Its module has no text any more.
type code struct {
	*modules.Module
	text *translation
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
	module := prepared(k)
	if module == nil {
		var err error
		if module, err = conf.compile(k, describe(conf.turns).Limits); err != nil {
			if o, ok := errors.AsType[*fault.OpError](err); ok {
				o.Detail = labelled(k) + o.Detail
			}
			return nil, err
		}
	}
	if sharedMemory() {
		module.Wasm = compile.Share(module.Wasm)
	}
	text, err := translate(ctx, module.Wasm)
	if err != nil {
		return nil, fail("NewKernel", fault.ErrCompile, labelled(k), err.Error())
	}
	module.Wasm = nil
	made := &code{module, text}
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
	for _, b := range c.Bindings {
		access := driver.AccessRead
		if b.Write {
			access = driver.AccessReadWrite
		}
		if err := agrees(k, b.Number, access); err != nil {
			return nil, err
		}
		storage = append(storage, place[b.Number])
	}
	if c.Params >= 0 {
		err = agrees(k, c.Params, driver.AccessParams)
	}
	return storage, err
}

// agrees makes sure that the layout of a kernel has a binding as its text has it.
func agrees(k *driver.Kernel, binding int, access driver.Access) error {
	if has := k.Layout.At(binding); has != access {
		return fail("NewKernel", fault.ErrCompile, labelled(k), "binding ", binding, " is ", accesses[access], " in the text and ", accesses[has], " in the layout")
	}
	return nil
}

var accesses = [...]string{"none", "read-only storage", "storage to be written", "a parameter block"}
