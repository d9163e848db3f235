// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Buffers: making, importing, reading and mapping them.

#include "state.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

WGPUBuffer core_create_buffer(core_device *d, uint64_t size, uint32_t usage, core_error *error) {
	char const *label = usage & CORE_STORAGE ? "sublet" : usage & CORE_UNIFORM ? "sublet parameters" : "sublet staging";
	core_error *outer = core_enter(d, error);
	WGPUBuffer b = d->calls->create_buffer(d->device, label, size, usage);
	core_leave(d, error, outer);
	if (!error->type) return b;
	if (b) d->calls->drop_buffer(b);
	return NULL;
}

void core_buffer_new(core_device *d, uint32_t id, uint64_t size, bool mappable, core_error *error) {
	uint32_t usage = CORE_STORAGE | CORE_COPY_SRC | CORE_COPY_DST;
	if (mappable) usage |= CORE_MAP_READ | CORE_MAP_WRITE;
	if (!core_grow((void **)&d->buffers, &d->nbuffers, id, sizeof *d->buffers, error)) return;
	d->buffers[id] = (core_buffer){.ref = core_create_buffer(d, size, usage, error)};
}

static bool mappable(core_device *d, WGPUBuffer b) { return d->calls->buffer_usage(b) & (CORE_MAP_READ | CORE_MAP_WRITE); }

// core_look fails if a buffer was seen to be destroyed or mapped. It reports whether that is all there is to know.
bool core_look(core_device *d, WGPUBuffer buffer, core_error *error) {
	switch (d->calls->buffer_state(d->device, buffer)) {
	case CORE_BUFFER_FINE: break;
	case CORE_BUFFER_MAPPED: core_fail(error, CORE_MAPPED, ""); break;
	case CORE_BUFFER_DESTROYED: core_fail(error, CORE_INVALID, "the buffer is destroyed"); break;
	case CORE_BUFFER_FOREIGN: core_fail(error, CORE_INVALID, "the buffer is of another device"); break;
	default: return false;
	}
	return true;
}

// settle makes sure that a buffer from elsewhere is of this device, not destroyed and not mapped. Where this was not seen, some versions of
// the library say by a copy that is recorded whose the buffer is, and whether it is destroyed; core_probe finds out the rest.
static void settle(core_device *d, WGPUBuffer b, core_error *error) {
	if (core_look(d, b, error)) return;
	WGPUBuffer scratch = core_create_buffer(d, 4, CORE_COPY_DST, error);
	if (!scratch) return;
	core_error *outer = core_enter(d, error);
	WGPUCommandEncoder encoder = d->calls->create_encoder(d->device, "sublet probe");
	if (d->calls->buffer_size(b) >= 4) d->calls->copy(encoder, b, 0, scratch, 0, 4);
	d->calls->drop_encoder(encoder);
	core_leave(d, error, outer);
	d->calls->drop_buffer(scratch);
	if (!error->type) core_probe(d, b, error);
}

// core_buffer_import takes a reference to a buffer of this device.
void core_buffer_import(core_device *d, uint32_t id, WGPUBuffer buffer, core_error *error) {
	if (!core_grow((void **)&d->buffers, &d->nbuffers, id, sizeof *d->buffers, error)) return;
	settle(d, buffer, error);
	if (error->type) return;
	d->calls->add_buffer(buffer);
	d->buffers[id] = (core_buffer){.ref = buffer, .watched = 1};
}

// core_buffer_destroy destroys a buffer of somebody else's.
void core_buffer_destroy(core_device *d, WGPUBuffer buffer, core_error *error) {
	core_error state = {0};
	core_probe(d, buffer, &state);
	free(state.message);
	if (state.type == CORE_INVALID) return; // destroyed
	if (state.type == CORE_MAPPED) core_unmap(d, buffer);
	core_error *outer = core_enter(d, error);
	d->calls->destroy_buffer(buffer);
	core_leave(d, error, outer);
}

// core_buffer_handle returns a buffer, for others if watch is set.
WGPUBuffer core_buffer_handle(core_device *d, uint32_t id, int watch) {
	if (id >= d->nbuffers || !d->buffers[id].ref) return NULL;
	if (watch) d->buffers[id].watched = 1;
	return d->buffers[id].ref;
}

// core_buffer_free releases a buffer. Destroying it returns the memory once running work is done with it, even if
// binding sets still name it, and once writes into it have been submitted.
void core_buffer_free(core_device *d, uint32_t id, bool destroy) {
	if (id >= d->nbuffers || !d->buffers[id].ref) return;
	core_buffer b = d->buffers[id];
	d->buffers[id] = (core_buffer){0};
	if (destroy && d->held) core_flush(d); // to submit commands of a destroyed buffer is fatal
	if (destroy) d->calls->destroy_buffer(b.ref);
	if (d->pending && b.written == d->submission) d->pending += d->calls->buffer_size(b.ref);
	d->calls->drop_buffer(b.ref);
}

uint64_t core_buffer_size(core_device *d, WGPUBuffer buffer) { return d->calls->buffer_size(buffer); }

uint32_t core_buffer_usage(core_device *d, WGPUBuffer buffer) { return d->calls->buffer_usage(buffer); }

// core_take_buffer takes a reference to a buffer of the user's, unless the last one was released.
bool core_take_buffer(core_device *d, WGPUBuffer buffer) { return d->calls->take_buffer(buffer); }

WGPUBuffer core_staging_new(core_device *d, uint64_t size, core_error *error) {
	return core_create_buffer(d, size, CORE_MAP_READ | CORE_COPY_DST, error);
}

// core_read copies parts of a buffer into a staging buffer and maps that. The signal is for the end of it all.
core_signal *core_read(core_device *d, core_span const *span, WGPUBuffer staging, core_error *error) {
	WGPUBuffer source = core_buffer_handle(d, span->buffer, 0);
	if (span->count && !source) {
		core_fail(error, CORE_INVALID, "no such buffer");
		return NULL;
	}
	if (span->count && d->buffers[span->buffer].watched) {
		core_probe(d, source, error);
		if (error->type) return NULL;
	}
	core_error *outer = core_enter(d, error);
	WGPUCommandEncoder encoder = d->calls->create_encoder(d->device, "sublet read");
	for (uint64_t i = 0; i < span->count; i++)
		d->calls->copy(
			encoder, source, span->offset + i * span->pitch, staging, i * span->size, span->size);
	uint64_t size = span->size * span->count, guard = span->guard ? CORE_GUARD : 0;
	if (guard) d->calls->copy(encoder, d->guard, 0, staging, size, guard);
	core_submit_encoder(d, encoder, false, error);
	core_leave(d, error, outer);
	if (error->type) return NULL;
	return core_map(d, staging, false, 0, size + guard, error);
}

// core_map asks for size bytes of a buffer. wgpu-native zeroes what of them was never written, on its way to the signal.
core_signal *core_map(core_device *d, WGPUBuffer buffer, bool write, uint64_t offset, uint64_t size, core_error *error) {
	core_signal *s = core_signal_new(error);
	if (!s) return NULL;
	core_error *outer = core_enter(d, error);
	d->calls->map(buffer, write, offset, size, s);
	core_leave(d, error, outer);
	if (!error->type) return s;
	core_signal_free(s);
	return NULL;
}

// core_mapped returns the memory of a buffer whose mapping of just these bytes has succeeded. Asking otherwise is fatal.
void *core_mapped(core_device *d, WGPUBuffer buffer, uint64_t offset, uint64_t size) {
	return d->calls->mapped_range(buffer, offset, size);
}

// core_populate asks for the pages of memory. It is a favour that the system may refuse: Linux does it from 5.14 on.
void core_populate(void *memory, uint64_t offset, uint64_t size) {
#ifdef __linux__
	enum { POPULATE_WRITE = 23 }; // MADV_POPULATE_WRITE, which older headers lack
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)memory + offset;
	uintptr_t start = from & ~(page - 1), end = (from + size) & ~(page - 1);
	madvise((void *)start, end - start, POPULATE_WRITE);
#else
	(void)memory, (void)offset, (void)size;
#endif
}

// core_unmap ends a mapping or the wait for one. To unmap what is not mapped is an error of no interest.
void core_unmap(core_device *d, WGPUBuffer buffer) {
	core_error ignored = {0};
	core_error *outer = core_enter(d, &ignored);
	d->calls->unmap(buffer);
	core_leave(d, &ignored, outer);
	free(ignored.message);
}

// destroyed reports whether a message of the library says of a buffer that it is destroyed.
static bool destroyed(char const *message) {
	return message && (strstr(message, " label has been destroyed\n") || strstr(message, "Buffer is destroyed\n"));
}

// provoke is core_probe where nothing was seen. A buffer that can be mapped is asked for a mapping of nothing, which is taken
// back: this fails if it is destroyed, or if a mapping is held or asked for, and changes nothing then. Any other buffer is unmapped: this fails
// if it is destroyed, and also if it is not mapped. If it was mapped, which is from its creation on, it is not any more.
static void provoke(core_device *d, WGPUBuffer buffer, core_error *error) {
	core_error found = {0};
	bool ask = mappable(d, buffer), failed = false;
	if (ask) {
		core_signal *s = core_map(d, buffer, !(d->calls->buffer_usage(buffer) & CORE_MAP_READ), 0, 0, &found);
		if (s) {
			failed = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == CORE_RAISED && !s->ok; // and another thread's scope took the error
			if (!failed) core_unmap(d, buffer);
			core_signal_free(s);
		}
	} else {
		core_error *outer = core_enter(d, &found);
		d->calls->unmap(buffer);
		core_leave(d, &found, outer);
	}
	core_error spoilt = {0};
	if (d->calls->check_buffer) {
		core_error *outer = core_enter(d, &spoilt);
		d->calls->check_buffer(d->device, buffer);
		core_leave(d, &spoilt, outer);
	}
	if (spoilt.type == CORE_INVALID || destroyed(found.message))
		core_fail(error, CORE_INVALID, "the buffer is destroyed");
	else if (found.type == CORE_LOST || found.type == CORE_MEMORY)
		core_fail(error, found.type, found.message ? found.message : "");
	else if (ask && (found.type || failed))
		core_fail(error, CORE_MAPPED, "");
	else if (!ask && !found.type)
		core_fail(error, CORE_MAPPED, "it was mapped at its creation and is now unmapped");
	free(found.message);
	free(spoilt.message);
}

// core_probe fails if somebody else has destroyed or mapped a buffer.
void core_probe(core_device *d, WGPUBuffer buffer, core_error *error) {
	if (!core_look(d, buffer, error)) provoke(d, buffer, error);
}
