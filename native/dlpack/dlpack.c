// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

#include "dlpack.h"

#include <stdlib.h>

#include "_cgo_export.h"

static void delete_versioned(DLManagedTensorVersioned *self) {
	if (!self) return;
	uintptr_t context = (uintptr_t)self->manager_ctx;
	free(self);
	subletDLPackRelease(context);
}

static void delete_legacy(DLManagedTensor *self) {
	if (!self) return;
	uintptr_t context = (uintptr_t)self->manager_ctx;
	free(self);
	subletDLPackRelease(context);
}

// place gives a tensor the memory behind its structure for shape and strides. The sizes of the structures are multiples
// of an int64_t's alignment.
static void place(DLTensor *t, int64_t *dims, int32_t ndim) {
	if (ndim == 0) return;
	t->shape = dims;
	t->strides = dims + ndim;
}

uintptr_t sublet_dl_new(bool legacy, int32_t ndim, uintptr_t context) {
	size_t size = legacy ? sizeof(DLManagedTensor) : sizeof(DLManagedTensorVersioned);
	char *memory = calloc(1, size + 2 * (size_t)ndim * sizeof(int64_t));
	if (!memory) return 0;
	int64_t *dims = (int64_t *)(memory + size);
	if (legacy) {
		DLManagedTensor *m = (DLManagedTensor *)memory;
		place(&m->dl_tensor, dims, ndim);
		m->manager_ctx = (void *)context;
		m->deleter = delete_legacy;
	} else {
		DLManagedTensorVersioned *m = (DLManagedTensorVersioned *)memory;
		place(&m->dl_tensor, dims, ndim);
		m->manager_ctx = (void *)context;
		m->deleter = delete_versioned;
	}
	return (uintptr_t)memory;
}

void sublet_dl_delete(uintptr_t deleter, uintptr_t self) {
	if (deleter) ((void (*)(void *))deleter)((void *)self);
}

uintptr_t sublet_dl_context(uintptr_t deleter, uintptr_t context) {
	return deleter == (uintptr_t)delete_versioned || deleter == (uintptr_t)delete_legacy ? context : 0;
}
