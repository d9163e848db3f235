// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall/js"
	"time"
	"unsafe"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

const (
	machineName = "WebAssembly SIMD of the JavaScript engine"
	memoryBytes = 1 << 30 // as package cpu
	// turns ends kernels that do not end, in a second or so: the page stands still meanwhile.
	turns     = 1 << 30
	chunkTime = 8 * time.Millisecond
	goMemory  = true
	// synchronous is how long a module may be for the thread of a page to compile it itself.
	synchronous = 4 << 10
)

// heap is the program's own memory, a WebAssembly.Memory, or nothing where it is out of reach.
var heap = sync.OnceValue(func() (memory js.Value) {
	defer func() {
		if recover() != nil {
			memory = js.Undefined()
		}
	}()
	memory = goObject().Get("_inst").Get("exports").Get("mem")
	proof := []uint32{rand.Uint32(), rand.Uint32(), rand.Uint32(), rand.Uint32()}
	seen := js.Global().Get("Uint32Array").New(memory.Get("buffer"), address(host.BytesOf(proof)), len(proof))
	for i, word := range proof {
		if uint32(seen.Index(i).Float()) != word {
			return js.Undefined()
		}
	}
	return memory
})

// goObject returns the object of the class Go of wasm_exec.js that runs this program. It is the value that comes after the global object
// among those with fixed numbers, see predefValue of syscall/js, which shows it to nobody.
func goObject() js.Value {
	v := js.Global()
	*(*uint64)(unsafe.Pointer(&v))++
	return v
}

// supported reports whether there is an adapter, and why there is none: pages have no other driver then.
func supported() (ok bool, err error) {
	why := ""
	switch {
	case heap().IsUndefined():
		why = "Go's memory is out of reach"
	case !js.Global().Get("WebAssembly").Call("validate", bytesOf(probe)).Bool():
		why = "the JavaScript engine has no WebAssembly with instructions for vectors"
	default:
		return true, nil
	}
	return false, fail("Adapters", fault.ErrUnsupported, why)
}

// probeRelaxed is one with an instruction of relaxed SIMD:
//
//	(func (param v128) (result v128) local.get 0 local.get 0 local.get 0 f32x4.relaxed_madd)
var probeRelaxed = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x06\x01\x60\x01\x7b\x01\x7b" + "\x03\x02\x01\x00" +
	"\x0a\x0d\x01\x0b\x00\x20\x00\x20\x00\x20\x00\xfd\x85\x02\x0b")

// relaxed reports whether the engine knows relaxed SIMD.
var relaxed = sync.OnceValue(func() bool {
	return js.Global().Get("WebAssembly").Call("validate", bytesOf(probeRelaxed)).Bool()
})

// bytesOf copies bytes to JavaScript.
func bytesOf(b []byte) js.Value {
	v := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(v, b)
	return v
}

// thrown makes an error of a JavaScript exception.
func thrown(err *error) {
	if cause := fault.Panic(recover()); cause != "" {
		*err = exception(cause)
	}
}

type exception string

func (e exception) Error() string { return string(e) }

// translation is a WebAssembly.Module, with its text where workers run it too.
type translation struct {
	module js.Value
	text
}

// translate compiles a module: what is long beside the page.
func translate(_ context.Context, wasm []byte) (t *translation, err error) {
	if t, err = compileModule(wasm); err == nil {
		t.keep(wasm)
	}
	return t, err
}

func compileModule(wasm []byte) (t *translation, err error) {
	defer thrown(&err)
	text, engine := bytesOf(wasm), js.Global().Get("WebAssembly")
	if len(wasm) < synchronous || js.Global().Get("document").Type() != js.TypeObject {
		return &translation{module: engine.Get("Module").New(text)}, nil
	}
	settled := make(chan *translation, 1)
	fulfilled := js.FuncOf(func(_ js.Value, args []js.Value) any { settled <- &translation{module: args[0]}; return nil })
	rejected := js.FuncOf(func(_ js.Value, args []js.Value) any {
		err = exception(args[0].Call("toString").String())
		settled <- nil
		return nil
	})
	engine.Call("compile", text).Call("then", fulfilled, rejected)
	t = <-settled // soon: to give up would leave the functions behind
	fulfilled.Release()
	rejected.Release()
	return t, err
}

// machine is Go's memory.
type machine struct{}

func newMachine() (*machine, error) { return &machine{}, nil }

func (*machine) size() uint64 { return memoryBytes }

// allocate makes memory of so many whole lines. Go aligns these to 16 bytes.
func (*machine) allocate(size uint64) ([]byte, error) {
	return host.BytesOf(make([]uint64, (size+granule-1)/granule*granule/8))[:size:size], nil
}

func (*machine) recycle([]byte) {}

// address returns where memory begins. Go does not move it.
func (*machine) address(mem []byte) uint32 { return uint32(address(mem)) }

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

func (*machine) close(bool, [][]byte) {}

// exports instantiates a module on Go's memory.
func (*machine) exports(t *translation) js.Value {
	imports := map[string]any{"env": map[string]any{"memory": heap()}}
	return js.Global().Get("WebAssembly").Get("Instance").New(t.module, imports).Get("exports")
}
