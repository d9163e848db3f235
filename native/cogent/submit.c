// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The interpreter of command lists. driver.Objects has checked the list: ids are live, ranges lie within buffers, words
// are well formed. What can still go wrong is reported by wgpu-native itself.
//
// A list is recorded in segments, each an encoder of its own. Queue writes take effect before the next submission, so a
// write into a buffer that the segment uses ends the segment; any other write may run ahead of it.

#include "state.h"

enum { OP_WRITE = 1, OP_COPY, OP_CLEAR, OP_BIND, OP_UNBIND, OP_DISPATCH }; // driver.Op

static uint64_t u64(uint32_t const *w) { return w[0] | (uint64_t)w[1] << 32; }

static void end_pass(cog_device *d) {
	if (d->pass) {
		wgpuComputePassEncoderEnd(d->pass);
		wgpuComputePassEncoderRelease(d->pass);
		d->pass = NULL;
	}
	for (uint32_t i = 0; i < d->ndead; i++) wgpuBindGroupRelease(d->dead[i]);
	d->ndead = 0;
}

// end_segment submits what has been recorded, or drops it if there was an error.
static void end_segment(cog_device *d, cog_error *error) {
	if (!d->encoder) return;
	end_pass(d);
	for (uint32_t i = 0; i < d->nwatched; i++)
		if (cog_is_mapped(d, d->watched[i])) cog_fail(error, COG_MAPPED, "");
	d->nwatched = 0;
	cog_submit_encoder(d, d->encoder, error);
	d->encoder = NULL;
}

static void begin_segment(cog_device *d) {
	if (d->encoder) return;
	d->encoder = wgpuDeviceCreateCommandEncoder(d->device, &(WGPUCommandEncoderDescriptor){.label = "sublet batch"});
	d->serial++;
}

static void begin_pass(cog_device *d) {
	if (d->pass) return;
	begin_segment(d);
	d->pass = wgpuCommandEncoderBeginComputePass(d->encoder, &(WGPUComputePassDescriptor){.label = "sublet kernels"});
	d->kernel = d->set = 0;
}

// use notes that the segment uses a buffer.
static WGPUBuffer use(cog_device *d, uint32_t id, cog_error *error) {
	cog_buffer *b = &d->buffers[id];
	if (b->stamp == d->serial) return b->ref;
	b->stamp = d->serial;
	if (b->watched && cog_grow((void **)&d->watched, &d->capwatched, d->nwatched, sizeof *d->watched, error))
		d->watched[d->nwatched++] = b->ref;
	return b->ref;
}

// write hands memory to the queue in pieces. wgpu-native keeps a copy of each until it has been submitted and executed.
static void write(cog_device *d, WGPUBuffer b, uint64_t offset, char const *bytes, uint64_t size, cog_error *error) {
	while (size > 0 && !error->type) {
		uint64_t n = size < COG_BACKLOG ? size : COG_BACKLOG;
		wgpuQueueWriteBuffer(d->queue, b, offset, bytes, n);
		cog_backlog(d, n + COG_WRITE);
		offset += n;
		bytes += n;
		size -= n;
	}
}

static void op_write(cog_device *d, uint32_t const *w, cog_data const *data, cog_error *error) {
	cog_buffer *b = &d->buffers[w[0]];
	if (d->encoder && b->stamp == d->serial) end_segment(d, error);
	if (error->type || !data[w[3]].size) return;
	char const *bytes = (char const *)data[w[3]].bytes;
	uint64_t size = data[w[3]].size, rest = size % 4, offset = u64(w + 1);
	write(d, b->ref, offset, bytes, size - rest, error);
	char last[4] = {0};
	memcpy(last, bytes + size - rest, rest);
	if (rest) write(d, b->ref, offset + size - rest, last, sizeof last, error);
	b->written = d->submission;
	cog_check(d, error);
}

static void op_copy(cog_device *d, uint32_t const *w, cog_error *error) {
	uint64_t size = u64(w + 6);
	if (!size) return;
	end_pass(d);
	begin_segment(d);
	WGPUBuffer dst = use(d, w[0], error), src = use(d, w[3], error);
	wgpuCommandEncoderCopyBufferToBuffer(d->encoder, src, u64(w + 4), dst, u64(w + 1), size);
}

static void op_clear(cog_device *d, uint32_t const *w, cog_error *error) {
	uint64_t size = u64(w + 3);
	if (!size) return; // to clear nothing is fatal
	end_pass(d);
	begin_segment(d);
	wgpuCommandEncoderClearBuffer(d->encoder, use(d, w[0], error), u64(w + 1), size);
}

void cog_set_free(cog_set *s) {
	if (s->group) wgpuBindGroupRelease(s->group);
	free(s->entries);
	*s = (cog_set){0};
}

// make_group makes the bind group of a set, again if the parameter buffer has changed.
static void make_group(cog_device *d, cog_set *s, cog_error *error) {
	WGPUBindGroupEntry entries[COG_BINDINGS];
	WGPUBindGroupDescriptor descriptor = {.label = "sublet", .layout = s->layout->group, .entries = entries};

	for (; descriptor.entryCount < s->layout->storage; descriptor.entryCount++) {
		size_t i = descriptor.entryCount;
		cog_entry *e = &s->entries[i];
		entries[i] = (WGPUBindGroupEntry){
			.binding = s->layout->slots[i],
			.buffer = d->buffers[e->buffer].ref,
			.offset = e->offset,
			.size = e->size,
		};
	}
	if (s->layout->params)
		entries[descriptor.entryCount++] = (WGPUBindGroupEntry){
			.binding = s->layout->params_slot, .buffer = d->params, .size = COG_WINDOW};
	WGPUBindGroup group = wgpuDeviceCreateBindGroup(d->device, &descriptor);
	cog_check(d, error);
	if (error->type) {
		wgpuBindGroupRelease(group);
		return;
	}
	if (s->group) wgpuBindGroupRelease(s->group);
	s->group = group;
	s->generation = d->generation;
}

// op_bind notes a set even after an error, as driver.Objects has noted it. Its group is then made when it is used.
static void op_bind(cog_device *d, uint32_t const *w, cog_error *error) {
	cog_error trouble = {0};
	cog_set s = {.layout = cog_layout_of(d, u64(w + 1), &trouble)};

	if (s.layout && cog_grow((void **)&d->sets, &d->nsets, w[0], sizeof *d->sets, &trouble) &&
		!(s.entries = calloc(s.layout->storage + 1, sizeof *s.entries)))
		cog_fail(&trouble, COG_MEMORY, "out of host memory");
	if (trouble.type) {
		cog_fail(error, trouble.type, trouble.message);
		free(trouble.message);
		return;
	}
	for (uint32_t i = 0; i < s.layout->storage; i++) {
		uint32_t const *e = w + 3 + 5 * i;
		s.entries[i] = (cog_entry){e[0], u64(e + 1), u64(e + 3)};
	}
	if (!error->type) make_group(d, &s, error);
	d->sets[w[0]] = s;
}

static void op_unbind(cog_device *d, uint32_t const *w, cog_error *error) {
	if (w[0] >= d->nsets) return;
	cog_set *s = &d->sets[w[0]];
	if (d->pass && s->group && s->stamp == d->serial) {
		if (!cog_grow((void **)&d->dead, &d->capdead, d->ndead, sizeof *d->dead, error)) end_pass(d);
		else {
			d->dead[d->ndead++] = s->group;
			s->group = NULL;
		}
	}
	cog_set_free(s);
	if (d->set == w[0]) d->set = 0;
}

static void op_dispatch(cog_device *d, uint32_t const *w, cog_error *error) {
	cog_set *s = w[1] < d->nsets ? &d->sets[w[1]] : NULL;
	if (!s || !s->layout || w[0] >= d->nkernels || !d->kernels[w[0]].pipeline) {
		cog_fail(error, WGPUErrorType_Validation, "a binding set or kernel that could not be made");
		return;
	}
	if (!w[2] || !w[3] || !w[4]) return;
	if (!s->group || (s->layout->params && s->generation != d->generation)) make_group(d, s, error);
	if (error->type) return;
	begin_pass(d);
	if (s->stamp != d->serial) {
		s->stamp = d->serial;
		for (uint32_t i = 0; i < s->layout->storage; i++) use(d, s->entries[i].buffer, error);
	}
	cog_kernel *k = &d->kernels[w[0]];
	if (d->kernel != w[0]) {
		wgpuComputePassEncoderSetPipeline(d->pass, k->pipeline);
		if (k->guarded) wgpuComputePassEncoderSetBindGroup(d->pass, 1, d->guard_group, 0, NULL);
		d->guarded |= k->guarded;
	}
	if (d->set != w[1] || (s->layout->params && d->offset != w[5]))
		wgpuComputePassEncoderSetBindGroup(d->pass, 0, s->group, s->layout->params, &w[5]);
	d->kernel = w[0];
	d->set = w[1];
	d->offset = w[5];
	wgpuComputePassEncoderDispatchWorkgroups(d->pass, w[2], w[3], w[4]);
}

// grow_params makes room for n bytes of parameter blocks. A kernel sees a window of fixed size from its block on, so the
// buffer reaches that much further than the last block.
static void grow_params(cog_device *d, size_t n, cog_error *error) {
	if (d->params && d->params_size >= n + COG_WINDOW) return;
	uint64_t size = d->params_size ? d->params_size : COG_PARAMS;
	while (size < n + COG_WINDOW) size *= 2;
	char *shown = realloc(d->shown, size);
	if (!shown) {
		cog_fail(error, COG_MEMORY, "out of host memory");
		return;
	}
	d->shown = shown;
	WGPUBuffer b = cog_create_buffer(d, size, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, error);
	if (error->type) return;
	if (d->params) wgpuBufferRelease(d->params);
	d->params = b;
	d->params_size = size;
	d->nshown = 0;
	d->generation++;
}

// set_params uploads the parameter blocks of a list, as far as the buffer does not hold them already: programs repeat
// themselves, and a write costs as much as several dispatches.
static void set_params(cog_device *d, char const *params, size_t n, cog_error *error) {
	grow_params(d, n, error);
	if (error->type) return;
	size_t same = 0, known = n < d->nshown ? n : d->nshown;
	while (same < known && !memcmp(params + same, d->shown + same, 4)) same += 4;
	if (same == n) return;
	if (d->nshown > same) d->nshown = same;
	write(d, d->params, same, params + same, n - same, error);
	cog_check(d, error);
	if (error->type) return;
	memcpy(d->shown + same, params + same, n - same);
	d->nshown = n;
}

// cog_submit reports whether the list has run a guarded kernel.
bool cog_submit(cog_device *d, uint32_t const *words, size_t n, void const *params, size_t nparams, cog_data const *data,
	cog_error *error) {
	cog_error *outer = cog_enter(d, error);
	d->guarded = false;
	set_params(d, params, nparams, error);
	for (uint32_t const *w = words, *end = words + n; w < end; w += *w >> 8) {
		uint32_t op = *w & 0xff;
		// After an error only what driver.Objects has noted is done.
		if (error->type && op != OP_BIND && op != OP_UNBIND) continue;
		switch (op) {
		case OP_WRITE: op_write(d, w + 1, data, error); break;
		case OP_COPY: op_copy(d, w + 1, error); break;
		case OP_CLEAR: op_clear(d, w + 1, error); break;
		case OP_BIND: op_bind(d, w + 1, error); break;
		case OP_UNBIND: op_unbind(d, w + 1, error); break;
		case OP_DISPATCH: op_dispatch(d, w + 1, error); break;
		}
	}
	end_segment(d, error);
	cog_leave(d, error, outer);
	return d->guarded;
}
