// SPDX-License-Identifier: Apache-2.0

// Package safetensors reads and writes files of named tensors in the safetensors format.
//
// A file is the length of a header, the header, which is JSON, and the data. The header is held in memory; the data are
// streamed.
//
// # Hostile files
//
// The rules are those of the format, and are checked before a tensor is handed out: the data of the tensors lie one after
// the other, without a hole and without overlap, from the header's end to the file's; each is as long as its type and shape
// say; no name and no key occurs twice; a header has at most 100,000,000 bytes and is UTF-8. Memory grows with the bytes
// of the header that really arrive. Errors are *[file.Error] and tell where.
//
// The format is described at https://github.com/huggingface/safetensors#format.
package safetensors
