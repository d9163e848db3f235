// SPDX-License-Identifier: Apache-2.0

//go:build sublet_simd

package simd

import (
	"sync"
	"syscall/js"
)

// The npm package's programs are loaded by web/src/loader.mjs, which has functions to import for them: a call costs a tenth of that by
// package syscall/js. They are those of web/src/kernels.mjs.

// runKernel calls the function "run" of the module with the number. Its result is trapped if there was an exception.
//
//go:wasmimport sublet run
func runKernel(number, args, scratch, from, to uint32) uint32

const trapped = 1<<32 - 1

// kernels is where functions get their numbers.
var kernels = sync.OnceValue(func() js.Value { return goObject().Get("importObject").Get("sublet") })

// instance is a module on Go's memory.
type instance struct{ number uint32 }

func (m *machine) instantiate(t *translation) (in *instance, err error) {
	defer thrown(&err)
	return &instance{uint32(kernels().Call("add", m.exports(t).Get("run")).Int())}, nil
}

// call runs workgroups of a dispatch. The error is that of a module that trapped.
func (i *instance) call(args, scratch, from, to uint32) (result uint32, err error) {
	if result = runKernel(i.number, args, scratch, from, to); result == trapped {
		err = exception(kernels().Call("trap").String())
	}
	return result, err
}

func (i *instance) close() { kernels().Call("remove", i.number) }
