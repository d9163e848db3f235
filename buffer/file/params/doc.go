// SPDX-License-Identifier: Apache-2.0

// Package params reads and writes the parameter dictionaries (.params) that TVM, from version 0.4 on, and CVM Runtime keep
// a model's weights in.
//
// A dictionary is read as a stream: the list of names comes first and is held in memory, tensors pass through one after
// the other. What can seek is not read where data are passed over, so that a loop of Next reads only the headers.
//
// # The format
//
// Everything is little-endian, without alignment, checksum or end mark:
//
//	u64 0xF7E58D4F05049CB7, u64 reserved
//	u64 names, and for each: u64 length, bytes
//	u64 tensors, as many as names, and for each:
//	  u64 0xDD5E40F096B4A13F, u64 reserved
//	  i32 device type (1), i32 device id, i32 dimensions
//	  u8 type code, u8 bits, u16 lanes
//	  i64 for each dimension
//	  i64 bytes of data, data: row by row, elements of less than a byte take one
//
// It is that of save_param_dict in https://github.com/apache/tvm and of CVMSaveParamsDict in
// https://github.com/CortexFoundation/CVMRuntime. A file that either wrote comes out of [NewReader] and [NewWriter] byte
// for byte, apart from bytes after its last tensor.
//
// # What is refused
//
// Every claim of a file is checked before memory is taken for it. Refused are: wrong magic numbers, MXNet's own format of
// the same extension, different counts of names and tensors, names that occur twice, a device other than the CPU, negative
// dimensions, more than 32 of them, a product of them beyond an int64 or int, a data size other than the shape's, lanes
// other than one (the references write only part of such data), bits other than 8, 16, 32, 64, 128 and, of an unsigned
// integer, 1, and an early end. All are [*file.Error] with the offset of the first wrong byte; where a count or length
// exceeds the bytes that are left, that is the count's own, and where the file just ends, its size.
//
// # What is accepted
//
// Reserved fields and device ids of any value (written as 0), type codes that nobody knows, dimensions of zero anywhere,
// names that are empty, hold NUL or are not UTF-8, and bytes after the last tensor, since CVM writes some now and then.
// The references differ from each other and from this in what they let through; in particular they accept data cut short.
package params
