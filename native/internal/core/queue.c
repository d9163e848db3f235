// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The device's queue: what waits for a submission, submitting, and the end of what was submitted.

#include "state.h"

static bool gone(core_device *d) { return __atomic_load_n(&d->gone, __ATOMIC_RELAXED); }

// submit submits the commands that were held back, if there are any, and others after them.
static void submit(core_device *d, WGPUCommandBuffer commands) {
	WGPUCommandBuffer all[2];
	size_t n = 0;

	if (d->held) all[n++] = d->held;
	if (commands) all[n++] = commands;
	d->calls->submit(d->queue, n, all);
	if (d->held) d->calls->drop_commands(d->held);
	d->held = NULL;
	d->pending = 0;
	d->submission++;
}

// core_flush submits the writes that wait for it, and the commands that were held back. It reports whether there were any.
int core_flush(core_device *d) {
	if ((!d->pending && !d->held) || gone(d)) return 0;
	submit(d, NULL);
	return 1;
}

bool core_holds(core_device *d) { return d->held; }

void core_backlog(core_device *d, uint64_t bytes) {
	d->pending += bytes;
	if (core_backlogged(d)) core_flush(d);
}

bool core_backlogged(core_device *d) { return d->pending >= CORE_BACKLOG; }

uint64_t core_submissions(core_device *d) { return d->submission; }

void core_submit_encoder(core_device *d, WGPUCommandEncoder encoder, bool hold, core_error *error) {
	core_check(d, error);
	if (gone(d)) core_fail(error, CORE_LOST, "lost");
	if (!error->type) {
		WGPUCommandBuffer commands = d->calls->finish(encoder);
		core_check(d, error);
		if (!error->type && hold && !d->held) {
			d->held = commands;
			commands = NULL;
		} else if (!error->type) {
			submit(d, commands);
		}
		if (commands) d->calls->drop_commands(commands);
	}
	d->calls->drop_encoder(encoder);
}

// core_queue_done returns a signal for the end of everything submitted so far.
core_signal *core_queue_done(core_device *d, core_error *error) {
	core_signal *s = core_signal_new(error);
	if (s) d->calls->done(d->queue, s);
	return s;
}
