// SPDX-License-Identifier: Apache-2.0
//
// Which buffers are alive, of which device they are, and which are destroyed or still mapped from their creation on. A binding's Release
// leaves the pointer in a *wgpu.Buffer, and to look behind it would end the process, as it does to ask for the state of a mapping. To
// provoke an error that tells would disturb error scopes that the program has open. So where the linker can put functions of ours in
// front of wgpu-native's, buffers are known from their creation to their last release, whoever calls.
//
// A binding's C file includes this after its declarations and defines LIVE_ADD_DEVICE and LIVE_ADD_BUFFER, the names of the functions that
// take a reference. The driver's LDFLAGS wrap those functions and those of the same names as below, and its CFLAGS define LIVE.

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
extern void LIVE_NAME(__real_, LIVE_ADD_DEVICE)(WGPUDevice device);
extern void __real_wgpuDeviceRelease(WGPUDevice device);
extern void LIVE_NAME(__real_, LIVE_ADD_BUFFER)(WGPUBuffer buffer);
extern void __real_wgpuBufferDestroy(WGPUBuffer buffer);
extern void __real_wgpuBufferRelease(WGPUBuffer buffer);
extern void __real_wgpuBufferUnmap(WGPUBuffer buffer);

// A table of open addressing. A slot without references was emptied: what was put behind it is still found. Devices have slots, too,
// from the first buffer or reference on.
typedef struct {
	void *object;
	size_t references;
	WGPUDevice device; // of a buffer; NULL once that is gone
	bool mapped;       // from its creation on
	bool mappable;     // later
	bool destroyed;
} live_slot;

static live_slot *live_table;
static size_t live_size, live_used; // used counts emptied slots, too; size is a power of two
static bool live_blind;             // memory ran out once, and the table is not complete any more

static size_t live_place(void *object, size_t n) { return ((uintptr_t)object >> 4) * (size_t)0x9E3779B97F4A7C15u & (n - 1); }

static live_slot *live_find(live_slot *t, size_t n, void *object) {
	size_t i = live_place(object, n);
	while (t[i].object && t[i].object != object) i = (i + 1) & (n - 1);
	return &t[i];
}

// live_known returns the slot of an object that is alive, or NULL.
static live_slot *live_known(void *object) {
	live_slot *s = live_size ? live_find(live_table, live_size, object) : NULL;
	return s && s->references ? s : NULL;
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
		if (live_table[i].references) *live_find(t, n, live_table[i].object) = live_table[i];
	free(live_table);
	live_table = t;
	live_size = n;
	live_used = live;
	return true;
}

static void live_put(live_slot slot) {
	if (!live_grow()) {
		live_blind = true;
		return;
	}
	live_slot *s = live_find(live_table, live_size, slot.object);
	if (!s->object) live_used++;
	*s = slot;
}

WGPUBuffer __wrap_wgpuDeviceCreateBuffer(WGPUDevice device, WGPUBufferDescriptor const *descriptor) {
	enum { MAP_READ_OR_WRITE = 3 };
	WGPUBuffer b = __real_wgpuDeviceCreateBuffer(device, descriptor);
	if (!b) return b;
	live_lock();
	if (!live_known(device)) live_put((live_slot){.object = device, .references = 1});
	live_put((live_slot){
		.object = b,
		.references = 1,
		.device = device,
		.mapped = descriptor->mappedAtCreation,
		.mappable = (descriptor->usage & MAP_READ_OR_WRITE) != 0,
	});
	live_unlock();
	return b;
}

void LIVE_NAME(__wrap_, LIVE_ADD_DEVICE)(WGPUDevice device) {
	live_lock();
	live_slot *s = live_known(device);
	if (s) s->references++;
	else live_put((live_slot){.object = device, .references = 2});
	live_unlock();
	LIVE_NAME(__real_, LIVE_ADD_DEVICE)(device);
}

// A later device may get the address of one that is gone, so its buffers must forget it.
void __wrap_wgpuDeviceRelease(WGPUDevice device) {
	live_lock();
	live_slot *s = live_known(device);
	if (s && !--s->references)
		for (size_t i = 0; i < live_size; i++)
			if (live_table[i].device == device) live_table[i].device = NULL;
	live_unlock();
	__real_wgpuDeviceRelease(device);
}

static bool live_change(WGPUBuffer b, int by) {
	live_slot *s = live_known(b);
	if (!s) return live_blind;
	s->references += by;
	return true;
}

void LIVE_NAME(__wrap_, LIVE_ADD_BUFFER)(WGPUBuffer b) {
	live_lock();
	live_change(b, 1);
	LIVE_NAME(__real_, LIVE_ADD_BUFFER)(b);
	live_unlock();
}

void __wrap_wgpuBufferRelease(WGPUBuffer b) {
	live_lock();
	live_change(b, -1);
	live_unlock();
	__real_wgpuBufferRelease(b);
}

void __wrap_wgpuBufferDestroy(WGPUBuffer b) {
	live_lock();
	live_slot *s = live_known(b);
	if (s) s->destroyed = true;
	live_unlock();
	__real_wgpuBufferDestroy(b);
}

void __wrap_wgpuBufferUnmap(WGPUBuffer b) {
	live_lock();
	live_slot *s = live_known(b);
	if (s) s->mapped = false;
	live_unlock();
	__real_wgpuBufferUnmap(b);
}

static uint32_t buffer_state(WGPUDevice device, WGPUBuffer b) {
	live_lock();
	live_slot *s = live_known(b);
	uint32_t state = !s ? live_blind ? CORE_BUFFER_UNKNOWN : CORE_BUFFER_FOREIGN
		: s->device != device ? CORE_BUFFER_FOREIGN
		: s->destroyed        ? CORE_BUFFER_DESTROYED
		: s->mapped           ? CORE_BUFFER_MAPPED
		: s->mappable         ? CORE_BUFFER_UNKNOWN
				      : CORE_BUFFER_FINE;
	live_unlock();
	return state;
}

static bool take_buffer(WGPUBuffer b) {
	live_lock();
	bool alive = live_change(b, 1);
	if (alive) LIVE_NAME(__real_, LIVE_ADD_BUFFER)(b);
	live_unlock();
	return alive;
}

#else

static uint32_t buffer_state(WGPUDevice device, WGPUBuffer b) {
	(void)device, (void)b;
	return CORE_BUFFER_UNKNOWN;
}

static bool take_buffer(WGPUBuffer b) {
	LIVE_ADD_BUFFER(b);
	return true;
}

#endif
