// SPDX-License-Identifier: Apache-2.0

package wasm

// Op is an opcode. Those behind a prefix have it in the third byte.
type Op uint32

const (
	misc   Op = 0xfc << 16
	simd   Op = 0xfd << 16
	atomic Op = 0xfe << 16
)

// BlockEmpty is the type of a block that leaves nothing on the stack.
const BlockEmpty = 0x40

// Opcodes of control flow, locals, memory and scalars.
const (
	Unreachable     Op = 0x00
	Block           Op = 0x02
	Loop            Op = 0x03
	If              Op = 0x04
	Else            Op = 0x05
	End             Op = 0x0b
	Br              Op = 0x0c
	BrIf            Op = 0x0d
	Return          Op = 0x0f
	Call            Op = 0x10
	Select          Op = 0x1b
	LocalGet        Op = 0x20
	LocalSet        Op = 0x21
	LocalTee        Op = 0x22
	I32Load         Op = 0x28
	F32Load         Op = 0x2a
	I32Store        Op = 0x36
	F32Store        Op = 0x38
	I32Const        Op = 0x41
	F32Const        Op = 0x43
	I32Eqz          Op = 0x45
	I32Eq           Op = 0x46
	I32Ne           Op = 0x47
	I32LtS          Op = 0x48
	I32LtU          Op = 0x49
	I32GtS          Op = 0x4a
	I32GtU          Op = 0x4b
	I32LeS          Op = 0x4c
	I32LeU          Op = 0x4d
	I32GeS          Op = 0x4e
	I32GeU          Op = 0x4f
	F32Eq           Op = 0x5b
	F32Ne           Op = 0x5c
	F32Lt           Op = 0x5d
	F32Gt           Op = 0x5e
	F32Le           Op = 0x5f
	F32Ge           Op = 0x60
	I32Clz          Op = 0x67
	I32Ctz          Op = 0x68
	I32Popcnt       Op = 0x69
	I32Add          Op = 0x6a
	I32Sub          Op = 0x6b
	I32Mul          Op = 0x6c
	I32DivS         Op = 0x6d
	I32DivU         Op = 0x6e
	I32RemS         Op = 0x6f
	I32RemU         Op = 0x70
	I32And          Op = 0x71
	I32Or           Op = 0x72
	I32Xor          Op = 0x73
	I32Shl          Op = 0x74
	I32ShrS         Op = 0x75
	I32ShrU         Op = 0x76
	F32Abs          Op = 0x8b
	F32Neg          Op = 0x8c
	F32Ceil         Op = 0x8d
	F32Floor        Op = 0x8e
	F32Trunc        Op = 0x8f
	F32Nearest      Op = 0x90
	F32Sqrt         Op = 0x91
	F32Add          Op = 0x92
	F32Sub          Op = 0x93
	F32Mul          Op = 0x94
	F32Div          Op = 0x95
	F32Min          Op = 0x96
	F32Max          Op = 0x97
	F32ConvertI32S  Op = 0xb2
	F32ConvertI32U  Op = 0xb3
	I32ReinterpretF Op = 0xbc
	F32ReinterpretI Op = 0xbe

	I32TruncSatF32S = misc
	I32TruncSatF32U = misc | 1
	MemoryCopy      = misc | 10
	MemoryFill      = misc | 11
)

// Opcodes of vectors of 128 bits.
const (
	V128Load          = simd
	V128Load32Splat   = simd | 9
	V128Store         = simd | 11
	V128Const         = simd | 12
	I8x16Shuffle      = simd | 13
	I8x16Swizzle      = simd | 14
	I32x4Splat        = simd | 17
	F32x4Splat        = simd | 19
	I32x4ExtractLane  = simd | 27
	I32x4ReplaceLane  = simd | 28
	F32x4ExtractLane  = simd | 31
	F32x4ReplaceLane  = simd | 32
	I32x4Eq           = simd | 55
	I32x4Ne           = simd | 56
	I32x4LtS          = simd | 57
	I32x4LtU          = simd | 58
	I32x4GtS          = simd | 59
	I32x4GtU          = simd | 60
	I32x4LeS          = simd | 61
	I32x4LeU          = simd | 62
	I32x4GeS          = simd | 63
	I32x4GeU          = simd | 64
	F32x4Eq           = simd | 65
	F32x4Ne           = simd | 66
	F32x4Lt           = simd | 67
	F32x4Gt           = simd | 68
	F32x4Le           = simd | 69
	F32x4Ge           = simd | 70
	V128Not           = simd | 77
	V128And           = simd | 78
	V128AndNot        = simd | 79
	V128Or            = simd | 80
	V128Xor           = simd | 81
	V128Bitselect     = simd | 82
	V128AnyTrue       = simd | 83
	V128Load32Lane    = simd | 86
	V128Store32Lane   = simd | 90
	V128Store64Lane   = simd | 91
	V128Load32Zero    = simd | 92
	V128Load64Zero    = simd | 93
	I8x16Popcnt       = simd | 98
	F32x4Ceil         = simd | 103
	F32x4Floor        = simd | 104
	F32x4Trunc        = simd | 105
	F32x4Nearest      = simd | 106
	I32x4Abs          = simd | 160
	I32x4Neg          = simd | 161
	I32x4AllTrue      = simd | 163
	I32x4Shl          = simd | 171
	I32x4ShrS         = simd | 172
	I32x4ShrU         = simd | 173
	I32x4Add          = simd | 174
	I32x4Sub          = simd | 177
	I32x4Mul          = simd | 181
	I32x4MinS         = simd | 182
	I32x4MinU         = simd | 183
	I32x4MaxS         = simd | 184
	I32x4MaxU         = simd | 185
	F32x4Abs          = simd | 224
	F32x4Neg          = simd | 225
	F32x4Sqrt         = simd | 227
	F32x4Add          = simd | 228
	F32x4Sub          = simd | 229
	F32x4Mul          = simd | 230
	F32x4Div          = simd | 231
	F32x4Pmin         = simd | 234
	F32x4Pmax         = simd | 235
	I32x4TruncSatF32S = simd | 248
	I32x4TruncSatF32U = simd | 249
	F32x4ConvertI32S  = simd | 250
	F32x4ConvertI32U  = simd | 251
	F32x4RelaxedMadd  = simd | 0x105
	F32x4RelaxedNmadd = simd | 0x106
)

// Opcodes of atomics, on words of 32 bits.
const (
	AtomicLoad    = atomic | 0x10
	AtomicStore   = atomic | 0x17
	AtomicAdd     = atomic | 0x1e
	AtomicSub     = atomic | 0x25
	AtomicAnd     = atomic | 0x2c
	AtomicOr      = atomic | 0x33
	AtomicXor     = atomic | 0x3a
	AtomicXchg    = atomic | 0x41
	AtomicCmpxchg = atomic | 0x48
)
