// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The life of a device, and what it can do.

#include "state.h"

static void on_device(uint32_t status, WGPUDevice device, char const *message, void *userdata) {
	cog_error *error = ((void **)userdata)[1];
	if (status == WGPURequestDeviceStatus_Success)
		((void **)userdata)[0] = device;
	else
		cog_fail(error, WGPUErrorType_Validation, message);
}

// new_device takes over the reference to the device, also when it fails.
static cog_device *new_device(WGPUDevice device, cog_watch *watch, int adopted, cog_error *error) {
	cog_device *d = calloc(1, sizeof *d);
	if (!d) {
		cog_fail(error, COG_MEMORY, "out of host memory");
		wgpuDeviceRelease(device);
		return NULL;
	}
	d->device = device;
	d->queue = wgpuDeviceGetQueue(device);
	d->watch = watch;
	d->adopted = adopted;
	return d;
}

// cog_open requests a device with all the adapter's limits and the features that driver.Features knows.
cog_device *cog_open(WGPUAdapter adapter, bool software, cog_error *error) {
	static uint32_t const wanted[] = {
		WGPUNativeFeature_MappablePrimaryBuffers, WGPUNativeFeature_ShaderF64};
	uint32_t features[sizeof wanted / sizeof *wanted];
	WGPUSupportedLimits limits = {0}; // without extras: those, push constants among them, keep their defaults
	WGPUDeviceDescriptor descriptor = {0};
	void *result[2] = {NULL, error};

	cog_watch *watch = calloc(1, sizeof *watch);
	if (!watch) {
		cog_fail(error, COG_MEMORY, "out of host memory");
		return NULL;
	}
	wgpuAdapterGetLimits(adapter, &limits);
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (wgpuAdapterHasFeature(adapter, wanted[i])) features[descriptor.requiredFeatureCount++] = wanted[i];
	descriptor.requiredFeatures = features;
	descriptor.requiredLimits = &limits;
	cog_listen(&descriptor, watch);
	wgpuAdapterRequestDevice(adapter, &descriptor, on_device, result); // calls back before it returns
	if (!result[0]) {
		cog_fail(error, WGPUErrorType_Validation, "the adapter gave no device");
		free(watch);
		return NULL;
	}
	cog_device *d = new_device(result[0], watch, 0, error);
	if (d) d->software = software;
	return d;
}

// cog_adopt shares a device that the caller has. It takes a reference of its own.
cog_device *cog_adopt(WGPUDevice device, cog_error *error) {
	cog_watch *watch = calloc(1, sizeof *watch);
	if (!watch) {
		cog_fail(error, COG_MEMORY, "out of host memory");
		return NULL;
	}
	wgpuSetLogLevel(WGPULogLevel_Off);
	wgpuDeviceReference(device);
	return new_device(device, watch, 1, error);
}

// cog_close releases everything. Nothing may be running on the device any more: wgpu-native waits for at most five
// seconds when a device goes and then pulls the memory from under what still runs. keep spares the device itself.
void cog_close(cog_device *d, bool keep) {
	for (uint32_t i = 0; i < d->nsets; i++) cog_set_free(&d->sets[i]);
	for (uint32_t i = 0; i < d->nkernels; i++)
		if (d->kernels[i].pipeline) wgpuComputePipelineRelease(d->kernels[i].pipeline);
	for (uint32_t i = 0; i < d->nlayouts; i++)
		if (d->layouts[i]) cog_layout_free(d->layouts[i]);
	for (uint32_t i = 0; i < d->nbuffers; i++)
		if (d->buffers[i].ref) wgpuBufferRelease(d->buffers[i].ref);
	if (d->params) wgpuBufferRelease(d->params);
	if (d->guard_group) wgpuBindGroupRelease(d->guard_group);
	if (d->guard_layout) wgpuBindGroupLayoutRelease(d->guard_layout);
	if (d->guard) wgpuBufferRelease(d->guard);
	free(d->shown);
	wgpuQueueRelease(d->queue);
	if (!keep) wgpuDeviceRelease(d->device);
	free(d->sets);
	free(d->kernels);
	free(d->layouts);
	free(d->buffers);
	free(d->dead);
	free(d->watched);
	free(d);
}

WGPUDevice cog_handle(cog_device *d) { return d->device; }

cog_watch *cog_watch_of(cog_device *d) { return d->watch; }

WGPULimits cog_limits(cog_device *d) {
	WGPUSupportedLimits s = {0};
	wgpuDeviceGetLimits(d->device, &s);
	return s.limits;
}

int cog_has_feature(cog_device *d, uint32_t feature) { return wgpuDeviceHasFeature(d->device, feature) != 0; }
