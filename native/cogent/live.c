// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Which buffers are alive, and which are still mapped from their creation on. The binding's Release leaves the pointer in a
// *wgpu.Buffer, and to look behind it would end the process, as it does to ask for the state of a mapping. So where the linker can
// put functions of ours in front of wgpu-native's, buffers are known from their creation to their last release, whoever calls.

#include "state.h"

#ifdef COG_TRACK

#include <stdlib.h>

#ifdef _WIN32 // not every MinGW has pthread
#include <windows.h>
static SRWLOCK lock = SRWLOCK_INIT;
static void acquire(void) { AcquireSRWLockExclusive(&lock); }
static void release(void) { ReleaseSRWLockExclusive(&lock); }
#else
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void acquire(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
#endif

extern WGPUBuffer __real_wgpuDeviceCreateBuffer(WGPUDevice device, WGPUBufferDescriptor const *descriptor);
extern void __real_wgpuBufferReference(WGPUBuffer buffer);
extern void __real_wgpuBufferRelease(WGPUBuffer buffer);
extern void __real_wgpuBufferUnmap(WGPUBuffer buffer);

// A table of open addressing. A slot without references was emptied: what was put behind it is still found.
typedef struct {
	WGPUBuffer buffer;
	size_t references;
	bool mapped; // from its creation on
} slot;

static slot *table;
static size_t size, used; // used counts emptied slots, too; size is a power of two
static int blind;         // memory ran out once, and the table is not complete any more

static size_t place(WGPUBuffer b, size_t n) { return ((uintptr_t)b >> 4) * (size_t)0x9E3779B97F4A7C15u & (n - 1); }

static slot *find(slot *t, size_t n, WGPUBuffer b) {
	size_t i = place(b, n);
	while (t[i].buffer && t[i].buffer != b) i = (i + 1) & (n - 1);
	return &t[i];
}

// grow makes room for one more, and drops emptied slots.
static int grow(void) {
	if (size && used < size / 2) return 1;
	size_t live = 0;
	for (size_t i = 0; i < size; i++) live += table[i].references > 0;
	size_t n = 64;
	while (n < 4 * (live + 1)) n *= 2;
	slot *t = calloc(n, sizeof *t);
	if (!t) return 0;
	for (size_t i = 0; i < size; i++)
		if (table[i].references) *find(t, n, table[i].buffer) = table[i];
	free(table);
	table = t;
	size = n;
	used = live;
	return 1;
}

WGPUBuffer __wrap_wgpuDeviceCreateBuffer(WGPUDevice device, WGPUBufferDescriptor const *descriptor) {
	WGPUBuffer b = __real_wgpuDeviceCreateBuffer(device, descriptor);
	if (!b) return b;
	acquire();
	if (grow()) {
		slot *s = find(table, size, b);
		if (!s->buffer) used++;
		*s = (slot){b, 1, descriptor->mappedAtCreation};
	} else {
		blind = 1;
	}
	release();
	return b;
}

static int change(WGPUBuffer b, int by) {
	slot *s = size ? find(table, size, b) : NULL;
	if (!s || !s->references) return blind;
	s->references += by;
	return 1;
}

void __wrap_wgpuBufferReference(WGPUBuffer b) {
	acquire();
	change(b, 1);
	__real_wgpuBufferReference(b);
	release();
}

void __wrap_wgpuBufferRelease(WGPUBuffer b) {
	acquire();
	change(b, -1);
	release();
	__real_wgpuBufferRelease(b);
}

void __wrap_wgpuBufferUnmap(WGPUBuffer b) {
	acquire();
	slot *s = size ? find(table, size, b) : NULL;
	if (s) s->mapped = false;
	release();
	__real_wgpuBufferUnmap(b);
}

int cog_still_mapped(WGPUBuffer b) {
	acquire();
	slot *s = size ? find(table, size, b) : NULL;
	int mapped = s && s->references ? s->mapped : -1;
	release();
	return mapped;
}

int cog_take_buffer(WGPUBuffer b) {
	acquire();
	int alive = change(b, 1);
	if (alive) __real_wgpuBufferReference(b);
	release();
	return alive;
}

#else

int cog_still_mapped(WGPUBuffer b) {
	(void)b;
	return -1;
}

int cog_take_buffer(WGPUBuffer b) {
	wgpuBufferReference(b);
	return 1;
}

#endif
