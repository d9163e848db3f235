// SPDX-License-Identifier: Apache-2.0
//
// Which buffers are alive, and which are still mapped from their creation on. A binding's Release leaves the pointer in a
// *wgpu.Buffer, and to look behind it would end the process, as it does to ask for the state of a mapping. So where the linker can
// put functions of ours in front of wgpu-native's, buffers are known from their creation to their last release, whoever calls.
//
// A binding's C file includes this after its declarations and defines LIVE_ADD, the name of the function that takes a reference. The
// driver's LDFLAGS wrap that function and those of the same names as below, and its CFLAGS define LIVE.

#ifdef LIVE

#ifdef _WIN32
#include <windows.h>
static SRWLOCK live_mutex = SRWLOCK_INIT;
static void live_lock(void) { AcquireSRWLockExclusive(&live_mutex); }
static void live_unlock(void) { ReleaseSRWLockExclusive(&live_mutex); }
#else
#include <pthread.h>
static pthread_mutex_t live_mutex = PTHREAD_MUTEX_INITIALIZER;
static void live_lock(void) { pthread_mutex_lock(&live_mutex); }
static void live_unlock(void) { pthread_mutex_unlock(&live_mutex); }
#endif

#define LIVE_JOIN(a, b) a##b
#define LIVE_NAME(prefix, name) LIVE_JOIN(prefix, name)

extern WGPUBuffer __real_wgpuDeviceCreateBuffer(WGPUDevice device, WGPUBufferDescriptor const *descriptor);
extern void LIVE_NAME(__real_, LIVE_ADD)(WGPUBuffer buffer);
extern void __real_wgpuBufferRelease(WGPUBuffer buffer);
extern void __real_wgpuBufferUnmap(WGPUBuffer buffer);

// A table of open addressing. A slot without references was emptied: what was put behind it is still found.
typedef struct {
	WGPUBuffer buffer;
	size_t references;
	bool mapped; // from its creation on
} live_slot;

static live_slot *live_table;
static size_t live_size, live_used; // used counts emptied slots, too; size is a power of two
static bool live_blind;             // memory ran out once, and the table is not complete any more

static size_t live_place(WGPUBuffer b, size_t n) { return ((uintptr_t)b >> 4) * (size_t)0x9E3779B97F4A7C15u & (n - 1); }

static live_slot *live_find(live_slot *t, size_t n, WGPUBuffer b) {
	size_t i = live_place(b, n);
	while (t[i].buffer && t[i].buffer != b) i = (i + 1) & (n - 1);
	return &t[i];
}

// live_grow makes room for one more, and drops emptied slots.
static bool live_grow(void) {
	if (live_size && live_used < live_size / 2) return true;
	size_t live = 0;
	for (size_t i = 0; i < live_size; i++) live += live_table[i].references > 0;
	size_t n = 64;
	while (n < 4 * (live + 1)) n *= 2;
	live_slot *t = calloc(n, sizeof *t);
	if (!t) return false;
	for (size_t i = 0; i < live_size; i++)
		if (live_table[i].references) *live_find(t, n, live_table[i].buffer) = live_table[i];
	free(live_table);
	live_table = t;
	live_size = n;
	live_used = live;
	return true;
}

WGPUBuffer __wrap_wgpuDeviceCreateBuffer(WGPUDevice device, WGPUBufferDescriptor const *descriptor) {
	WGPUBuffer b = __real_wgpuDeviceCreateBuffer(device, descriptor);
	if (!b) return b;
	live_lock();
	if (live_grow()) {
		live_slot *s = live_find(live_table, live_size, b);
		if (!s->buffer) live_used++;
		*s = (live_slot){b, 1, descriptor->mappedAtCreation};
	} else {
		live_blind = true;
	}
	live_unlock();
	return b;
}

static bool live_change(WGPUBuffer b, int by) {
	live_slot *s = live_size ? live_find(live_table, live_size, b) : NULL;
	if (!s || !s->references) return live_blind;
	s->references += by;
	return true;
}

void LIVE_NAME(__wrap_, LIVE_ADD)(WGPUBuffer b) {
	live_lock();
	live_change(b, 1);
	LIVE_NAME(__real_, LIVE_ADD)(b);
	live_unlock();
}

void __wrap_wgpuBufferRelease(WGPUBuffer b) {
	live_lock();
	live_change(b, -1);
	live_unlock();
	__real_wgpuBufferRelease(b);
}

void __wrap_wgpuBufferUnmap(WGPUBuffer b) {
	live_lock();
	live_slot *s = live_size ? live_find(live_table, live_size, b) : NULL;
	if (s) s->mapped = false;
	live_unlock();
	__real_wgpuBufferUnmap(b);
}

static int still_mapped(WGPUBuffer b) {
	live_lock();
	live_slot *s = live_size ? live_find(live_table, live_size, b) : NULL;
	int mapped = s && s->references ? s->mapped : -1;
	live_unlock();
	return mapped;
}

static bool take_buffer(WGPUBuffer b) {
	live_lock();
	bool alive = live_change(b, 1);
	if (alive) LIVE_NAME(__real_, LIVE_ADD)(b);
	live_unlock();
	return alive;
}

#else

static int still_mapped(WGPUBuffer b) {
	(void)b;
	return -1;
}

static bool take_buffer(WGPUBuffer b) {
	LIVE_ADD(b);
	return true;
}

#endif
