// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The ground of the other files: errors, the loss of a device, and tables that grow.

#include "state.h"

static char *copy(char const *message) {
	if (!message) message = "";
	size_t n = strlen(message) + 1;
	char *c = malloc(n);
	return c ? memcpy(c, message, n) : NULL;
}

void cog_fail(cog_error *error, uint32_t type, char const *message) {
	if (error->type) return;
	error->type = type;
	error->message = copy(message);
}

// on_lost runs on whatever thread notices the loss first, while wgpu-native holds a lock: it may only take a note.
static void on_lost(uint32_t reason, char const *message, void *userdata) {
	cog_watch *w = userdata;
	(void)reason;
	if (__atomic_load_n(&w->lost, __ATOMIC_ACQUIRE)) return;
	char *expected = NULL, *text = copy(message);
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

void cog_listen(WGPUDeviceDescriptor *descriptor, cog_watch *watch) {
	descriptor->deviceLostCallback = on_lost;
	descriptor->deviceLostUserdata = watch;
	descriptor->uncapturedErrorCallbackInfo.callback = on_error;
	descriptor->uncapturedErrorCallbackInfo.userdata = watch;
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
