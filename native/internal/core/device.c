// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The life of a device, and what it can do.

#include "state.h"

size_t core_list(core_calls const *calls, uint32_t backends, WGPUInstance *instance, WGPUAdapter **list) {
	return calls->list(backends, instance, list);
}

void core_describe(core_calls const *calls, WGPUAdapter adapter, core_adapter *a) { calls->describe(adapter, a); }

void core_drop_instance(core_calls const *calls, WGPUInstance instance) { calls->drop_instance(instance); }

void core_drop_adapter(core_calls const *calls, WGPUAdapter adapter) { calls->drop_adapter(adapter); }

bool core_share_buffer(core_calls const *calls, WGPUBuffer buffer) { return calls->take_buffer(buffer); }

// core_foreign reports whether a buffer is known not to be of the device, or not to be one.
bool core_foreign(core_calls const *calls, WGPUDevice device, WGPUBuffer buffer) {
	return calls->buffer_state(device, buffer) == CORE_BUFFER_FOREIGN;
}

void core_drop_buffer(core_calls const *calls, WGPUBuffer buffer) { calls->drop_buffer(buffer); }

// new_device takes over the reference to the device, also when it fails.
static core_device *new_device(core_calls const *calls, WGPUDevice device, core_watch *watch, bool adopted, core_error *error) {
	core_device *d = calloc(1, sizeof *d);
	if (!d) {
		core_fail(error, CORE_MEMORY, "out of host memory");
		calls->drop_device(device);
		return NULL;
	}
	d->calls = calls;
	d->device = device;
	d->queue = calls->queue(device);
	d->watch = watch;
	d->adopted = adopted;
	return d;
}

// core_open requests a device with all the adapter's limits and the features that driver.Features knows.
core_device *core_open(core_calls const *calls, WGPUAdapter adapter, bool software, core_error *error) {
	core_watch *watch = core_watch_new(error);
	if (!watch) return NULL;
	WGPUDevice device = calls->request(adapter, watch, core_scoped, error);
	if (!device) {
		core_fail(error, CORE_INVALID, "the adapter gave no device");
		free(watch);
		return NULL;
	}
	core_device *d = new_device(calls, device, watch, false, error);
	if (d) d->software = software;
	return d;
}

// core_adopt shares a device that the caller has. It takes a reference of its own.
core_device *core_adopt(core_calls const *calls, WGPUDevice device, core_error *error) {
	core_watch *watch = core_watch_new(error);
	if (!watch) return NULL;
	calls->add_device(device);
	return new_device(calls, device, watch, true, error);
}

// core_close releases everything. Nothing may be running on the device any more: wgpu-native waits for at most five
// seconds when a device goes and then pulls the memory from under what still runs. keep spares the device itself.
void core_close(core_device *d, bool keep) {
	for (uint32_t i = 0; i < d->nsets; i++) core_set_free(d, &d->sets[i]);
	for (uint32_t i = 0; i < d->nkernels; i++)
		if (d->kernels[i].pipeline) d->calls->drop_pipeline(d->kernels[i].pipeline);
	for (uint32_t i = 0; i < d->nlayouts; i++)
		if (d->layouts[i]) core_layout_free(d, d->layouts[i]);
	for (uint32_t i = 0; i < d->nbuffers; i++)
		if (d->buffers[i].ref) d->calls->drop_buffer(d->buffers[i].ref);
	if (d->held) d->calls->drop_commands(d->held); // of a lost device
	if (d->clock) d->calls->drop_timestamps(d->clock);
	if (d->times) d->calls->drop_buffer(d->times);
	if (d->params) d->calls->drop_buffer(d->params);
	if (d->guard_group) d->calls->drop_group(d->guard_group);
	if (d->guard_layout) d->calls->drop_group_layout(d->guard_layout);
	if (d->guard) d->calls->drop_buffer(d->guard);
	free(d->shown);
	d->calls->drop_queue(d->queue);
	if (!keep) d->calls->drop_device(d->device);
	free(d->sets);
	free(d->kernels);
	free(d->layouts);
	free(d->buffers);
	free(d->dead);
	free(d->watched);
	free(d);
}

WGPUDevice core_handle(core_device *d) { return d->device; }

core_watch *core_watch_of(core_device *d) { return d->watch; }

void core_describe_device(core_device *d, core_adapter *a) { d->calls->describe_device(d->device, a); }
