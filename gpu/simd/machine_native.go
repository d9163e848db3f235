// SPDX-License-Identifier: Apache-2.0

//go:build !js

package simd

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/gemm"
)

const (
	// pages is how much memory a device may have: all that an address of 32 bits reaches but for a page, as wazero takes the size as
	// 32 bits too.
	pages       = 1<<16 - 1
	memoryBytes = pages << 16
	leastBytes  = 256 << 20 // a machine with less is none
	// turns ends kernels that do not end, in a second or two: the garbage collector waits for code that is not Go's, and everybody else
	// for the collector.
	turns = 1 << 29
	// chunkTime is how long a call of a module should take, for the collector's sake.
	chunkTime = 2 * time.Millisecond
	goMemory  = false
)

var machineName = "WebAssembly SIMD on " + runtime.GOARCH + ", products by " + gemm.Kernel()

// threads is how many goroutines run a dispatch.
var threads = func() int { return runtime.GOMAXPROCS(0) }

// compiler is wazero's, for all devices of the process. It is nil where there is none for the processor.
var compiler = sync.OnceValue(func() (r wazero.Runtime) {
	if strconv.IntSize < 64 {
		return nil
	}
	defer func() {
		if recover() != nil { // wazero knows no processor of this kind
			r = nil
		}
	}()
	ctx := context.Background()
	config := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesThreads).WithDebugInfoEnabled(false)
	r = wazero.NewRuntimeWithConfig(ctx, config)
	if m, err := r.CompileModule(ctx, probe); err != nil || m.Close(ctx) != nil {
		return nil
	}
	return r
})

func supported() (bool, error) { return compiler() != nil, nil }

// relaxed says that wazero knows no relaxed SIMD.
func relaxed() bool { return false }

// translation is a module in machine code.
type translation struct{ module wazero.CompiledModule }

// translate compiles a module. The machine code goes with what it returns.
func translate(ctx context.Context, wasm []byte) (*translation, error) {
	m, err := compiler().CompileModule(ctx, wasm)
	if err != nil {
		return nil, err
	}
	t := &translation{m}
	runtime.AddCleanup(t, func(m wazero.CompiledModule) { _ = m.Close(context.Background()) }, m)
	return t, nil
}

// machine is a linear memory, and runs modules on it.
type machine struct {
	mem  []byte
	env  api.Module // exports the memory
	mu   sync.Mutex
	free arena
}

// newMachine makes a machine with as much memory as there are addresses.
func newMachine() (*machine, error) {
	var mem []byte
	err := errors.New("no compiler for this processor")
	if compiler() != nil {
		for size := uint64(memoryBytes); size >= leastBytes; size /= 2 {
			if mem, err = reserve(int(size &^ (1<<16 - 1))); err == nil {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	m := &machine{mem: mem, free: newArena(uint64(len(mem)))}
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(
		func(uint64, uint64) experimental.LinearMemory { return m },
	))
	if m.env, err = compiler().InstantiateWithConfig(ctx, exportMemory(len(mem)>>16), wazero.NewModuleConfig().WithName("")); err != nil {
		_ = release(mem)
		return nil, err
	}
	return m, nil
}

// exportMemory is a module that exports a memory of so many pages.
func exportMemory(pages int) []byte {
	size := leb(pages)
	memory := append(append([]byte{1, 1}, size...), size...) // one memory, which does not grow
	text := append([]byte("\x00asm\x01\x00\x00\x00\x05"), byte(len(memory)))
	text = append(text, memory...)
	return append(text, "\x07\x0a\x01\x06memory\x02\x00"...)
}

// Reallocate is wazero's question for the memory, which is there as a whole.
func (m *machine) Reallocate(size uint64) []byte { return m.mem[:min(size, uint64(len(m.mem)))] }

// Free does nothing: close releases the memory.
func (m *machine) Free() {}

func (m *machine) size() uint64 { return uint64(len(m.mem)) }

// allocate returns zeros.
func (m *machine) allocate(size uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.free.take(size)
	if !ok {
		return nil, fault.ErrNoMemory
	}
	mem := m.mem[at:][:size:size]
	if commit(mem) != nil {
		m.free.give(at, size)
		return nil, fault.ErrNoMemory
	}
	return mem, nil
}

// recycle takes memory of allocate back. What is free is zero.
func (m *machine) recycle(mem []byte) {
	zero(mem)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free.give(uint64(m.address(mem)), uint64(len(mem)))
}

// address returns where a part of the memory begins, as modules see it.
func (m *machine) address(mem []byte) uint32 { return uint32(address(mem) - address(m.mem)) }

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// close releases the memory. All instances are closed. If parts of the memory were lent, the addresses stay, so that nobody finds something
// else there, and so does what is to be kept.
func (m *machine) close(lent bool, keep [][]byte) {
	_ = m.env.Close(context.Background())
	if !lent {
		_ = release(m.mem)
		return
	}
	slices.SortFunc(keep, func(a, b []byte) int { return cmp.Compare(m.address(a), m.address(b)) })
	from := uint32(0)
	for _, k := range keep {
		if at := m.address(k); at >= from { // and not the same once more
			discard(m.mem[from:at])
			from = at + uint32(len(k))
		}
	}
	discard(m.mem[from:m.free.end])
}

// instance is a module on the memory of a machine, for one goroutine at a time.
type instance struct {
	module api.Module
	run    api.Function
	stack  [4]uint64
}

// instantiate waits for a compilation, if need be.
func (m *machine) instantiate(t *translation) (*instance, error) {
	ctx := experimental.WithImportResolver(context.Background(), func(string) api.Module { return m.env })
	module, err := compiler().InstantiateModule(ctx, t.module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	return &instance{module: module, run: module.ExportedFunction("run")}, nil
}

// call runs workgroups of a dispatch. The error is that of a module that trapped.
func (i *instance) call(args, scratch, from, to uint32) (uint32, error) {
	i.stack = [4]uint64{uint64(args), uint64(scratch), uint64(from), uint64(to)}
	err := i.run.CallWithStack(context.Background(), i.stack[:])
	return uint32(i.stack[0]), err
}

func (i *instance) close() { _ = i.module.Close(context.Background()) }
