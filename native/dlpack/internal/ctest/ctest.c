// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

#include "ctest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

ctest_tally *ctest_tally_new(void) { return calloc(1, sizeof(ctest_tally)); }

void ctest_tally_free(ctest_tally *tally) { free(tally); }

static void count(ctest_tally *tally, void *self) {
	__atomic_add_fetch(&tally->deleted, 1, __ATOMIC_SEQ_CST);
	if (self != tally->self) __atomic_add_fetch(&tally->wrong, 1, __ATOMIC_SEQ_CST);
}

static void drop_versioned(DLManagedTensorVersioned *self) {
	count(self->manager_ctx, self);
	ctest_free(self, 0);
}

static void drop_legacy(DLManagedTensor *self) {
	count(self->manager_ctx, self);
	ctest_free(self, 1);
}

DLTensor *ctest_tensor(void *m, int legacy) {
	return legacy ? &((DLManagedTensor *)m)->dl_tensor : &((DLManagedTensorVersioned *)m)->dl_tensor;
}

// Freed memory is overwritten, so that whoever still reads it finds nonsense.
void ctest_free(void *m, int legacy) {
	DLTensor *t = ctest_tensor(m, legacy);
	free(t->shape);
	free(t->strides);
	memset(m, 0xa5, legacy ? sizeof(DLManagedTensor) : sizeof(DLManagedTensorVersioned));
	free(m);
}

static int64_t *copy(int64_t const *v, int32_t n) {
	int64_t *c = malloc((size_t)n * sizeof *c + 1);
	if (n) memcpy(c, v, (size_t)n * sizeof *c);
	return c;
}

void *ctest_make(ctest_spec const *s, int legacy, ctest_tally *tally) {
	void *self;
	if (legacy) {
		DLManagedTensor *m = self = calloc(1, sizeof *m);
		m->manager_ctx = tally;
		m->deleter = s->no_deleter ? NULL : drop_legacy;
	} else {
		DLManagedTensorVersioned *m = self = calloc(1, sizeof *m);
		m->version = (DLPackVersion){s->major, s->minor};
		m->manager_ctx = tally;
		m->deleter = s->no_deleter ? NULL : drop_versioned;
		m->flags = s->flags;
	}
	tally->self = self;
	*ctest_tensor(self, legacy) = (DLTensor){
		.data = (void *)s->data,
		.device = {s->device_type, s->device_id},
		.ndim = s->ndim,
		.dtype = {s->code, s->bits, s->lanes},
		.shape = s->no_shape ? NULL : copy(s->shape, s->n),
		.strides = s->no_strides ? NULL : copy(s->strides, s->n),
		.byte_offset = s->byte_offset,
	};
	return self;
}

// ctest_check says what a consumer of float32 would complain about.
char const *ctest_check(void *m, int legacy) {
	DLTensor *t = ctest_tensor(m, legacy);
	if ((uintptr_t)m % sizeof(void *)) return "the structure is not aligned";
	if (!legacy && ((DLManagedTensorVersioned *)m)->version.major != 1) return "major version";
	if (!legacy && ((DLManagedTensorVersioned *)m)->version.minor < 2) return "minor version";
	if (t->ndim == 0) return t->shape || t->strides ? "a scalar has dimensions" : NULL;
	if (!t->shape || !t->strides) return "no shape or no strides";
	if ((uintptr_t)t->shape % sizeof(int64_t) || (uintptr_t)t->strides % sizeof(int64_t)) return "dimensions are not aligned";
	int empty = 0;
	for (int32_t i = 0; i < t->ndim; i++) empty |= t->shape[i] == 0;
	if (empty != !t->data) return "data must be NULL exactly where there are no elements";
	if (((uintptr_t)t->data + t->byte_offset) % sizeof(float)) return "the first element is not aligned";
	return NULL;
}

// walk calls visit for every element of a tensor of float32.
static void walk(DLTensor *t, void (*visit)(float *, void *), void *arg) {
	int64_t index[32] = {0};
	for (int32_t i = 0; i < t->ndim; i++)
		if (t->shape[i] == 0) return;
	float *first = (float *)((char *)t->data + t->byte_offset);
	for (;;) {
		int64_t at = 0;
		for (int32_t i = 0; i < t->ndim; i++) at += index[i] * t->strides[i];
		visit(first + at, arg);
		int32_t i = t->ndim - 1;
		while (i >= 0 && ++index[i] == t->shape[i]) index[i--] = 0;
		if (i < 0) return;
	}
}

static void add(float *v, void *sum) { *(double *)sum += *v; }

static void set(float *v, void *value) { *v = *(float *)value; }

double ctest_sum(void *m, int legacy) {
	double sum = 0;
	walk(ctest_tensor(m, legacy), add, &sum);
	return sum;
}

void ctest_fill(void *m, int legacy, float value) { walk(ctest_tensor(m, legacy), set, &value); }

void ctest_delete(void *m, int legacy) {
	if (legacy) {
		DLManagedTensor *l = m;
		l->deleter(l);
	} else {
		DLManagedTensorVersioned *v = m;
		v->deleter(v);
	}
}

typedef struct {
	void *m;
	int legacy, rounds, failed;
	double want;
} job;

static void *delete_job(void *arg) {
	job *j = arg;
	ctest_delete(j->m, j->legacy);
	return NULL;
}

static void *sum_job(void *arg) {
	job *j = arg;
	for (int i = 0; i < j->rounds; i++) j->failed += ctest_sum(j->m, j->legacy) != j->want;
	ctest_delete(j->m, j->legacy);
	return NULL;
}

// on_thread runs a job on a thread that Go does not know.
static int on_thread(void *(*run)(void *), job *j) {
	pthread_t thread;
	if (pthread_create(&thread, NULL, run, j)) return -1;
	return pthread_join(thread, NULL) ? -1 : j->failed;
}

int ctest_delete_on_thread(void *m, int legacy) {
	job j = {.m = m, .legacy = legacy};
	return on_thread(delete_job, &j);
}

int ctest_sums_on_thread(void *m, int legacy, int rounds, double want) {
	job j = {.m = m, .legacy = legacy, .rounds = rounds, .want = want};
	return on_thread(sum_job, &j);
}

int64_t ctest_heap(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
	return (int64_t)mallinfo2().uordblks;
#else
	return -1;
#endif
}
