// SPDX-License-Identifier: Apache-2.0

#ifndef SUBLET_DLPACK_CTEST_H
#define SUBLET_DLPACK_CTEST_H

#include "dlpack_abi.h"

// ctest_tally is what a produced tensor's deleter leaves behind. C memory, freed by ctest_tally_free.
typedef struct {
	int32_t deleted;
	int32_t wrong; // calls with another self
	void *self;
} ctest_tally;

// ctest_spec says what to produce. Shape and strides are copied; the data is not the tensor's.
typedef struct {
	uint32_t major, minor;
	uint64_t flags;
	uintptr_t data;
	int32_t device_type, device_id, ndim;
	uint8_t code, bits;
	uint16_t lanes;
	uint64_t byte_offset;
	int32_t n; // the dimensions there is room for
	int no_shape, no_strides, no_deleter;
	int64_t const *shape, *strides;
} ctest_spec;

ctest_tally *ctest_tally_new(void);
void ctest_tally_free(ctest_tally *tally);
void *ctest_make(ctest_spec const *spec, int legacy, ctest_tally *tally);
void ctest_free(void *m, int legacy); // of one without a deleter

DLTensor *ctest_tensor(void *m, int legacy);
char const *ctest_check(void *m, int legacy);
double ctest_sum(void *m, int legacy);
void ctest_fill(void *m, int legacy, float value);
void ctest_delete(void *m, int legacy);
int ctest_delete_on_thread(void *m, int legacy);
int ctest_sums_on_thread(void *m, int legacy, int rounds, double want);
int64_t ctest_heap(void);

#endif
