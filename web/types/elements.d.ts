// SPDX-License-Identifier: Apache-2.0

/**
 * An element type. Arithmetic on types of less than four bytes is done in float32, int32 or uint32; what is assigned to a matrix of
 * whole numbers wraps, and a bool is 1 unless it is 0. A complex64 is two float32, the real part and the imaginary one: a Float32Array
 * has two numbers for each element, in read, set, wrap and wherever values are given. Operands of float32 may stand beside complex ones, and
 * numbers are numbers without an imaginary part; `a.complex(b)` is a + bi. What is not defined for complex numbers is ErrUnsupported.
 */
export type DType = "float32" | "int32" | "uint32" | "float16" | "int8" | "uint8" | "int16" | "uint16" | "bool" | "complex64";

/** The element types of real numbers, which functions such as `exp` and `mean` are defined for. */
export type FloatDType = "float32" | "float16";

/** The element types of whole numbers, which have bits to `bitwiseAnd`. */
export type IntegerDType = Exclude<DType, FloatDType | "complex64">;

/** The element types of indices of rows and columns: all real numbers. Fractions are cut off. */
export type IndexDType = Exclude<DType, "complex64">;

/** Where elements are neighbours in memory: along a row or along a column. */
export type Order = "row" | "column";

/**
 * What float16 elements are shown as: a Float16Array where the browser has it, else the bits in a Uint16Array. To get
 * numbers anywhere, read `x.astype("float32")`.
 */
export type Float16Elements = Bits16 | (ArrayBufferView & ArrayLike<number> & Iterable<number>);

// What is read lies in an ArrayBuffer. TypeScript before 5.7 has no name for that; this names the same class in all versions.
type Bits16 = ReturnType<typeof Uint16Array.from>;
type Floats = ReturnType<typeof Float32Array.from>;
type Bytes = ReturnType<typeof Uint8Array.from>;

/** The typed arrays of element types: of bool a Uint8Array, of complex64 a Float32Array with two numbers for each. */
export interface ElementArrays {
  readonly float32: Floats;
  readonly int32: ReturnType<typeof Int32Array.from>;
  readonly uint32: ReturnType<typeof Uint32Array.from>;
  readonly float16: Float16Elements;
  readonly int8: ReturnType<typeof Int8Array.from>;
  readonly uint8: Bytes;
  readonly int16: ReturnType<typeof Int16Array.from>;
  readonly uint16: Bits16;
  readonly bool: Bytes;
  readonly complex64: Floats;
  readonly [any: string]: any; // of a Matrix<any>
}

/** A typed array of the elements of a matrix: `Elements<"float32">` is a Float32Array, `Elements` alone one of any element type. */
export type Elements<T extends DType = DType> = ElementArrays[T];

/** What {@link RealOf} looks up. */
export interface RealDTypes {
  readonly float32: "float32";
  readonly int32: "int32";
  readonly uint32: "uint32";
  readonly float16: "float16";
  readonly int8: "int8";
  readonly uint8: "uint8";
  readonly int16: "int16";
  readonly uint16: "uint16";
  readonly bool: "bool";
  readonly complex64: "float32";
  readonly [any: string]: any;
}

/** The element type of absolute values, norms and comparisons: float32 of complex64, of others those themselves. */
export type RealOf<T extends DType> = RealDTypes[T];

/** The element types that the classes of typed arrays say. There are no others: a Float64Array is none. */
export interface ClassDTypes {
  readonly Float32Array: "float32";
  readonly Int32Array: "int32";
  readonly Uint32Array: "uint32";
  readonly Float16Array: "float16";
  readonly Int8Array: "int8";
  readonly Uint8Array: "uint8";
  readonly Uint8ClampedArray: "uint8";
  readonly Int16Array: "int16";
  readonly Uint16Array: "uint16";
}

/** A typed array of such a class, such as `TypedArray<"Float32Array">`. */
export interface TypedArray<C extends keyof ClassDTypes = keyof ClassDTypes> extends ArrayBufferView, ArrayLike<number> {
  readonly BYTES_PER_ELEMENT: number;
  readonly [Symbol.toStringTag]: C;
}

/** The classes of typed arrays that hold elements of a type as they are: bits of float16, bools and complex numbers are in others. */
export interface ClassesOf {
  readonly float32: "Float32Array";
  readonly int32: "Int32Array";
  readonly uint32: "Uint32Array";
  readonly float16: "Float16Array" | "Uint16Array";
  readonly int8: "Int8Array";
  readonly uint8: "Uint8Array" | "Uint8ClampedArray";
  readonly int16: "Int16Array";
  readonly uint16: "Uint16Array";
  readonly bool: "Uint8Array";
  readonly complex64: "Float32Array";
  readonly [any: string]: keyof ClassDTypes;
}

/** Memory without an element type of its own. */
export type RawMemory = (ArrayBufferLike | DataView) & { readonly BYTES_PER_ELEMENT?: undefined };

/** Typed arrays of numbers that are converted where `dtype` says so. */
export type AnyTypedArray = ArrayBufferView & (ArrayLike<number> | ArrayLike<bigint>);

/** Numbers, which are converted. Fractions, NaN and what is out of range are `ErrInvalid` in integers. */
export type Numbers = readonly (number | boolean)[];

/**
 * What is copied into a matrix: a typed array of the element type, or numbers. A typed array of another type is `ErrInvalid` unless the
 * option `dtype` names the type to convert to.
 */
export type Values<T extends DType = DType> = Numbers | TypedArray<ClassesOf[T]>;

/** A row of a matrix, in an array of rows. */
export type Row<T extends DType = DType> = Values<T>;

/** Arrays in arrays, those of one level equally long. */
export type NestedNumbers = readonly (number | boolean | NestedNumbers)[] | AnyTypedArray;
