// SPDX-License-Identifier: Apache-2.0
//
// What the Go side calls. The rules of this border:
//
//   - No call keeps a Go pointer. What outlives a call is in C memory: signals, tables, messages.
//   - wgpu-native calls back into C functions only, never into Go.
//   - Every function that takes a core_error reports there and only there. Calls on one core_device are made under the
//     lock of the Go side, except core_compile on a device of our own.

#ifndef SUBLET_CORE_H
#define SUBLET_CORE_H

#include "binding.h"

// core_error holds the first error of a call. message is malloc'ed and the reader's to free.
typedef struct {
	uint32_t type; // CORE_OK: none
	char *message;
} core_error;

typedef struct core_layout core_layout;
typedef struct core_device core_device;

// core_data is host memory of a write: pinned Go memory, as an integer so that cgo lets a slice of them pass.
typedef struct {
	uintptr_t bytes;
	uint64_t size;
} core_data;

// core_span names a part of a buffer, or count such parts every pitch bytes, that a read copies one behind the other. Behind
// them it copies the guard, if guard is set.
typedef struct {
	uint32_t buffer;
	uint64_t offset, size, pitch, count;
	bool guard;
} core_span;

enum { CORE_GUARD = 16 }; // bytes of the guard

// device.c: calls that need no device take the table.
size_t core_list(core_calls const *calls, uint32_t backends, WGPUInstance *instance, WGPUAdapter **list);
void core_describe(core_calls const *calls, WGPUAdapter adapter, core_adapter *a);
void core_drop_instance(core_calls const *calls, WGPUInstance instance);
void core_drop_adapter(core_calls const *calls, WGPUAdapter adapter);
bool core_share_buffer(core_calls const *calls, WGPUBuffer buffer);
bool core_foreign(core_calls const *calls, WGPUDevice device, WGPUBuffer buffer);
void core_drop_buffer(core_calls const *calls, WGPUBuffer buffer);

core_device *core_open(core_calls const *calls, WGPUAdapter adapter, bool software, core_error *error);
core_device *core_adopt(core_calls const *calls, WGPUDevice device, core_error *error);
void core_close(core_device *d, bool keep);
WGPUDevice core_handle(core_device *d);
core_watch *core_watch_of(core_device *d);
void core_describe_device(core_device *d, core_adapter *a);

// wait.c
void core_signal_free(core_signal *s);
int core_poll(core_device *d, core_signal *s);

// core_backoff is the state of a wait, in nanoseconds.
typedef struct {
	int64_t first; // how long to sleep at first
	int64_t spin;  // for how long not to sleep after that
	int64_t start, spent;
} core_backoff;

void core_pause(core_backoff *p);
int core_wait(core_device *d, core_signal *s, core_backoff *p);

// queue.c
int core_flush(core_device *d);

// core_holds reports whether commands are held back.
bool core_holds(core_device *d);

// core_backlog counts bytes that wait for a submission, and submits if they are too many.
void core_backlog(core_device *d, uint64_t bytes);

// core_backlogged reports whether too many wait.
bool core_backlogged(core_device *d);

// core_submissions counts submissions.
uint64_t core_submissions(core_device *d);
core_signal *core_queue_done(core_device *d, core_error *error);

// buffer.c
void core_buffer_new(core_device *d, uint32_t id, uint64_t size, bool mappable, core_error *error);
void core_buffer_import(core_device *d, uint32_t id, WGPUBuffer buffer, core_error *error);
void core_buffer_destroy(core_device *d, WGPUBuffer buffer, core_error *error);
uint64_t core_buffer_size(core_device *d, WGPUBuffer buffer);
uint32_t core_buffer_usage(core_device *d, WGPUBuffer buffer);
bool core_take_buffer(core_device *d, WGPUBuffer buffer);
WGPUBuffer core_buffer_handle(core_device *d, uint32_t id, int watch);
void core_buffer_free(core_device *d, uint32_t id, bool destroy);
WGPUBuffer core_staging_new(core_device *d, uint64_t size, core_error *error);
core_signal *core_read(core_device *d, core_span const *span, WGPUBuffer staging, core_error *error);
core_signal *core_map(core_device *d, WGPUBuffer buffer, bool write, uint64_t offset, uint64_t size, core_error *error);
void *core_mapped(core_device *d, WGPUBuffer buffer, uint64_t offset, uint64_t size);
void core_populate(void *memory, uint64_t offset, uint64_t size);
void core_unmap(core_device *d, WGPUBuffer buffer);

// kernel.c
core_layout *core_layout_of(core_device *d, uint64_t layout, core_error *error);
void core_guard(core_device *d, core_error *error);
WGPUComputePipeline core_compile(core_device *d, core_layout *l, bool guarded, char const *source, char const *entry,
	char const *label, core_error *error);
void core_drop_pipeline(core_device *d, WGPUComputePipeline pipeline);
void core_kernel_put(core_device *d, uint32_t id, WGPUComputePipeline pipeline, bool guarded, core_error *error);

// submit.c
bool core_submit(core_device *d, uint32_t const *words, size_t n, void const *params, size_t nparams, core_data const *data,
	bool more, core_error *error);

#endif
