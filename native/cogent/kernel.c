// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Layouts and compute pipelines.

#include "state.h"

static void layout_entries(cog_layout *l, WGPUBindGroupLayoutEntry *entries, size_t *n) {
	for (uint32_t slot = 0; slot < COG_BINDINGS; slot++) {
		uint32_t access = l->bits >> (2 * slot) & 3;
		if (!access) continue;
		WGPUBindGroupLayoutEntry *e = &entries[(*n)++];
		*e = (WGPUBindGroupLayoutEntry){.binding = slot, .visibility = WGPUShaderStage_Compute};
		if (access == COG_ACCESS_PARAMS) {
			l->params = 1;
			l->params_slot = slot;
			e->buffer.type = WGPUBufferBindingType_Uniform;
			e->buffer.hasDynamicOffset = 1;
			e->buffer.minBindingSize = COG_WINDOW; // a kernel that wants more does not compile
		} else {
			l->slots[l->storage++] = slot;
			e->buffer.type = access == COG_ACCESS_READ ? WGPUBufferBindingType_ReadOnlyStorage
								   : WGPUBufferBindingType_Storage;
		}
	}
}

// cog_layout_of returns the layout with these bits. Layouts live as long as the device and never move.
cog_layout *cog_layout_of(cog_device *d, uint64_t bits, cog_error *error) {
	WGPUBindGroupLayoutEntry entries[COG_BINDINGS];
	WGPUBindGroupLayoutDescriptor group = {.label = "sublet", .entries = entries};
	WGPUPipelineLayoutDescriptor pipeline = {.label = "sublet", .bindGroupLayoutCount = 1};
	uint32_t i = 0;

	for (; i < d->nlayouts && d->layouts[i]; i++)
		if (d->layouts[i]->bits == bits) return d->layouts[i];
	if (!cog_grow((void **)&d->layouts, &d->nlayouts, i, sizeof *d->layouts, error)) return NULL;
	cog_layout *l = calloc(1, sizeof *l);
	if (!l) {
		cog_fail(error, COG_MEMORY, "out of host memory");
		return NULL;
	}
	l->bits = bits;
	layout_entries(l, entries, &group.entryCount);
	cog_error *outer = cog_enter(d, error);
	l->group = wgpuDeviceCreateBindGroupLayout(d->device, &group);
	cog_check(d, error);
	if (!error->type) {
		pipeline.bindGroupLayouts = &l->group;
		l->pipeline = wgpuDeviceCreatePipelineLayout(d->device, &pipeline);
	}
	cog_leave(d, error, outer);
	if (error->type) {
		cog_layout_free(l);
		return NULL;
	}
	return d->layouts[i] = l;
}

void cog_layout_free(cog_layout *l) {
	if (l->pipeline) wgpuPipelineLayoutRelease(l->pipeline);
	if (l->group) wgpuBindGroupLayoutRelease(l->group);
	free(l);
}

// cog_guard makes the guard. Kernels count the loops that were ended in its first word and compare the second one, which is 2.
void cog_guard(cog_device *d, cog_error *error) {
	WGPUBindGroupLayoutEntry slot = {.visibility = WGPUShaderStage_Compute, .buffer.type = WGPUBufferBindingType_Storage};
	WGPUBindGroupLayoutDescriptor layout = {.entryCount = 1, .entries = &slot};
	uint32_t const start[COG_GUARD / 4] = {0, 2};

	if (d->guard_group) return;
	cog_error *outer = cog_enter(d, error);
	if (!d->guard_layout) d->guard_layout = wgpuDeviceCreateBindGroupLayout(d->device, &layout);
	uint32_t usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
	if (!d->guard) d->guard = cog_create_buffer(d, COG_GUARD, usage, error);
	cog_check(d, error);
	if (!error->type) {
		WGPUBindGroupEntry entry = {.buffer = d->guard, .size = COG_GUARD};
		WGPUBindGroupDescriptor group = {.layout = d->guard_layout, .entryCount = 1, .entries = &entry};
		wgpuQueueWriteBuffer(d->queue, d->guard, 0, start, sizeof start);
		d->guard_group = wgpuDeviceCreateBindGroup(d->device, &group);
	}
	cog_leave(d, error, outer);
}

// cog_compile may take long. It touches nothing of d but the device itself and the layout of the guard.
WGPUComputePipeline cog_compile(cog_device *d, cog_layout *l, bool guarded, char const *source, char const *entry,
	char const *label, cog_error *error) {
	WGPUBindGroupLayout groups[] = {l->group, d->guard_layout};
	WGPUPipelineLayoutDescriptor both = {.bindGroupLayoutCount = 2, .bindGroupLayouts = groups};
	WGPUShaderModuleWGSLDescriptor wgsl = {{.sType = WGPUSType_ShaderModuleWGSLDescriptor}, source};
	WGPUShaderModuleDescriptor module = {.nextInChain = &wgsl.chain, .label = label};
	WGPUComputePipelineDescriptor descriptor = {.label = label, .layout = l->pipeline};
	WGPUComputePipeline pipeline = NULL;

	cog_error *outer = cog_enter(d, error);
	if (guarded) descriptor.layout = wgpuDeviceCreatePipelineLayout(d->device, &both);
	descriptor.compute.module = wgpuDeviceCreateShaderModule(d->device, &module);
	descriptor.compute.entryPoint = entry;
	cog_check(d, error);
	if (!error->type) pipeline = wgpuDeviceCreateComputePipeline(d->device, &descriptor);
	// The library takes every error of the system's compiler that it does not know for the loss of the device.
	if (d->software && error->type == COG_LOST) {
		free(error->message);
		*error = (cog_error){0};
		cog_fail(error, WGPUErrorType_Validation, "the system's compiler does not take it");
	}
	cog_leave(d, error, outer);
	wgpuShaderModuleRelease(descriptor.compute.module);
	if (guarded) wgpuPipelineLayoutRelease(descriptor.layout);
	if (!error->type) return pipeline;
	if (pipeline) wgpuComputePipelineRelease(pipeline);
	return NULL;
}

// cog_kernel_put gives a pipeline an id; NULL frees the one that is there.
void cog_kernel_put(cog_device *d, uint32_t id, WGPUComputePipeline pipeline, bool guarded, cog_error *error) {
	if (!cog_grow((void **)&d->kernels, &d->nkernels, id, sizeof *d->kernels, error)) return;
	if (d->kernels[id].pipeline) {
		wgpuComputePipelineRelease(d->kernels[id].pipeline);
		d->pending += COG_KERNEL;
	}
	d->kernels[id] = (cog_kernel){pipeline, guarded};
}
