// SPDX-License-Identifier: Apache-2.0

/**
 * An element type. Arithmetic on types of less than four bytes is done in float32, int32 or uint32; what is assigned to a matrix of
 * whole numbers wraps, and a bool is 1 unless it is 0. A complex64 is two float32, the real part and the imaginary one: a Float32Array
 * has two numbers for each element, in read, set, wrap and wherever values are given. Operands of float32 may stand beside complex ones, and
 * numbers are numbers without an imaginary part; `a.complex(b)` is a + bi. What is not defined for complex numbers is ErrUnsupported.
 */
export type DType = "float32" | "int32" | "uint32" | "float16" | "int8" | "uint8" | "int16" | "uint16" | "bool" | "complex64";

/** Where elements are neighbours in memory: along a row or along a column. */
export type Order = "row" | "column";

/**
 * What float16 elements are shown as: a Float16Array where the browser has it, else the bits in a Uint16Array. To get
 * numbers anywhere, read `x.astype("float32")`.
 */
export type Float16Elements = Uint16Array | (ArrayBufferView & { readonly length: number; [index: number]: number });

/** A typed array of the elements of a matrix: of bool a Uint8Array, of complex64 a Float32Array with two numbers for each. */
export type Elements = Float32Array | Int32Array | Uint32Array | Float16Elements | Int8Array | Uint8Array | Int16Array;

/**
 * What is copied into a matrix: a typed array of the element type, or numbers, which are converted. Fractions, NaN and what is out of range
 * are `ErrInvalid` in integers. A typed array of another type is `ErrInvalid` unless the option `dtype` names the type to convert to.
 */
export type Values = (ArrayLike<number> | ArrayLike<bigint>) & (ArrayBufferView | readonly (number | boolean)[]);

/** A row of a matrix, in an array of rows. */
export type Row = readonly (number | boolean)[] | (ArrayLike<number> & ArrayBufferView);

/** Arrays in arrays, those of one level equally long. */
export type NestedNumbers = readonly (number | boolean | NestedNumbers)[] | (ArrayLike<number> & ArrayBufferView);
