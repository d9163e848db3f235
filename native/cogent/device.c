// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The device's tables, its waiting, and its end.

#include "state.h"

int cog_grow(void **table, uint32_t *n, uint32_t i, size_t size, cog_error *error) {
	if (i < *n) return 1;
	uint64_t want = *n ? *n : 64;
	while (want <= i) want *= 2;
	char *grown = want < UINT32_MAX ? realloc(*table, want * size) : NULL;
	if (!grown) {
		cog_fail(error, COG_MEMORY, "out of host memory");
		return 0;
	}
	memset(grown + *n * size, 0, (want - *n) * size);
	*table = grown;
	*n = (uint32_t)want;
	return 1;
}

// cog_device_new takes over the reference to the device, also when it fails.
cog_device *cog_device_new(WGPUDevice device, cog_watch *watch, int adopted, cog_error *error) {
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

// cog_close releases everything. Nothing may be running on the device any more: wgpu-native waits for at most five
// seconds when a device goes and then pulls the memory from under what still runs. keep spares the device itself.
void cog_close(cog_device *d, int keep) {
	for (uint32_t i = 0; i < d->nsets; i++) cog_set_free(&d->sets[i]);
	for (uint32_t i = 0; i < d->nkernels; i++)
		if (d->kernels[i]) wgpuComputePipelineRelease(d->kernels[i]);
	for (uint32_t i = 0; i < d->nlayouts; i++)
		if (d->layouts[i]) cog_layout_free(d->layouts[i]);
	for (uint32_t i = 0; i < d->nbuffers; i++)
		if (d->buffers[i].ref) wgpuBufferRelease(d->buffers[i].ref);
	if (d->params) wgpuBufferRelease(d->params);
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

void cog_limits(cog_device *d, WGPULimits *limits) {
	WGPUSupportedLimits s = {0};
	wgpuDeviceGetLimits(d->device, &s);
	*limits = s.limits;
}

int cog_has_feature(cog_device *d, uint32_t feature) { return wgpuDeviceHasFeature(d->device, feature) != 0; }

enum { WAITING, RAISED, FORSAKEN };

// cog_raise is called once, by a callback.
void cog_raise(cog_signal *s, uint32_t status) {
	s->status = status;
	if (__atomic_exchange_n(&s->state, RAISED, __ATOMIC_ACQ_REL) == FORSAKEN) free(s);
}

// cog_signal_free is called once, by the waiter.
void cog_signal_free(cog_signal *s) {
	if (__atomic_exchange_n(&s->state, FORSAKEN, __ATOMIC_ACQ_REL) == RAISED) free(s);
}

static void on_done(uint32_t status, void *userdata) { cog_raise(userdata, status); }

// cog_queue_done returns a signal for the end of everything submitted so far.
cog_signal *cog_queue_done(cog_device *d, cog_error *error) {
	cog_signal *s = calloc(1, sizeof *s);
	if (!s) {
		cog_fail(error, COG_MEMORY, "out of host memory");
		return NULL;
	}
	wgpuQueueOnSubmittedWorkDone(d->queue, on_done, s);
	return s;
}

// cog_poll lets callbacks run and reports whether the signal was raised or, without one, whether the queue is empty.
// It never waits: the waiting poll gives up after five seconds and then takes unfinished work for done.
int cog_poll(cog_device *d, cog_signal *s) {
	int empty = wgpuDevicePoll(d->device, 0, NULL) != 0;
	return s ? __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == RAISED : empty;
}
