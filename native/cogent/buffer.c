// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Buffers: making, importing, reading and mapping them.

#include "state.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

WGPUBuffer cog_create_buffer(cog_device *d, uint64_t size, uint32_t usage, cog_error *error) {
	WGPUBufferDescriptor descriptor = {.label = "sublet", .usage = usage, .size = size};
	if (usage & WGPUBufferUsage_Uniform) descriptor.label = "sublet parameters";
	else if (!(usage & WGPUBufferUsage_Storage)) descriptor.label = "sublet staging";
	cog_error *outer = cog_enter(d, error);
	WGPUBuffer b = wgpuDeviceCreateBuffer(d->device, &descriptor);
	cog_leave(d, error, outer);
	if (!error->type) return b;
	wgpuBufferRelease(b);
	return NULL;
}

void cog_buffer_new(cog_device *d, uint32_t id, uint64_t size, bool mappable, cog_error *error) {
	uint32_t usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
	if (mappable) usage |= WGPUBufferUsage_MapRead | WGPUBufferUsage_MapWrite;
	if (!cog_grow((void **)&d->buffers, &d->nbuffers, id, sizeof *d->buffers, error)) return;
	d->buffers[id] = (cog_buffer){.ref = cog_create_buffer(d, size, usage, error)};
}

// settle makes sure that a buffer from elsewhere is not destroyed and not mapped. There is no call to ask: a buffer that is
// destroyed cannot be copied from, and one that can be mapped again is probed. For one that cannot, cog_still_mapped knows; where
// it does not, unmapping is an error unless the buffer was still mapped from its creation on, and then it is not any more.
static void settle(cog_device *d, WGPUBuffer b, cog_error *error) {
	uint32_t const mappable = WGPUBufferUsage_MapRead | WGPUBufferUsage_MapWrite;
	cog_error probe = {0};

	WGPUBuffer scratch = cog_create_buffer(d, 4, WGPUBufferUsage_CopyDst, error);
	if (!scratch) return;
	cog_error *outer = cog_enter(d, error);
	WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(d->device, NULL);
	if (wgpuBufferGetSize(b) >= 4) wgpuCommandEncoderCopyBufferToBuffer(encoder, b, 0, scratch, 0, 4);
	wgpuCommandEncoderRelease(encoder);
	cog_leave(d, error, outer);
	wgpuBufferRelease(scratch);
	if (error->type) return;

	if (wgpuBufferGetUsage(b) & mappable) {
		if (cog_is_mapped(d, b)) cog_fail(error, COG_MAPPED, "");
		return;
	}
	int mapped = cog_still_mapped(b);
	if (mapped > 0) cog_fail(error, COG_MAPPED, "");
	if (mapped >= 0) return;
	outer = cog_enter(d, &probe);
	wgpuBufferUnmap(b);
	cog_leave(d, &probe, outer);
	if (!probe.type) cog_fail(error, COG_MAPPED, "it was mapped at its creation and is now unmapped");
	free(probe.message);
}

// cog_buffer_import takes a reference to a buffer of this device.
void cog_buffer_import(cog_device *d, uint32_t id, WGPUBuffer buffer, cog_error *error) {
	if (!cog_grow((void **)&d->buffers, &d->nbuffers, id, sizeof *d->buffers, error)) return;
	settle(d, buffer, error);
	if (error->type) return;
	wgpuBufferReference(buffer);
	d->buffers[id] = (cog_buffer){.ref = buffer, .watched = 1};
}

// cog_buffer_destroy destroys a buffer of somebody else's.
void cog_buffer_destroy(cog_device *d, WGPUBuffer buffer, cog_error *error) {
	int mapped = cog_is_mapped(d, buffer);
	cog_error *outer = cog_enter(d, error);
	if (mapped) wgpuBufferUnmap(buffer);
	wgpuBufferDestroy(buffer);
	cog_leave(d, error, outer);
}

// cog_buffer_handle returns a buffer, for others if watch is set.
WGPUBuffer cog_buffer_handle(cog_device *d, uint32_t id, int watch) {
	if (id >= d->nbuffers || !d->buffers[id].ref) return NULL;
	if (watch) d->buffers[id].watched = 1;
	return d->buffers[id].ref;
}

// cog_buffer_free lets go of a buffer. Destroying it returns the memory once running work is done with it, even if
// binding sets still name it, and once writes into it have been submitted.
void cog_buffer_free(cog_device *d, uint32_t id, bool destroy) {
	if (id >= d->nbuffers || !d->buffers[id].ref) return;
	cog_buffer b = d->buffers[id];
	d->buffers[id] = (cog_buffer){0};
	if (destroy) wgpuBufferDestroy(b.ref);
	if (d->pending && b.written == d->submission) d->pending += wgpuBufferGetSize(b.ref);
	wgpuBufferRelease(b.ref);
}

WGPUBuffer cog_staging_new(cog_device *d, uint64_t size, cog_error *error) {
	return cog_create_buffer(d, size, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, error);
}

// cog_read copies parts of a buffer into a staging buffer and maps that. The signal is for the end of it all.
cog_signal *cog_read(cog_device *d, cog_span const *span, WGPUBuffer staging, cog_error *error) {
	WGPUBuffer source = cog_buffer_handle(d, span->buffer, 0);
	if (span->count && !source) {
		cog_fail(error, WGPUErrorType_Validation, "no such buffer");
		return NULL;
	}
	if (span->count && d->buffers[span->buffer].watched && cog_is_mapped(d, source)) {
		cog_fail(error, COG_MAPPED, "");
		return NULL;
	}
	cog_error *outer = cog_enter(d, error);
	WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(d->device, &(WGPUCommandEncoderDescriptor){.label = "sublet read"});
	for (uint64_t i = 0; i < span->count; i++)
		wgpuCommandEncoderCopyBufferToBuffer(
			encoder, source, span->offset + i * span->pitch, staging, i * span->size, span->size);
	uint64_t size = span->size * span->count, guard = span->guard ? COG_GUARD : 0;
	if (guard) wgpuCommandEncoderCopyBufferToBuffer(encoder, d->guard, 0, staging, size, guard);
	cog_submit_encoder(d, encoder, error);
	cog_leave(d, error, outer);
	if (error->type) return NULL;
	return cog_map(d, staging, WGPUMapMode_Read, 0, size + guard, error);
}

// cog_map asks for size bytes of a buffer. wgpu-native zeroes what of them was never written, on its way to the signal.
cog_signal *cog_map(cog_device *d, WGPUBuffer buffer, uint32_t mode, uint64_t offset, uint64_t size, cog_error *error) {
	cog_signal *s = cog_signal_new(error);
	if (!s) return NULL;
	cog_error *outer = cog_enter(d, error);
	wgpuBufferMapAsync(buffer, mode, offset, size, cog_raise, s);
	cog_leave(d, error, outer);
	if (!error->type) return s;
	cog_signal_free(s);
	return NULL;
}

// cog_mapped returns the memory of a buffer whose mapping of just these bytes has succeeded. Asking otherwise is fatal.
void *cog_mapped(WGPUBuffer buffer, uint64_t offset, uint64_t size) {
	return wgpuBufferGetMappedRange(buffer, offset, size);
}

// cog_populate asks for the pages of memory. It is a favour that the system may refuse: Linux does it from 5.14 on.
void cog_populate(void *memory, uint64_t offset, uint64_t size) {
#ifdef __linux__
	enum { POPULATE_WRITE = 23 }; // MADV_POPULATE_WRITE, which older headers lack
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)memory + offset;
	uintptr_t start = from & ~(page - 1), end = (from + size) & ~(page - 1);
	madvise((void *)start, end - start, POPULATE_WRITE);
#else
	(void)memory, (void)offset, (void)size;
#endif
}

// cog_unmap ends a mapping or the wait for one. To unmap what is not mapped is an error of no interest.
void cog_unmap(cog_device *d, WGPUBuffer buffer) {
	cog_error ignored = {0};
	cog_error *outer = cog_enter(d, &ignored);
	wgpuBufferUnmap(buffer);
	cog_leave(d, &ignored, outer);
	free(ignored.message);
}

// cog_is_mapped tries to map nothing of a buffer that can be mapped and takes it back: this fails if a mapping is held
// or asked for, and changes nothing then.
int cog_is_mapped(cog_device *d, WGPUBuffer buffer) {
	uint32_t usage = wgpuBufferGetUsage(buffer);
	uint32_t mode = usage & WGPUBufferUsage_MapRead ? WGPUMapMode_Read
		: usage & WGPUBufferUsage_MapWrite      ? WGPUMapMode_Write
							: 0;
	cog_error error = {0};
	if (!mode) return 0;
	cog_signal *s = cog_map(d, buffer, mode, 0, 0, &error);
	free(error.message);
	if (!s) return 1;
	cog_unmap(d, buffer);
	cog_signal_free(s);
	return 0;
}
