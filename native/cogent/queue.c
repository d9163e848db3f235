// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The device's queue: what waits for a submission, submitting, and the end of what was submitted.

#include "state.h"

// cog_flush submits the writes that wait for it. It reports whether there were any.
int cog_flush(cog_device *d) {
	if (!d->pending) return 0;
	wgpuQueueSubmit(d->queue, 0, NULL);
	d->pending = 0;
	d->submission++;
	return 1;
}

void cog_backlog(cog_device *d, uint64_t bytes) {
	d->pending += bytes;
	if (cog_backlogged(d)) cog_flush(d);
}

bool cog_backlogged(cog_device *d) { return d->pending >= COG_BACKLOG; }

uint64_t cog_submissions(cog_device *d) { return d->submission; }

void cog_submit_encoder(cog_device *d, WGPUCommandEncoder encoder, cog_error *error) {
	cog_check(d, error);
	if (!error->type) {
		WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, NULL);
		cog_check(d, error);
		if (!error->type) {
			wgpuQueueSubmit(d->queue, 1, &commands);
			d->pending = 0;
			d->submission++;
		}
		wgpuCommandBufferRelease(commands);
	}
	wgpuCommandEncoderRelease(encoder);
}

// cog_queue_done returns a signal for the end of everything submitted so far.
cog_signal *cog_queue_done(cog_device *d, cog_error *error) {
	cog_signal *s = cog_signal_new(error);
	if (s) wgpuQueueOnSubmittedWorkDone(d->queue, cog_raise, s);
	return s;
}
