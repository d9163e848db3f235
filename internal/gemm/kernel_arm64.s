// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"

// ROW points at a row of a matrix: the first row if there is none such, whose sums nobody then stores.
#define ROW(number, count, step, last, to) \
	ADD  step, last, to          \
	CMP  $number, count          \
	CSEL GT, to, R0, to

#define CLEAR3(a, b, c) \
	VEOR a.B16, a.B16, a.B16 \
	VEOR b.B16, b.B16, b.B16 \
	VEOR c.B16, c.B16, c.B16

// PRODUCT adds the product of a number of A and 12 numbers of B.
#define PRODUCT(row, factor, a, b, c) \
	VLD1R.P (row)(R9), [factor.S4]      \
	VFMLA   V0.S4, factor.S4, a.S4      \
	VFMLA   V1.S4, factor.S4, b.S4      \
	VFMLA   V2.S4, factor.S4, c.S4

// STORE adds C's old numbers to a row of sums, times R16 (0 or 1) many, and stores them. It ends after the last row.
#define STORE(a, b, c) \
	CBZ    R16, 5(PC)                     \
	VLD1   (R14), [V0.S4, V1.S4, V2.S4]   \
	VFMLA  V0.S4, V7.S4, a.S4             \
	VFMLA  V1.S4, V7.S4, b.S4             \
	VFMLA  V2.S4, V7.S4, c.S4             \
	VST1.P [a.S4, b.S4, c.S4], (R14)(R15) \
	SUBS   $1, R13, R13                   \
	BEQ    done

// func tileNEON(p *tile)
// Rows of A are in R0 to R7, sums in V8 to V31. The assembler knows no sum of vectors: V7 is ones to multiply by.
TEXT ·tileNEON(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R25
	MOVD 0(R25), R0
	MOVD 24(R25), R8
	MOVD 32(R25), R9
	MOVD 40(R25), R10
	MOVD 64(R25), R11
	MOVD 72(R25), R14
	MOVD 96(R25), R15
	MOVD 104(R25), R12
	MOVD 112(R25), R13
	MOVBU 128(R25), R16
	LSL  $2, R8
	LSL  $2, R9
	LSL  $2, R11
	LSL  $2, R15
	FMOVS $1.0, F7
	VDUP V7.S[0], V7.S4
	ROW(1, R13, R8, R0, R1)
	ROW(2, R13, R8, R1, R2)
	ROW(3, R13, R8, R2, R3)
	ROW(4, R13, R8, R3, R4)
	ROW(5, R13, R8, R4, R5)
	ROW(6, R13, R8, R5, R6)
	ROW(7, R13, R8, R6, R7)
	CLEAR3(V8, V9, V10)
	CLEAR3(V11, V12, V13)
	CLEAR3(V14, V15, V16)
	CLEAR3(V17, V18, V19)
	CLEAR3(V20, V21, V22)
	CLEAR3(V23, V24, V25)
	CLEAR3(V26, V27, V28)
	CLEAR3(V29, V30, V31)
	CMP  $4, R13
	BLE  few

loop:
	VLD1.P (R10)(R11), [V0.S4, V1.S4, V2.S4]
	PRODUCT(R0, V3, V8, V9, V10)
	PRODUCT(R1, V4, V11, V12, V13)
	PRODUCT(R2, V5, V14, V15, V16)
	PRODUCT(R3, V6, V17, V18, V19)
	PRODUCT(R4, V3, V20, V21, V22)
	PRODUCT(R5, V4, V23, V24, V25)
	PRODUCT(R6, V5, V26, V27, V28)
	PRODUCT(R7, V6, V29, V30, V31)
	SUBS $1, R12, R12
	BNE  loop
	B    store

few:
	VLD1.P (R10)(R11), [V0.S4, V1.S4, V2.S4]
	PRODUCT(R0, V3, V8, V9, V10)
	PRODUCT(R1, V4, V11, V12, V13)
	PRODUCT(R2, V5, V14, V15, V16)
	PRODUCT(R3, V6, V17, V18, V19)
	SUBS $1, R12, R12
	BNE  few

store:
	STORE(V8, V9, V10)
	STORE(V11, V12, V13)
	STORE(V14, V15, V16)
	STORE(V17, V18, V19)
	STORE(V20, V21, V22)
	STORE(V23, V24, V25)
	STORE(V26, V27, V28)
	STORE(V29, V30, V31)

done:
	RET

#define ADDROW(row, factor) \
	VLD1.P 32(row), [V2.S4, V3.S4]   \
	VFMLA  V2.S4, factor.S4, V0.S4   \
	VFMLA  V3.S4, factor.S4, V1.S4

#define ADDNUMBER(row, factor) \
	FMOVS.P 4(row), F2         \
	FMADDS  F2, F0, factor, F0

// func axpyNEON(p *vectors)
// Rows are in R0 to R7, and their factors in V16 to V23.
TEXT ·axpyNEON(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R25
	MOVD 0(R25), R0
	MOVD 24(R25), R8
	MOVD 32(R25), R9
	MOVD 56(R25), R10
	MOVD 80(R25), R12
	MOVD 88(R25), R13
	MOVBU 96(R25), R16
	LSL  $2, R8
	VLD1R.P 4(R9), [V16.S4]
	CMP  $1, R13
	BEQ  one8
	ADD  R8, R0, R1
	ADD  R8, R1, R2
	ADD  R8, R2, R3
	ADD  R8, R3, R4
	ADD  R8, R4, R5
	ADD  R8, R5, R6
	ADD  R8, R6, R7
	VLD1R.P 4(R9), [V17.S4]
	VLD1R.P 4(R9), [V18.S4]
	VLD1R.P 4(R9), [V19.S4]
	VLD1R.P 4(R9), [V20.S4]
	VLD1R.P 4(R9), [V21.S4]
	VLD1R.P 4(R9), [V22.S4]
	VLD1R.P 4(R9), [V23.S4]

all8:
	CMP  $8, R12
	BLT  all1
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	CBZ  R16, 2(PC)
	VLD1 (R10), [V0.S4, V1.S4]
	ADDROW(R0, V16)
	ADDROW(R1, V17)
	ADDROW(R2, V18)
	ADDROW(R3, V19)
	ADDROW(R4, V20)
	ADDROW(R5, V21)
	ADDROW(R6, V22)
	ADDROW(R7, V23)
	VST1.P [V0.S4, V1.S4], 32(R10)
	SUB  $8, R12
	B    all8

all1:
	CBZ  R12, done
	FMOVS ZR, F0
	CBZ  R16, 2(PC)
	FMOVS (R10), F0
	ADDNUMBER(R0, F16)
	ADDNUMBER(R1, F17)
	ADDNUMBER(R2, F18)
	ADDNUMBER(R3, F19)
	ADDNUMBER(R4, F20)
	ADDNUMBER(R5, F21)
	ADDNUMBER(R6, F22)
	ADDNUMBER(R7, F23)
	FMOVS.P F0, 4(R10)
	SUB  $1, R12
	B    all1

one8:
	CMP  $8, R12
	BLT  one1
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	CBZ  R16, 2(PC)
	VLD1 (R10), [V0.S4, V1.S4]
	ADDROW(R0, V16)
	VST1.P [V0.S4, V1.S4], 32(R10)
	SUB  $8, R12
	B    one8

one1:
	CBZ  R12, done
	FMOVS ZR, F0
	CBZ  R16, 2(PC)
	FMOVS (R10), F0
	ADDNUMBER(R0, F16)
	FMOVS.P F0, 4(R10)
	SUB  $1, R12
	B    one1

done:
	RET

#define DOTROW(row, a, b) \
	VLD1.P 32(row), [V2.S4, V3.S4] \
	VFMLA  V2.S4, V0.S4, a.S4      \
	VFMLA  V3.S4, V1.S4, b.S4

#define DOTNUMBER(row, sum) \
	FMOVS.P 4(row), F2      \
	FMADDS  F2, sum, F0, sum

// REDUCE stores the sum of two vectors and a number.
#define REDUCE(a, b, sum) \
	VFMLA a.S4, V7.S4, b.S4           \
	VEXT  $8, b.B16, b.B16, V2.B16    \
	VFMLA V2.S4, V7.S4, b.S4          \
	VDUP  b.S[1], V2.S4               \
	VFMLA V2.S4, V7.S4, b.S4          \
	VDUP  b.S[0], V2.S4               \
	FADDS F2, sum, sum                \
	FMOVS.P sum, 4(R10)

// func dotNEON(p *vectors)
// Rows are in R0 to R3, and their sums in V16 to V23 and F24 to F27.
TEXT ·dotNEON(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R25
	MOVD 0(R25), R0
	MOVD 24(R25), R8
	MOVD 32(R25), R9
	MOVD 56(R25), R10
	MOVD 80(R25), R12
	MOVD 88(R25), R13
	LSL  $2, R8
	FMOVS $1.0, F7
	VDUP V7.S[0], V7.S4
	CLEAR3(V16, V17, V18)
	CLEAR3(V19, V20, V21)
	CLEAR3(V22, V23, V24)
	CLEAR3(V25, V26, V27)
	CMP  $1, R13
	BEQ  one8
	ADD  R8, R0, R1
	ADD  R8, R1, R2
	ADD  R8, R2, R3

all8:
	CMP  $8, R12
	BLT  all1
	VLD1.P 32(R9), [V0.S4, V1.S4]
	DOTROW(R0, V16, V20)
	DOTROW(R1, V17, V21)
	DOTROW(R2, V18, V22)
	DOTROW(R3, V19, V23)
	SUB  $8, R12
	B    all8

all1:
	CBZ  R12, allsums
	FMOVS.P 4(R9), F0
	DOTNUMBER(R0, F24)
	DOTNUMBER(R1, F25)
	DOTNUMBER(R2, F26)
	DOTNUMBER(R3, F27)
	SUB  $1, R12
	B    all1

allsums:
	REDUCE(V16, V20, F24)
	REDUCE(V17, V21, F25)
	REDUCE(V18, V22, F26)
	REDUCE(V19, V23, F27)
	RET

one8:
	CMP  $8, R12
	BLT  one1
	VLD1.P 32(R9), [V0.S4, V1.S4]
	DOTROW(R0, V16, V20)
	SUB  $8, R12
	B    one8

one1:
	CBZ  R12, onesum
	FMOVS.P 4(R9), F0
	DOTNUMBER(R0, F24)
	SUB  $1, R12
	B    one1

onesum:
	REDUCE(V16, V20, F24)
	RET
