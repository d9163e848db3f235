// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The interpreter of command lists. driver.Objects has checked the list: ids are live, ranges lie within buffers, words
// are well formed. What can still go wrong is reported by wgpu-native itself.
//
// A list is recorded in segments, each an encoder of its own. Queue writes take effect before the next submission, so a
// write into a buffer that the segment uses ends the segment; any other write may run ahead of it.

#include "state.h"

enum { OP_WRITE = 1, OP_COPY, OP_CLEAR, OP_BIND, OP_UNBIND, OP_DISPATCH, OP_TIMESTAMP }; // driver.Op

static uint64_t u64(uint32_t const *w) { return w[0] | (uint64_t)w[1] << 32; }

static void end_pass(core_device *d) {
	if (d->pass) {
		d->calls->end_pass(d->pass);
		d->pass = NULL;
	}
	for (uint32_t i = 0; i < d->ndead; i++) d->calls->drop_group(d->dead[i]);
	d->ndead = 0;
}

// end_segment submits what has been recorded, or drops it if there was an error. With hold it may be kept for the next submission, unless
// others could map or destroy its buffers meanwhile.
static void end_segment(core_device *d, bool hold, core_error *error) {
	if (!d->encoder) return;
	end_pass(d);
	hold = hold && !d->nwatched;
	for (uint32_t i = 0; i < d->nwatched; i++) core_probe(d, d->watched[i], error);
	d->nwatched = 0;
	core_submit_encoder(d, d->encoder, hold, error);
	d->encoder = NULL;
}

static void begin_segment(core_device *d) {
	if (d->encoder) return;
	d->encoder = d->calls->create_encoder(d->device, "sublet batch");
	d->ntimes = 0;
	d->serial++;
}

static void begin_pass(core_device *d) {
	if (d->pass) return;
	begin_segment(d);
	d->pass = d->calls->begin_pass(d->encoder, "sublet kernels");
	d->kernel = d->set = 0;
}

// use notes that the segment uses a buffer. What is already seen to be spoilt is not recorded: that would be an error, which the binding
// might take for its own.
static WGPUBuffer use(core_device *d, uint32_t id, core_error *error) {
	core_buffer *b = &d->buffers[id];
	if (b->stamp == d->serial) return b->ref;
	b->stamp = d->serial;
	if (b->watched) core_look(d, b->ref, error);
	if (b->watched && core_grow((void **)&d->watched, &d->capwatched, d->nwatched, sizeof *d->watched, error))
		d->watched[d->nwatched++] = b->ref;
	return b->ref;
}

// write hands memory to the queue in pieces. wgpu-native keeps a copy of each until it has been submitted and executed.
static void write(core_device *d, WGPUBuffer b, uint64_t offset, char const *bytes, uint64_t size, core_error *error) {
	while (size > 0 && !error->type) {
		uint64_t n = size < CORE_BACKLOG ? size : CORE_BACKLOG;
		d->calls->write(d->queue, b, offset, bytes, n);
		core_backlog(d, n + CORE_WRITE);
		offset += n;
		bytes += n;
		size -= n;
	}
}

static void op_write(core_device *d, uint32_t const *w, core_data const *data, core_error *error) {
	core_buffer *b = &d->buffers[w[0]];
	if (d->encoder && b->stamp == d->serial) end_segment(d, false, error);
	if (b->watched) core_look(d, b->ref, error);
	if (error->type || !data[w[3]].size) return;
	char const *bytes = (char const *)data[w[3]].bytes;
	uint64_t size = data[w[3]].size, rest = size % 4, offset = u64(w + 1);
	write(d, b->ref, offset, bytes, size - rest, error);
	char last[4] = {0};
	memcpy(last, bytes + size - rest, rest);
	if (rest) write(d, b->ref, offset + size - rest, last, sizeof last, error);
	b->written = d->submission;
	core_check(d, error);
}

static void op_copy(core_device *d, uint32_t const *w, core_error *error) {
	uint64_t size = u64(w + 6);
	if (!size) return;
	end_pass(d);
	begin_segment(d);
	WGPUBuffer dst = use(d, w[0], error), src = use(d, w[3], error);
	if (error->type) return;
	d->calls->copy(d->encoder, src, u64(w + 4), dst, u64(w + 1), size);
}

static void op_clear(core_device *d, uint32_t const *w, core_error *error) {
	uint64_t size = u64(w + 3);
	if (!size) return; // to clear nothing is fatal
	end_pass(d);
	begin_segment(d);
	WGPUBuffer b = use(d, w[0], error);
	if (!error->type) d->calls->clear(d->encoder, b, u64(w + 1), size);
}

void core_set_free(core_device *d, core_set *s) {
	if (s->group) d->calls->drop_group(s->group);
	free(s->entries);
	*s = (core_set){0};
}

// make_group makes the bind group of a set, again if the parameter buffer has changed.
static void make_group(core_device *d, core_set *s, core_error *error) {
	core_bound entries[CORE_BINDINGS];
	size_t n = 0;

	for (; n < s->layout->storage; n++) {
		core_entry *e = &s->entries[n];
		core_buffer *b = &d->buffers[e->buffer];
		if (b->watched) core_look(d, b->ref, error);
		entries[n] = (core_bound){s->layout->slots[n], b->ref, e->offset, e->size};
	}
	if (error->type) return;
	if (s->layout->params) entries[n++] = (core_bound){s->layout->params_slot, d->params, 0, CORE_WINDOW};
	WGPUBindGroup group = d->calls->create_group(d->device, s->layout->group, n, entries);
	core_check(d, error);
	if (error->type) {
		if (group) d->calls->drop_group(group);
		return;
	}
	if (s->group) d->calls->drop_group(s->group);
	s->group = group;
	s->generation = d->generation;
}

// op_bind notes a set even after an error, as driver.Objects has noted it. Its group is then made when it is used.
static void op_bind(core_device *d, uint32_t const *w, core_error *error) {
	core_error trouble = {0};
	core_set s = {.layout = core_layout_of(d, u64(w + 1), &trouble)};

	if (s.layout && core_grow((void **)&d->sets, &d->nsets, w[0], sizeof *d->sets, &trouble) &&
		!(s.entries = calloc(s.layout->storage + 1, sizeof *s.entries)))
		core_fail(&trouble, CORE_MEMORY, "out of host memory");
	if (trouble.type) {
		core_fail(error, trouble.type, trouble.message);
		free(trouble.message);
		return;
	}
	for (uint32_t i = 0; i < s.layout->storage; i++) {
		uint32_t const *e = w + 3 + 5 * i;
		s.entries[i] = (core_entry){e[0], u64(e + 1), u64(e + 3)};
	}
	if (!error->type) make_group(d, &s, error);
	d->sets[w[0]] = s;
}

static void op_unbind(core_device *d, uint32_t const *w, core_error *error) {
	if (w[0] >= d->nsets) return;
	core_set *s = &d->sets[w[0]];
	if (d->pass && s->group && s->stamp == d->serial) {
		if (!core_grow((void **)&d->dead, &d->capdead, d->ndead, sizeof *d->dead, error)) end_pass(d);
		else {
			d->dead[d->ndead++] = s->group;
			s->group = NULL;
		}
	}
	core_set_free(d, s);
	if (d->set == w[0]) d->set = 0;
}

static void op_dispatch(core_device *d, uint32_t const *w, core_error *error) {
	core_set *s = w[1] < d->nsets ? &d->sets[w[1]] : NULL;
	if (!s || !s->layout || w[0] >= d->nkernels || !d->kernels[w[0]].pipeline) {
		core_fail(error, CORE_INVALID, "a binding set or kernel that could not be made");
		return;
	}
	if (!w[2] || !w[3] || !w[4]) return;
	if (!s->group || (s->layout->params && s->generation != d->generation)) make_group(d, s, error);
	if (error->type) return;
	begin_pass(d);
	if (s->stamp != d->serial) {
		s->stamp = d->serial;
		for (uint32_t i = 0; i < s->layout->storage; i++) use(d, s->entries[i].buffer, error);
		if (error->type) return;
	}
	core_kernel *k = &d->kernels[w[0]];
	if (d->kernel != w[0]) {
		d->calls->set_pipeline(d->pass, k->pipeline);
		if (k->guarded) d->calls->set_group(d->pass, 1, d->guard_group, 0, NULL);
		d->guarded |= k->guarded;
	}
	if (d->set != w[1] || (s->layout->params && d->offset != w[5]))
		d->calls->set_group(d->pass, 0, s->group, s->layout->params, &w[5]);
	d->kernel = w[0];
	d->set = w[1];
	d->offset = w[5];
	d->calls->dispatch(d->pass, w[2], w[3], w[4]);
}

// make_clock makes what timestamps are written and resolved to.
static bool make_clock(core_device *d, core_error *error) {
	if (!d->times) d->times = core_create_buffer(d, CORE_TIMES * CORE_RESOLVED, CORE_RESOLVE | CORE_COPY_SRC, error);
	if (!error->type && !d->clock) d->clock = d->calls->create_timestamps(d->device, CORE_TIMES);
	core_check(d, error);
	return !error->type;
}

// op_timestamp takes a place of the query set, each of which a segment can use once.
static void op_timestamp(core_device *d, uint32_t const *w, core_error *error) {
	if (d->encoder && d->ntimes == CORE_TIMES) end_segment(d, false, error);
	if (error->type || !make_clock(d, error)) return;
	end_pass(d);
	begin_segment(d);
	uint32_t i = d->ntimes++;
	WGPUBuffer b = use(d, w[0], error);
	if (error->type) return;
	d->calls->timestamp(d->encoder, d->clock, i);
	d->calls->resolve(d->encoder, d->clock, i, 1, d->times, i * CORE_RESOLVED);
	d->calls->copy(d->encoder, d->times, i * CORE_RESOLVED, b, u64(w + 1), 8);
}

// grow_params makes room for n bytes of parameter blocks. A kernel sees a window of fixed size from its block on, so the
// buffer reaches that much further than the last block.
static void grow_params(core_device *d, size_t n, core_error *error) {
	if (d->params && d->params_size >= n + CORE_WINDOW) return;
	uint64_t size = d->params_size ? d->params_size : CORE_PARAMS;
	while (size < n + CORE_WINDOW) size *= 2;
	char *shown = realloc(d->shown, size);
	if (!shown) {
		core_fail(error, CORE_MEMORY, "out of host memory");
		return;
	}
	d->shown = shown;
	WGPUBuffer b = core_create_buffer(d, size, CORE_UNIFORM | CORE_COPY_DST, error);
	if (error->type) return;
	if (d->params) d->calls->drop_buffer(d->params);
	d->params = b;
	d->params_size = size;
	d->nshown = 0;
	d->generation++;
}

// set_params uploads the parameter blocks of a list, as far as the buffer does not hold them already: programs repeat
// themselves, and a write costs as much as several dispatches.
static void set_params(core_device *d, char const *params, size_t n, core_error *error) {
	grow_params(d, n, error);
	if (error->type) return;
	size_t same = 0, known = n < d->nshown ? n : d->nshown;
	while (same < known && !memcmp(params + same, d->shown + same, 4)) same += 4;
	if (same == n) return;
	if (d->nshown > same) d->nshown = same;
	write(d, d->params, same, params + same, n - same, error);
	core_check(d, error);
	if (error->type) return;
	memcpy(d->shown + same, params + same, n - same);
	d->nshown = n;
}

// core_submit reports whether the list has run a guarded kernel. With more, a read follows, and the last segment is held back for it: a
// submission costs as much as a small kernel.
bool core_submit(core_device *d, uint32_t const *words, size_t n, void const *params, size_t nparams, core_data const *data,
	bool more, core_error *error) {
	if (d->held) core_flush(d); // before its parameters change
	core_error *outer = core_enter(d, error);
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
		case OP_TIMESTAMP: op_timestamp(d, w + 1, error); break;
		}
	}
	end_segment(d, more, error);
	core_leave(d, error, outer);
	return d->guarded;
}
