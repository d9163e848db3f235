// SPDX-License-Identifier: Apache-2.0
//
// What the C files share and the Go side does not see.

#ifndef SUBLET_COGENT_STATE_H
#define SUBLET_COGENT_STATE_H

#include "cog.h"

#include <stdlib.h>
#include <string.h>

enum {
	COG_BINDINGS = 32,                    // driver.MaxBindings
	COG_WINDOW = 1024,                    // driver.MaxParams: what a kernel sees of the parameters
	COG_PARAMS = 64 * 1024,               // the first parameter buffer, doubled as needed
	COG_BACKLOG = 64 * 1024 * 1024,       // bytes that may wait for a submission: of writes and of what was written to
	COG_WRITE = 64 * 1024,                // what a write counts for besides its bytes
	COG_KERNEL = 1024 * 1024,             // what a kernel counts for that was freed, which takes a submission
	COG_ACCESS_READ = 1, COG_ACCESS_READ_WRITE = 2, COG_ACCESS_PARAMS = 3, // driver.Access
};

typedef struct {
	WGPUComputePipeline pipeline;
	bool guarded; // it has the guard in its second group
} cog_kernel;

typedef struct {
	WGPUBuffer ref;
	uint64_t stamp;   // the last encoder that used it
	uint64_t written; // the submission that the last write waits for
	uint32_t watched; // others have its handle and might map it
} cog_buffer;

typedef struct {
	uint32_t buffer;
	uint64_t offset, size;
} cog_entry;

typedef struct {
	WGPUBindGroup group; // NULL until it could be made
	cog_layout *layout;  // NULL: there is no such set
	cog_entry *entries;
	uint64_t stamp;      // the last encoder that used it
	uint32_t generation; // of the parameter buffer that is bound
} cog_set;

struct cog_layout {
	uint64_t bits; // driver.Layout
	uint32_t storage, params; // how many bindings of each sort
	uint32_t slots[COG_BINDINGS], params_slot;
	WGPUBindGroupLayout group;
	WGPUPipelineLayout pipeline;
};

struct cog_device {
	WGPUDevice device;
	WGPUQueue queue;
	cog_watch *watch;
	int adopted;
	bool software; // the system's driver computes on the CPU

	cog_buffer *buffers;
	cog_kernel *kernels;
	cog_set *sets;
	cog_layout **layouts;
	uint32_t nbuffers, nkernels, nsets, nlayouts;

	WGPUBuffer params; // parameter blocks of the list at hand
	uint64_t params_size;
	char *shown; // what it holds, as far as that is known
	size_t nshown;
	uint32_t generation; // counts parameter buffers

	WGPUBuffer guard; // what guarded kernels tell of loops that were ended; see guard.go
	WGPUBindGroupLayout guard_layout;
	WGPUBindGroup guard_group; // NULL until somebody asks for it
	bool guarded;              // the list at hand has run a guarded kernel

	uint64_t pending;    // bytes that wait for a submission
	uint64_t submission; // counts submissions

	// The segment of a list that is being recorded.
	uint64_t serial; // counts encoders
	WGPUCommandEncoder encoder;
	WGPUComputePassEncoder pass;
	uint32_t kernel, set, offset; // what is set in the pass
	WGPUBindGroup *dead;          // to be released after the pass: it names them until its end
	WGPUBuffer *watched;          // buffers of the segment that others might have mapped
	uint32_t ndead, capdead, nwatched, capwatched;
};

// Calls go one way: a file calls only those that come before it here, device.c any of them, adapter.c and live.c none.

// base.c

// cog_fail notes an error unless there is one already.
void cog_fail(cog_error *error, uint32_t type, char const *message);

// cog_listen makes the device that is requested with the descriptor report its loss and its errors.
void cog_listen(WGPUDeviceDescriptor *descriptor, cog_watch *watch);

// Between cog_enter and cog_leave, errors of the device's calls go to error. They nest. cog_check fetches what has been
// reported so far.
cog_error *cog_enter(cog_device *d, cog_error *error);
void cog_check(cog_device *d, cog_error *error);
void cog_leave(cog_device *d, cog_error *error, cog_error *outer);

// cog_grow makes a table long enough for item i, with zeros. It reports success.
int cog_grow(void **table, uint32_t *n, uint32_t i, size_t size, cog_error *error);

// wait.c
cog_signal *cog_signal_new(cog_error *error);

// cog_raise raises the signal, once. It is the callback to pass.
void cog_raise(uint32_t status, void *signal);

// queue.c

// cog_submit_encoder finishes an encoder and, if nothing was reported, submits it. It releases the encoder. It is called
// between cog_enter and cog_leave.
void cog_submit_encoder(cog_device *d, WGPUCommandEncoder encoder, cog_error *error);

// kernel.c
void cog_layout_free(cog_layout *l);

// buffer.c
WGPUBuffer cog_create_buffer(cog_device *d, uint64_t size, uint32_t usage, cog_error *error);
int cog_is_mapped(cog_device *d, WGPUBuffer buffer);

// submit.c
void cog_set_free(cog_set *s);

#endif
