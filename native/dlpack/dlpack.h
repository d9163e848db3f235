// SPDX-License-Identifier: Apache-2.0
//
// What the Go side calls. Addresses travel as integers: the garbage collector must not look at foreign ones.

#ifndef SUBLET_DLPACK_H
#define SUBLET_DLPACK_H

#include "dlpack_abi.h"

// sublet_dl_new and its legacy twin return zeroed memory for the structure, its shape and its strides, in which addresses
// and deleter are set, or 0. The deleter gives the context to Go, once, and frees everything.
uintptr_t sublet_dl_new(int32_t ndim, uintptr_t context);
uintptr_t sublet_dl_new_legacy(int32_t ndim, uintptr_t context);

// sublet_dl_delete calls a deleter that is not NULL. Both kinds of managed tensor have the same kind.
void sublet_dl_delete(uintptr_t deleter, uintptr_t self);

// sublet_dl_context returns the context of a managed tensor of ours, 0 for others.
uintptr_t sublet_dl_context(uintptr_t deleter, uintptr_t context);

// Where fields are, for Go.
enum {
	SUBLET_DL_DATA = offsetof(DLTensor, data),
	SUBLET_DL_DEVICE = offsetof(DLTensor, device),
	SUBLET_DL_NDIM = offsetof(DLTensor, ndim),
	SUBLET_DL_DTYPE = offsetof(DLTensor, dtype),
	SUBLET_DL_SHAPE = offsetof(DLTensor, shape),
	SUBLET_DL_STRIDES = offsetof(DLTensor, strides),
	SUBLET_DL_BYTE_OFFSET = offsetof(DLTensor, byte_offset),
	SUBLET_DL_LEGACY_CONTEXT = offsetof(DLManagedTensor, manager_ctx),
	SUBLET_DL_LEGACY_DELETER = offsetof(DLManagedTensor, deleter),
	SUBLET_DL_CONTEXT = offsetof(DLManagedTensorVersioned, manager_ctx),
	SUBLET_DL_DELETER = offsetof(DLManagedTensorVersioned, deleter),
	SUBLET_DL_FLAGS = offsetof(DLManagedTensorVersioned, flags),
	SUBLET_DL_TENSOR = offsetof(DLManagedTensorVersioned, dl_tensor),
};

#endif
