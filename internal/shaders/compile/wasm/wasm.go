// SPDX-License-Identifier: Apache-2.0

// Package wasm encodes WebAssembly modules in the binary format: https://webassembly.github.io/spec/core/binary/.
package wasm

// ValType is the type of a value.
type ValType byte

// The types that compute shaders need.
const (
	I32  ValType = 0x7f
	F32  ValType = 0x7d
	V128 ValType = 0x7b
)

// Type is the type of a function.
type Type struct{ Params, Results []ValType }

// Memory is the imported memory, of any size.
type Memory struct{ Module, Name string }

// Func is a function: the types of its locals without the parameters, and its code without the final end.
type Func struct {
	Type   Type
	Locals []ValType
	Code   []byte
	Export string // empty for none
}

// Module has one memory, which it imports, and functions, which call each other by their place.
type Module struct {
	Memory Memory
	Funcs  []Func
}

const (
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionExport   = 7
	sectionCode     = 10

	kindFunc   = 0
	kindMemory = 2
	typeFunc   = 0x60
)

// Encode returns the binary.
func (m *Module) Encode() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	types, index := m.types()
	b = section(b, sectionType, types)
	b = section(b, sectionImport, m.Memory.encode())
	funcs := AppendU32(nil, uint32(len(m.Funcs)))
	for _, i := range index {
		funcs = AppendU32(funcs, i)
	}
	b = section(b, sectionFunction, funcs)
	b = section(b, sectionExport, m.exports())
	code := AppendU32(nil, uint32(len(m.Funcs)))
	for i := range m.Funcs {
		body := m.Funcs[i].body()
		code = append(AppendU32(code, uint32(len(body))), body...)
	}
	return section(b, sectionCode, code)
}

// types returns the section of the distinct types, and the number of each function's.
func (m *Module) types() (content []byte, index []uint32) {
	known := map[string]uint32{}
	var all []byte
	for _, f := range m.Funcs {
		t := []byte{typeFunc}
		for _, list := range [][]ValType{f.Type.Params, f.Type.Results} {
			t = AppendU32(t, uint32(len(list)))
			for _, v := range list {
				t = append(t, byte(v))
			}
		}
		n, ok := known[string(t)]
		if !ok {
			n = uint32(len(known))
			known[string(t)] = n
			all = append(all, t...)
		}
		index = append(index, n)
	}
	return append(AppendU32(nil, uint32(len(known))), all...), index
}

func (m *Memory) encode() []byte {
	return append(name(name([]byte{1}, m.Module), m.Name), kindMemory, 0, 0)
}

func (m *Module) exports() []byte {
	var b []byte
	n := uint32(0)
	for i, f := range m.Funcs {
		if f.Export != "" {
			b = AppendU32(append(name(b, f.Export), kindFunc), uint32(i))
			n++
		}
	}
	return append(AppendU32(nil, n), b...)
}

// body encodes the locals, equal neighbours as one run, and the code.
func (f *Func) body() []byte {
	var runs []byte
	n := uint32(0)
	for i := 0; i < len(f.Locals); {
		from := i
		for i < len(f.Locals) && f.Locals[i] == f.Locals[from] {
			i++
		}
		runs = append(AppendU32(runs, uint32(i-from)), byte(f.Locals[from]))
		n++
	}
	b := append(AppendU32(nil, n), runs...)
	return append(append(b, f.Code...), byte(End))
}

func section(b []byte, id byte, content []byte) []byte {
	return append(AppendU32(append(b, id), uint32(len(content))), content...)
}

func name(b []byte, s string) []byte { return append(AppendU32(b, uint32(len(s))), s...) }

// AppendU32 appends an unsigned LEB128 number.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendS32 appends a signed LEB128 number.
func AppendS32(b []byte, v int32) []byte {
	for v < -0x40 || v >= 0x40 {
		b = append(b, byte(v)&0x7f|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}

// Append appends an opcode.
func (o Op) Append(b []byte) []byte {
	if prefix := byte(o >> 16); prefix != 0 {
		return AppendU32(append(b, prefix), uint32(o&0xffff))
	}
	return append(b, byte(o))
}
