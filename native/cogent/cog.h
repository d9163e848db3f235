// SPDX-License-Identifier: Apache-2.0
//
// What the Go side calls. The rules of this border:
//
//   - No call keeps a Go pointer. What outlives a call is in C memory: signals, tables, messages.
//   - wgpu-native calls back into C functions only, never into Go.
//   - Every function that takes a cog_error reports there and only there. Calls on one cog_device are made under the
//     lock of the Go side, except cog_compile on a device of our own.

#ifndef SUBLET_COGENT_COG_H
#define SUBLET_COGENT_COG_H

#include "abi.h"
#include <stdbool.h>

// The kinds of a cog_error beyond those of WGPUErrorType.
enum {
	COG_MEMORY = WGPUErrorType_OutOfMemory, // also where malloc failed
	COG_MAPPED = 100,                       // a buffer of the list is mapped by somebody else
	COG_LOST = 101,
};

// cog_error holds the first error of a call. message is malloc'ed and the reader's to free.
typedef struct {
	uint32_t type; // 0: none
	char *message;
} cog_error;

// cog_signal is raised once by a callback that may come late or never: after the waiter has gone it frees itself.
typedef struct {
	int32_t state;
	uint32_t status;
} cog_signal;

// cog_watch collects what a device says outside of any call's error. It outlives the cog_device and is never freed where
// the library has its address: objects of the device that others hold keep the device alive, and with it the address.
typedef struct {
	int32_t lost;   // the device is lost; set last
	int32_t strays; // errors that no call of ours waited for
	char *reason;   // why it was lost
} cog_watch;

typedef struct cog_layout cog_layout;
typedef struct cog_device cog_device;

// cog_data is host memory of a write: pinned Go memory, as an integer so that cgo lets a slice of them pass.
typedef struct {
	uintptr_t bytes;
	uint64_t size;
} cog_data;

// cog_span names a part of a buffer, or count such parts every pitch bytes, that a read copies one behind the other. Behind
// them it copies the guard, if guard is set.
typedef struct {
	uint32_t buffer;
	uint64_t offset, size, pitch, count;
	bool guard;
} cog_span;

enum { COG_GUARD = 16 }; // bytes of the guard

// adapter.c
size_t cog_adapters(uint32_t backends, WGPUAdapter **list);
WGPULimits cog_adapter_limits(WGPUAdapter adapter);

// device.c
cog_device *cog_open(WGPUAdapter adapter, bool software, cog_error *error);
cog_device *cog_adopt(WGPUDevice device, cog_error *error);
void cog_close(cog_device *d, bool keep);
WGPUDevice cog_handle(cog_device *d);
cog_watch *cog_watch_of(cog_device *d);
WGPULimits cog_limits(cog_device *d);
int cog_has_feature(cog_device *d, uint32_t feature);

// wait.c
void cog_signal_free(cog_signal *s);
int cog_poll(cog_device *d, cog_signal *s);

// cog_backoff is the state of a wait, in nanoseconds.
typedef struct {
	int64_t first; // how long to sleep at first
	int64_t spin;  // for how long not to sleep after that
	int64_t start, spent;
} cog_backoff;

void cog_pause(cog_backoff *p);
int cog_wait(cog_device *d, cog_signal *s, cog_backoff *p);

// queue.c
int cog_flush(cog_device *d);

// cog_backlog counts bytes that wait for a submission, and submits if they are too many.
void cog_backlog(cog_device *d, uint64_t bytes);

// cog_backlogged reports whether too many wait.
bool cog_backlogged(cog_device *d);

// cog_submissions counts submissions.
uint64_t cog_submissions(cog_device *d);
cog_signal *cog_queue_done(cog_device *d, cog_error *error);

// live.c

// cog_take_buffer takes a reference to a buffer, or returns 0 if its last one was released. Where releases cannot be seen it takes
// it for alive.
int cog_take_buffer(WGPUBuffer buffer);

// cog_still_mapped reports whether a buffer is mapped from its creation on, or -1 where that cannot be seen.
int cog_still_mapped(WGPUBuffer buffer);

// buffer.c
void cog_buffer_new(cog_device *d, uint32_t id, uint64_t size, bool mappable, cog_error *error);
void cog_buffer_import(cog_device *d, uint32_t id, WGPUBuffer buffer, cog_error *error);
void cog_buffer_destroy(cog_device *d, WGPUBuffer buffer, cog_error *error);
WGPUBuffer cog_buffer_handle(cog_device *d, uint32_t id, int watch);
void cog_buffer_free(cog_device *d, uint32_t id, bool destroy);
WGPUBuffer cog_staging_new(cog_device *d, uint64_t size, cog_error *error);
cog_signal *cog_read(cog_device *d, cog_span const *span, WGPUBuffer staging, cog_error *error);
cog_signal *cog_map(cog_device *d, WGPUBuffer buffer, uint32_t mode, uint64_t offset, uint64_t size, cog_error *error);
void *cog_mapped(WGPUBuffer buffer, uint64_t offset, uint64_t size);
void cog_populate(void *memory, uint64_t offset, uint64_t size);
void cog_unmap(cog_device *d, WGPUBuffer buffer);

// kernel.c
cog_layout *cog_layout_of(cog_device *d, uint64_t layout, cog_error *error);
void cog_guard(cog_device *d, cog_error *error);
WGPUComputePipeline cog_compile(cog_device *d, cog_layout *l, bool guarded, char const *source, char const *entry,
	char const *label, cog_error *error);
void cog_kernel_put(cog_device *d, uint32_t id, WGPUComputePipeline pipeline, bool guarded, cog_error *error);

// submit.c
bool cog_submit(cog_device *d, uint32_t const *words, size_t n, void const *params, size_t nparams, cog_data const *data,
	cog_error *error);

#endif
