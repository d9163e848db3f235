// SPDX-License-Identifier: Apache-2.0
//
// What the C files share and the Go side does not see.

#ifndef SUBLET_CORE_STATE_H
#define SUBLET_CORE_STATE_H

#include "core.h"

#include <stdlib.h>
#include <string.h>

enum {
	CORE_BINDINGS = 32,                    // driver.MaxBindings
	CORE_WINDOW = 1024,                    // driver.MaxParams: what a kernel sees of the parameters
	CORE_PARAMS = 64 * 1024,               // the first parameter buffer, doubled as needed
	CORE_BACKLOG = 64 * 1024 * 1024,       // bytes that may wait for a submission: of writes and of what was written to
	CORE_WRITE = 64 * 1024,                // what a write counts for besides its bytes
	CORE_KERNEL = 1024 * 1024,             // what a kernel counts for that was freed, which takes a submission
	CORE_TIMES = 64,                       // timestamps of a segment
	CORE_RESOLVED = 256,                   // bytes between resolved timestamps, the alignment of a resolution
	CORE_ACCESS_READ = 1, CORE_ACCESS_READ_WRITE = 2, CORE_ACCESS_PARAMS = 3, // driver.Access
};

typedef struct {
	WGPUComputePipeline pipeline;
	bool guarded; // it has the guard in its second group
} core_kernel;

typedef struct {
	WGPUBuffer ref;
	uint64_t stamp;   // the last encoder that used it
	uint64_t written; // the submission that the last write waits for
	uint32_t watched; // others have its handle and might map it
} core_buffer;

typedef struct {
	uint32_t buffer;
	uint64_t offset, size;
} core_entry;

typedef struct {
	WGPUBindGroup group; // NULL until it could be made
	core_layout *layout;  // NULL: there is no such set
	core_entry *entries;
	uint64_t stamp;      // the last encoder that used it
	uint32_t generation; // of the parameter buffer that is bound
} core_set;

struct core_layout {
	uint64_t bits; // driver.Layout
	uint32_t storage, params; // how many bindings of each sort
	uint32_t slots[CORE_BINDINGS], params_slot;
	WGPUBindGroupLayout group;
	WGPUPipelineLayout pipeline;
};

struct core_device {
	core_calls const *calls;
	WGPUDevice device;
	WGPUQueue queue;
	core_watch *watch;
	int adopted;
	bool software; // the system's driver computes on the CPU

	core_buffer *buffers;
	core_kernel *kernels;
	core_set *sets;
	core_layout **layouts;
	uint32_t nbuffers, nkernels, nsets, nlayouts;

	WGPUBuffer params; // parameter blocks of the list at hand
	uint64_t params_size;
	char *shown; // what it holds, as far as that is known
	size_t nshown;
	uint32_t generation; // counts parameter buffers

	WGPUQuerySet clock; // of CORE_TIMES timestamps, and where they are resolved to; NULL until somebody asks for one
	WGPUBuffer times;
	uint32_t ntimes; // of the segment

	WGPUBuffer guard; // what guarded kernels tell of loops that were ended; see guard.go
	WGPUBindGroupLayout guard_layout;
	WGPUBindGroup guard_group; // NULL until somebody asks for it
	bool guarded;              // the list at hand has run a guarded kernel

	bool gone;           // the library has said that the device is lost: it ends the process over a submission then
	uint64_t pending;    // bytes that wait for a submission
	uint64_t submission; // counts submissions
	WGPUCommandBuffer held; // commands for which the next submission is waited, that of a read; NULL if there are none

	// The segment of a list that is being recorded.
	uint64_t serial; // counts encoders
	WGPUCommandEncoder encoder;
	WGPUComputePassEncoder pass;
	uint32_t kernel, set, offset; // what is set in the pass
	WGPUBindGroup *dead;          // to be released after the pass: it names them until its end
	WGPUBuffer *watched;          // buffers of the segment that others might have mapped
	uint32_t ndead, capdead, nwatched, capwatched;
};

// Calls go one way: a file calls only those that come before it here, device.c any of them.

// base.c

// core_fail notes an error unless there is one already.
void core_fail(core_error *error, uint32_t type, char const *message);

core_watch *core_watch_new(core_error *error);

// core_scoped notes an error in a core_error.
void core_scoped(void *to, uint32_t type, char const *message, size_t length);

// Between core_enter and core_leave, errors of the device's calls go to error. They nest. core_check fetches what has been
// reported so far.
core_error *core_enter(core_device *d, core_error *error);
void core_check(core_device *d, core_error *error);
void core_leave(core_device *d, core_error *error, core_error *outer);

// core_grow makes a table long enough for item i, with zeros. It reports success.
int core_grow(void **table, uint32_t *n, uint32_t i, size_t size, core_error *error);

// wait.c
core_signal *core_signal_new(core_error *error);

// queue.c

// core_submit_encoder finishes an encoder and, if nothing was reported, submits it, or with hold keeps its commands for the next submission.
// It releases the encoder. It is called between core_enter and core_leave.
void core_submit_encoder(core_device *d, WGPUCommandEncoder encoder, bool hold, core_error *error);

// kernel.c
void core_layout_free(core_device *d, core_layout *l);

// buffer.c
WGPUBuffer core_create_buffer(core_device *d, uint64_t size, uint32_t usage, core_error *error);
bool core_look(core_device *d, WGPUBuffer buffer, core_error *error);
void core_probe(core_device *d, WGPUBuffer buffer, core_error *error);

// submit.c
void core_set_free(core_device *d, core_set *s);

#endif
