// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// What the other files share: errors, the loss of a device, and tables that grow.

#include "state.h"

static char *copy(char const *text, size_t length) {
	char *c = malloc(length + 1);
	if (!c) return NULL;
	if (length) memcpy(c, text, length);
	c[length] = 0;
	return c;
}

static void fail(core_error *error, uint32_t type, char const *message, size_t length) {
	if (error->type) return;
	error->type = type;
	error->message = copy(message, length);
}

void core_fail(core_error *error, uint32_t type, char const *message) { fail(error, type, message, strlen(message)); }

// on_lost runs on whatever thread notices the loss first, while wgpu-native holds a lock: it may only take a note.
static void on_lost(core_watch *w, char const *message, size_t length) {
	if (__atomic_load_n(&w->lost, __ATOMIC_ACQUIRE)) return;
	char *expected = NULL, *text = copy(message, length);
	if (!__atomic_compare_exchange_n(&w->reason, &expected, text, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) free(text);
	__atomic_store_n(&w->lost, 1, __ATOMIC_RELEASE);
}

// contains reports whether a message has a line.
static bool contains(char const *message, size_t length, char const *line) {
	size_t n = strlen(line);
	for (size_t i = 0; i + n <= length; i++)
		if (!memcmp(message + i, line, n)) return true;
	return false;
}

// refine finds the causes that matter where the library calls every error one of validation. A cause has a line.
static uint32_t refine(uint32_t type, char const *message, size_t length) {
	if (contains(message, length, "\n    Not enough memory left.\n") || contains(message, length, "\n    Not enough memory left\n")) return CORE_MEMORY;
	if (contains(message, length, "\n    Parent device is lost\n")) return CORE_LOST;
	return type;
}

// Errors of our own devices arrive here, on the thread and within the call that caused them: no error scope, of which
// there is one stack per device, can mix them up.
static _Thread_local core_error *current;

static void on_error(core_watch *w, uint32_t type, char const *message, size_t length) {
	if (current)
		fail(current, refine(type, message, length), message, length);
	else
		__atomic_fetch_add(&w->strays, 1, __ATOMIC_RELAXED);
}

core_watch *core_watch_new(core_error *error) {
	core_watch *w = calloc(1, sizeof *w);
	if (!w) {
		core_fail(error, CORE_MEMORY, "out of host memory");
		return NULL;
	}
	w->on_error = on_error;
	w->on_lost = on_lost;
	return w;
}

// Adopted devices have their handlers already: in their case errors have to be caught by scopes.
void core_scoped(void *to, uint32_t type, char const *message, size_t length) {
	if (type) fail(to, refine(type, message, length), message, length);
}

core_error *core_enter(core_device *d, core_error *error) {
	core_error *outer = current;
	if (d->adopted)
		d->calls->push_scopes(d->device);
	else
		current = error;
	return outer;
}

void core_leave(core_device *d, core_error *error, core_error *outer) {
	if (d->adopted)
		d->calls->pop_scopes(d->device, core_scoped, error);
	else
		current = outer;
	if (error->type != CORE_LOST) return;
	__atomic_store_n(&d->gone, true, __ATOMIC_RELAXED); // compilations come here beside other calls
	on_lost(d->watch, error->message ? error->message : "", error->message ? strlen(error->message) : 0);
}

void core_check(core_device *d, core_error *error) {
	if (!d->adopted) return;
	core_leave(d, error, NULL);
	core_enter(d, error);
}

int core_grow(void **table, uint32_t *n, uint32_t i, size_t size, core_error *error) {
	if (i < *n) return 1;
	uint64_t want = *n ? *n : 64;
	while (want <= i) want *= 2;
	char *grown = want < UINT32_MAX ? realloc(*table, want * size) : NULL;
	if (!grown) {
		core_fail(error, CORE_MEMORY, "out of host memory");
		return 0;
	}
	memset(grown + *n * size, 0, (want - *n) * size);
	*table = grown;
	*n = (uint32_t)want;
	return 1;
}
