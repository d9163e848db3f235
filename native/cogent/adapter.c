// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// Adapters.

#include "state.h"

// cog_adapters lists the adapters of the backends in a malloc'ed array. The caller releases each and frees the array.
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

WGPULimits cog_adapter_limits(WGPUAdapter adapter) {
	WGPUSupportedLimits s = {0};
	wgpuAdapterGetLimits(adapter, &s);
	return s.limits;
}
