// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Layouts and compute pipelines.

#include "state.h"

static size_t layout_slots(core_layout *l, core_slot *slots) {
	size_t n = 0;
	for (uint32_t slot = 0; slot < CORE_BINDINGS; slot++) {
		uint32_t access = l->bits >> (2 * slot) & 3;
		if (!access) continue;
		core_slot *s = &slots[n++];
		*s = (core_slot){.binding = slot, .readonly = access == CORE_ACCESS_READ};
		if (access == CORE_ACCESS_PARAMS) {
			l->params = 1;
			l->params_slot = slot;
			s->uniform = true;
			s->least = CORE_WINDOW; // a kernel that wants more does not compile
		} else {
			l->slots[l->storage++] = slot;
		}
	}
	return n;
}

// core_layout_of returns the layout with these bits. Layouts live as long as the device and never move.
core_layout *core_layout_of(core_device *d, uint64_t bits, core_error *error) {
	core_slot slots[CORE_BINDINGS];
	uint32_t i = 0;

	for (; i < d->nlayouts && d->layouts[i]; i++)
		if (d->layouts[i]->bits == bits) return d->layouts[i];
	if (!core_grow((void **)&d->layouts, &d->nlayouts, i, sizeof *d->layouts, error)) return NULL;
	core_layout *l = calloc(1, sizeof *l);
	if (!l) {
		core_fail(error, CORE_MEMORY, "out of host memory");
		return NULL;
	}
	l->bits = bits;
	size_t n = layout_slots(l, slots);
	core_error *outer = core_enter(d, error);
	l->group = d->calls->create_group_layout(d->device, n, slots);
	core_check(d, error);
	if (!error->type) l->pipeline = d->calls->create_pipeline_layout(d->device, 1, &l->group);
	core_leave(d, error, outer);
	if (error->type) {
		core_layout_free(d, l);
		return NULL;
	}
	return d->layouts[i] = l;
}

void core_layout_free(core_device *d, core_layout *l) {
	if (l->pipeline) d->calls->drop_pipeline_layout(l->pipeline);
	if (l->group) d->calls->drop_group_layout(l->group);
	free(l);
}

// core_guard makes the guard. Kernels count the loops that were ended in its first word and compare the second one, which is 2.
void core_guard(core_device *d, core_error *error) {
	uint32_t const start[CORE_GUARD / 4] = {0, 2};

	if (d->guard_group) return;
	core_error *outer = core_enter(d, error);
	if (!d->guard_layout) d->guard_layout = d->calls->create_group_layout(d->device, 1, &(core_slot){0});
	if (!d->guard) d->guard = core_create_buffer(d, CORE_GUARD, CORE_STORAGE | CORE_COPY_SRC | CORE_COPY_DST, error);
	core_check(d, error);
	if (!error->type) {
		d->calls->write(d->queue, d->guard, 0, start, sizeof start);
		d->guard_group = d->calls->create_group(d->device, d->guard_layout, 1, &(core_bound){0, d->guard, 0, CORE_GUARD});
	}
	core_leave(d, error, outer);
}

// core_compile may take long. It touches nothing of d but the device itself and the layout of the guard.
WGPUComputePipeline core_compile(core_device *d, core_layout *l, bool guarded, char const *source, char const *entry,
	char const *label, core_error *error) {
	WGPUBindGroupLayout groups[] = {l->group, d->guard_layout};
	WGPUPipelineLayout layout = l->pipeline;
	WGPUComputePipeline pipeline = NULL;

	core_error *outer = core_enter(d, error);
	if (guarded) layout = d->calls->create_pipeline_layout(d->device, 2, groups);
	WGPUShaderModule module = d->calls->create_module(d->device, label, source);
	core_check(d, error);
	if (!error->type) pipeline = d->calls->create_pipeline(d->device, label, layout, module, entry);
	// The library takes every error of the system's compiler that it does not know for the loss of the device.
	if (d->software && error->type == CORE_LOST) {
		free(error->message);
		*error = (core_error){0};
		core_fail(error, CORE_INVALID, "the system's compiler does not take it");
	}
	core_leave(d, error, outer);
	if (module) d->calls->drop_module(module);
	if (guarded && layout) d->calls->drop_pipeline_layout(layout);
	if (!error->type) return pipeline;
	if (pipeline) d->calls->drop_pipeline(pipeline);
	return NULL;
}

// core_kernel_put gives a pipeline an id; NULL frees the one that is there.
void core_kernel_put(core_device *d, uint32_t id, WGPUComputePipeline pipeline, bool guarded, core_error *error) {
	if (!core_grow((void **)&d->kernels, &d->nkernels, id, sizeof *d->kernels, error)) return;
	if (d->kernels[id].pipeline) {
		d->calls->drop_pipeline(d->kernels[id].pipeline);
		d->pending += CORE_KERNEL;
	}
	d->kernels[id] = (core_kernel){pipeline, guarded};
}

void core_drop_pipeline(core_device *d, WGPUComputePipeline pipeline) { d->calls->drop_pipeline(pipeline); }
