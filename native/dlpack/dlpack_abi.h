// SPDX-License-Identifier: Apache-2.0
//
// The structures in which libraries lend each other tensors, laid out as DLPack 1 has them. Names are DLPack's, so that
// C code reads the same with this header or with DLPack's own, but not both. Nothing before dl_tensor in
// DLManagedTensorVersioned will ever move: a consumer that does not know the major version can still call the deleter.

#ifndef SUBLET_DLPACK_ABI_H
#define SUBLET_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint32_t major, minor;
} DLPackVersion;

typedef struct {
	int32_t device_type, device_id;
} DLDevice;

typedef struct {
	uint8_t code, bits;
	uint16_t lanes;
} DLDataType;

typedef struct {
	void *data; // an address, or the handle of an opaque device
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape;
	int64_t *strides; // in elements; NULL: row by row without gaps
	uint64_t byte_offset; // of the first element, from data
} DLTensor;

// DLManagedTensor is the older form, without version and flags.
typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *self); // may be NULL; frees self, too
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	DLTensor dl_tensor;
} DLManagedTensorVersioned;

enum {
	DL_READ_ONLY = 1 << 0,
	DL_IS_COPIED = 1 << 1,
	DL_SUBBYTE_PADDED = 1 << 2,
};

// With 8-byte pointers the layout is the one column, with 4-byte pointers and 8-aligned int64_t (wasm32, Arm) the other.
// Where int64_t is 4-aligned (i386) there is a third one, which nobody wrote down: the C compiler's.
typedef struct {
	char c;
	int64_t wide;
} sublet_dl_alignment;

#define SUBLET_DL_IS(got, lp64, ilp32) \
	_Static_assert(sizeof(void *) == 8 ? (got) == (lp64) \
		: offsetof(sublet_dl_alignment, wide) != 8 || (got) == (ilp32), #got)

SUBLET_DL_IS(sizeof(DLPackVersion), 8, 8);
SUBLET_DL_IS(offsetof(DLPackVersion, major), 0, 0);
SUBLET_DL_IS(offsetof(DLPackVersion, minor), 4, 4);

SUBLET_DL_IS(sizeof(DLDevice), 8, 8);
SUBLET_DL_IS(offsetof(DLDevice, device_type), 0, 0);
SUBLET_DL_IS(offsetof(DLDevice, device_id), 4, 4);

SUBLET_DL_IS(sizeof(DLDataType), 4, 4);
SUBLET_DL_IS(offsetof(DLDataType, code), 0, 0);
SUBLET_DL_IS(offsetof(DLDataType, bits), 1, 1);
SUBLET_DL_IS(offsetof(DLDataType, lanes), 2, 2);

SUBLET_DL_IS(sizeof(DLTensor), 48, 40);
SUBLET_DL_IS(offsetof(DLTensor, data), 0, 0);
SUBLET_DL_IS(offsetof(DLTensor, device), 8, 4);
SUBLET_DL_IS(offsetof(DLTensor, ndim), 16, 12);
SUBLET_DL_IS(offsetof(DLTensor, dtype), 20, 16);
SUBLET_DL_IS(offsetof(DLTensor, shape), 24, 20);
SUBLET_DL_IS(offsetof(DLTensor, strides), 32, 24);
SUBLET_DL_IS(offsetof(DLTensor, byte_offset), 40, 32);
SUBLET_DL_IS(sizeof(((DLTensor *)0)->byte_offset), 8, 8);

SUBLET_DL_IS(sizeof(DLManagedTensor), 64, 48);
SUBLET_DL_IS(offsetof(DLManagedTensor, dl_tensor), 0, 0);
SUBLET_DL_IS(offsetof(DLManagedTensor, manager_ctx), 48, 40);
SUBLET_DL_IS(offsetof(DLManagedTensor, deleter), 56, 44);

SUBLET_DL_IS(sizeof(DLManagedTensorVersioned), 80, 64);
SUBLET_DL_IS(offsetof(DLManagedTensorVersioned, version), 0, 0);
SUBLET_DL_IS(offsetof(DLManagedTensorVersioned, manager_ctx), 8, 8);
SUBLET_DL_IS(offsetof(DLManagedTensorVersioned, deleter), 16, 12);
SUBLET_DL_IS(offsetof(DLManagedTensorVersioned, flags), 24, 16);
SUBLET_DL_IS(sizeof(((DLManagedTensorVersioned *)0)->flags), 8, 8);
SUBLET_DL_IS(offsetof(DLManagedTensorVersioned, dl_tensor), 32, 24);

#endif
