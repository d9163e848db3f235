// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Signals, and the wait for them, which is polling with a backoff.

#include "state.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <sched.h>
#include <time.h>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#endif

core_signal *core_signal_new(core_error *error) {
	core_signal *s = calloc(1, sizeof *s);
	if (!s) core_fail(error, CORE_MEMORY, "out of host memory");
	return s;
}

// core_signal_free is called once, by the waiter.
void core_signal_free(core_signal *s) {
	if (__atomic_exchange_n(&s->state, CORE_ABANDONED, __ATOMIC_ACQ_REL) == CORE_RAISED) free(s);
}

// core_poll lets callbacks run and reports whether the signal was raised or, without one, whether the queue is empty.
// It never waits: wgpu-native's waiting poll gives up after five seconds and then takes unfinished work for done.
int core_poll(core_device *d, core_signal *s) {
	bool empty = d->calls->poll(d->device);
	return s ? __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == CORE_RAISED : empty;
}

enum { US = 1000, MS = 1000 * US, MIN_NAP = 20 * US, MAX_NAP = MS, SLICE = 2 * MS };

#ifdef _WIN32

static int64_t now(void) {
	LARGE_INTEGER count, second;
	QueryPerformanceCounter(&count);
	QueryPerformanceFrequency(&second);
	return count.QuadPart / second.QuadPart * 1000000000 + count.QuadPart % second.QuadPart * 1000000000 / second.QuadPart;
}

static void yield(void) { SwitchToThread(); }

static void nap(int64_t ns) { Sleep((DWORD)((ns + MS - 1) / MS)); }

#else

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void yield(void) { sched_yield(); }

static void nap(int64_t ns) {
	struct timespec t = {ns / (1000 * MS), ns % (1000 * MS)};
	nanosleep(&t, NULL); // a signal ends it early, and that does not matter
}

#endif

// punctual makes naps end on time. By default Linux may let a thread sleep 50 us longer, and 0 stands for that.
static void punctual(int on) {
#ifdef __linux__
	prctl(PR_SET_TIMERSLACK, on ? 1UL : 0UL, 0UL, 0UL, 0UL);
#else
	(void)on;
#endif
}

// core_pause lets time pass between two polls: at first none, as most work is short, then more and more.
void core_pause(core_backoff *p) {
	if (!p->start) {
		p->start = now();
		if (p->first) nap(p->first);
	} else if (p->spent < p->spin) {
		yield();
	} else {
		int64_t n = p->spent / 16; // so that a wait is at most a sixteenth too long
		nap(n < MIN_NAP ? MIN_NAP : n > MAX_NAP ? MAX_NAP : n);
	}
	p->spent = now() - p->start;
}

// core_wait polls until the signal is raised and reports whether it was. It comes back for others to look at what else
// there is: after some milliseconds, and when the device is lost, since to poll it then is fatal.
int core_wait(core_device *d, core_signal *s, core_backoff *p) {
	int raised = 0;
	punctual(1);
	for (int64_t end = p->spent + SLICE; !raised && p->spent < end; ) {
		if (__atomic_load_n(&d->watch->lost, __ATOMIC_ACQUIRE)) break;
		raised = core_poll(d, s);
		if (!raised) core_pause(p);
	}
	punctual(0);
	return raised;
}
