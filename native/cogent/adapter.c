// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Adapters, and the way from one of them to a device.

#include "state.h"

// cog_adapters lists the adapters of some backends in a malloc'ed array. The caller releases each and frees the array.
// The instance is a fresh one, because the environment that selects drivers may have changed; adapters keep it alive.
size_t cog_adapters(uint32_t backends, WGPUAdapter **list) {
	WGPUInstanceExtras extras = {.chain = {.sType = WGPUSType_InstanceExtras}, .backends = backends};
	WGPUInstanceDescriptor descriptor = {&extras.chain};
	WGPUInstanceEnumerateAdapterOptions options = {.backends = backends};
	size_t n;

	*list = NULL;
	wgpuSetLogLevel(WGPULogLevel_Off); // what it would print, our errors carry
	WGPUInstance instance = wgpuCreateInstance(&descriptor);
	if (!instance) return 0;
	// The second call enumerates anew and takes no capacity, so leave room for adapters plugged in between.
	n = wgpuInstanceEnumerateAdapters(instance, &options, NULL);
	if (n && (*list = calloc(n + 64, sizeof **list)))
		n = wgpuInstanceEnumerateAdapters(instance, &options, *list);
	else
		n = 0;
	wgpuInstanceRelease(instance);
	return n;
}

void cog_adapter_limits(WGPUAdapter adapter, WGPULimits *limits) {
	WGPUSupportedLimits s = {0};
	wgpuAdapterGetLimits(adapter, &s);
	*limits = s.limits;
}

static void on_device(uint32_t status, WGPUDevice device, char const *message, void *userdata) {
	cog_error *error = ((void **)userdata)[1];
	if (status == WGPURequestDeviceStatus_Success)
		((void **)userdata)[0] = device;
	else
		cog_fail(error, WGPUErrorType_Validation, message);
}

static char *copy(char const *message) {
	size_t n = strlen(message) + 1;
	char *c = malloc(n);
	return c ? memcpy(c, message, n) : NULL;
}

// on_lost runs on whatever thread notices the loss first, while wgpu-native holds a lock: it may only take a note.
static void on_lost(uint32_t reason, char const *message, void *userdata) {
	cog_watch *w = userdata;
	(void)reason;
	if (__atomic_load_n(&w->lost, __ATOMIC_ACQUIRE)) return;
	char *expected = NULL, *text = copy(message ? message : "");
	if (!__atomic_compare_exchange_n(&w->reason, &expected, text, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) free(text);
	__atomic_store_n(&w->lost, 1, __ATOMIC_RELEASE);
}

// refine finds the causes that matter where the library calls every error one of validation. A cause has a line.
static uint32_t refine(uint32_t type, char const *message) {
	if (strstr(message, "\n    Not enough memory left.\n")) return COG_MEMORY;
	if (strstr(message, "\n    Parent device is lost\n")) return COG_LOST;
	return type;
}

// Errors of our own devices arrive here, on the thread and within the call that caused them: no error scope, of which
// there is one stack per device, can mix them up.
static _Thread_local cog_error *current;

static void on_error(uint32_t type, char const *message, void *userdata) {
	if (current)
		cog_fail(current, refine(type, message), message);
	else
		__atomic_fetch_add(&((cog_watch *)userdata)->strays, 1, __ATOMIC_RELAXED);
}

// Adopted devices have their handlers already: in their case errors have to be caught by scopes.
static void on_scope(uint32_t type, char const *message, void *userdata) {
	if (type != WGPUErrorType_NoError) cog_fail(userdata, refine(type, message), message);
}

cog_error *cog_enter(cog_device *d, cog_error *error) {
	cog_error *outer = current;
	if (d->adopted) {
		wgpuDevicePushErrorScope(d->device, WGPUErrorFilter_Validation);
		wgpuDevicePushErrorScope(d->device, WGPUErrorFilter_OutOfMemory);
	} else {
		current = error;
	}
	return outer;
}

void cog_leave(cog_device *d, cog_error *error, cog_error *outer) {
	if (d->adopted) {
		wgpuDevicePopErrorScope(d->device, on_scope, error);
		wgpuDevicePopErrorScope(d->device, on_scope, error);
	} else {
		current = outer;
	}
	if (error->type == COG_LOST) on_lost(0, error->message, d->watch);
}

void cog_check(cog_device *d, cog_error *error) {
	if (!d->adopted) return;
	cog_leave(d, error, NULL);
	cog_enter(d, error);
}

void cog_fail(cog_error *error, uint32_t type, char const *message) {
	if (error->type) return;
	error->type = type;
	error->message = copy(message);
}

// cog_open requests a device with all the adapter's limits and the features that driver.Features knows.
cog_device *cog_open(WGPUAdapter adapter, cog_error *error) {
	static uint32_t const wanted[] = {
		WGPUFeatureName_TimestampQuery, WGPUNativeFeature_MappablePrimaryBuffers, WGPUNativeFeature_ShaderF64};
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
	descriptor.deviceLostCallback = on_lost;
	descriptor.deviceLostUserdata = watch;
	descriptor.uncapturedErrorCallbackInfo.callback = on_error;
	descriptor.uncapturedErrorCallbackInfo.userdata = watch;
	wgpuAdapterRequestDevice(adapter, &descriptor, on_device, result); // calls back before it returns
	if (!result[0]) {
		cog_fail(error, WGPUErrorType_Validation, "the adapter gave no device");
		free(watch);
		return NULL;
	}
	return cog_device_new(result[0], watch, 0, error);
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
	return cog_device_new(device, watch, 1, error);
}
