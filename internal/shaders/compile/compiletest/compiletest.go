// SPDX-License-Identifier: Apache-2.0

// Package compiletest runs compiled kernels for tests, with wazero.
package compiletest

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// Machine is a kernel with its buffers in memory.
type Machine struct {
	Memory  api.Memory
	run     api.Function
	storage []uint32 // addresses
	groups  [3]uint32
	scratch uint32
	args    [][]byte
	close   func() error
}

const (
	argsAt   = 64
	stopAt   = 16
	paramsAt = 1024
	heapAt   = 4096
	guard    = 0x5ca1ab1e

	argParams, argStop, argTurns, argStorage = 3, 4, 5, 8
)

// cache has the code of modules that were run before.
var cache = wazero.NewCompilationCache()

// memoryModule exports a memory.
func memoryModule(pages uint32) []byte {
	section := func(id byte, content []byte) []byte {
		return append(wasm.AppendU32([]byte{id}, uint32(len(content))), content...)
	}
	b := append([]byte("\x00asm\x01\x00\x00\x00"), section(5, wasm.AppendU32([]byte{1, 0}, pages))...)
	return append(b, section(7, append([]byte{1, 6}, "memory\x02\x00"...))...)
}

// Load prepares a kernel. The buffers are bound in order, and kept.
func Load(tb testing.TB, mod *compile.Module, groups [3]uint32, params []byte, storage [][]byte) *Machine {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache).WithCoreFeatures(api.CoreFeaturesV2))
	tb.Cleanup(func() { _ = rt.Close(ctx) })
	total := heapAt + mod.Scratch + 64
	for _, s := range storage {
		total += len(s) + 64
	}
	env, err := rt.InstantiateWithConfig(ctx, memoryModule(uint32(total/65536+1)), wazero.NewModuleConfig().WithName("env"))
	if err != nil {
		tb.Fatal(err)
	}
	m, err := rt.InstantiateWithConfig(ctx, mod.Wasm, wazero.NewModuleConfig().WithName("kernel"))
	if err != nil {
		tb.Fatal(err)
	}
	h := &Machine{Memory: env.ExportedMemory("memory"), run: m.ExportedFunction("run"), groups: groups, args: storage, close: func() error { return rt.Close(ctx) }}
	at := uint32(heapAt)
	put := func(word int, v uint32) { h.Memory.WriteUint32Le(argsAt+4*uint32(word), v) }
	for i, g := range groups {
		put(i, g)
	}
	h.Memory.Write(paramsAt, params)
	put(argParams, paramsAt)
	put(argStop, stopAt)
	if len(storage) != len(mod.Bindings) {
		tb.Fatalf("%d buffers for %d bindings", len(storage), len(mod.Bindings))
	}
	for i, s := range storage {
		h.Memory.Write(at, s)
		put(argStorage+2*i, at)
		put(argStorage+2*i+1, uint32(len(s)))
		h.storage = append(h.storage, at)
		h.Memory.WriteUint32Le(at+uint32(len(s)+3)&^3, guard)
		at = (at + uint32(len(s)) + 63) &^ 31
	}
	h.scratch = at
	for i := range mod.Scratch / 4 { // arbitrary content
		h.Memory.WriteUint32Le(at+4*uint32(i), 0xdeadbeef)
	}
	return h
}

// SetTurns limits the turns of loops.
func (h *Machine) SetTurns(n uint32) { h.Memory.WriteUint32Le(argsAt+4*argTurns, n) }

// Stop sets the word that stops the kernel.
func (h *Machine) Stop() { h.Memory.WriteUint32Le(stopAt, 1) }

// Launch runs all workgroups, in two parts, and returns the last result.
func (h *Machine) Launch(tb testing.TB) uint32 {
	tb.Helper()
	n := uint64(h.groups[0]) * uint64(h.groups[1]) * uint64(h.groups[2])
	result := uint32(0)
	for _, part := range [][2]uint64{{0, n / 2}, {n / 2, n}} {
		r, err := h.run.Call(context.Background(), argsAt, uint64(h.scratch), part[0], part[1])
		if err != nil {
			tb.Fatal(err)
		}
		if result = uint32(r[0]); result != 0 {
			break
		}
	}
	return result
}

// Read copies the buffers back into the slices that they came from, and looks for writes beside them.
func (h *Machine) Read(tb testing.TB) {
	tb.Helper()
	for i, s := range h.args {
		b, _ := h.Memory.Read(h.storage[i], uint32(len(s)))
		copy(s, b)
		if beyond, _ := h.Memory.ReadUint32Le(h.storage[i] + uint32(len(s)+3)&^3); beyond != guard {
			tb.Errorf("the kernel wrote beyond buffer %d", i)
		}
	}
}

// Run runs a kernel on buffers.
func Run(tb testing.TB, mod *compile.Module, groups [3]uint32, params []byte, storage [][]byte) {
	tb.Helper()
	h := Load(tb, mod, groups, params, storage)
	if r := h.Launch(tb); r != 0 {
		tb.Fatalf("the kernel returned %d", r)
	}
	h.Read(tb)
	_ = h.close()
}
