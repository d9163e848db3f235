// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// machine runs a module with wazero's compiler.
type machine struct {
	mod     *Module
	memory  api.Memory
	run     api.Function
	storage []uint32 // addresses
	args    uint32
	groups  [3]uint32
	scratch uint32
}

const (
	argsAt   = 64
	stopAt   = 16
	paramsAt = 1024
	heapAt   = 4096
)

// memoryModule exports a memory.
func memoryModule(pages uint32) []byte {
	section := func(id byte, content []byte) []byte {
		return append(wasm.AppendU32([]byte{id}, uint32(len(content))), content...)
	}
	b := append([]byte("\x00asm\x01\x00\x00\x00"), section(5, wasm.AppendU32([]byte{1, 0}, pages))...)
	return append(b, section(7, append([]byte{1, 6}, "memory\x02\x00"...))...)
}

// load prepares a kernel; the buffers are bound in order.
func load(tb testing.TB, mod *Module, groups [3]uint32, params []byte, storage [][]byte) *machine {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
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
	h := &machine{mod: mod, memory: env.ExportedMemory("memory"), run: m.ExportedFunction("run"), args: argsAt, groups: groups}
	at := uint32(heapAt)
	put := func(word int, v uint32) { h.memory.WriteUint32Le(argsAt+4*uint32(word), v) }
	for i, g := range groups {
		put(i, g)
	}
	h.memory.Write(paramsAt, params)
	put(argParams, paramsAt)
	put(argStop, stopAt)
	if len(storage) != len(mod.Bindings) {
		tb.Fatalf("%d buffers for %d bindings", len(storage), len(mod.Bindings))
	}
	for i, s := range storage {
		h.memory.Write(at, s)
		put(argStorage+2*i, at)
		put(argStorage+2*i+1, uint32(len(s)))
		h.storage = append(h.storage, at)
		at = (at + uint32(len(s)) + 31) &^ 15
	}
	h.scratch = at
	for i := range mod.Scratch / 4 { // arbitrary content
		h.memory.WriteUint32Le(at+4*uint32(i), 0xdeadbeef)
	}
	return h
}

// launch runs all workgroups.
func (h *machine) launch(tb testing.TB) uint32 {
	tb.Helper()
	n := h.groups[0] * h.groups[1] * h.groups[2]
	r, err := h.run.Call(context.Background(), argsAt, uint64(h.scratch), 0, uint64(n))
	if err != nil {
		tb.Fatal(err)
	}
	return uint32(r[0])
}

// buffer reads a buffer back.
func (h *machine) buffer(i, size int) []byte {
	b, _ := h.memory.Read(h.storage[i], uint32(size))
	return append([]byte(nil), b...)
}

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func float(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func word(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
