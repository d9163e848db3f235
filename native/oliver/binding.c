// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The table of calls, see ../internal/core/binding.h, for the wgpu-native that abi.h declares.

#include "abi.h"

#include <stdio.h>
#include <string.h>

#define LIVE_ADD_DEVICE wgpuDeviceAddRef
#define LIVE_ADD_BUFFER wgpuBufferAddRef
#include "../internal/core/live.h"

static uint32_t error_type(uint32_t type) {
	return type == WGPUErrorType_NoError ? CORE_OK : type == WGPUErrorType_OutOfMemory ? CORE_MEMORY : CORE_INVALID;
}

// text makes a view of a C string; a view of NULL is an empty one.
static WGPUStringView text(char const *s) { return (WGPUStringView){s, s ? strlen(s) : 0}; }

// length is that of a view, which may stand for "to the end" or for nothing.
static size_t length(WGPUStringView v) { return !v.data ? 0 : v.length == SIZE_MAX ? strlen(v.data) : v.length; }

// usable reports whether the library can open an adapter. SwiftShader lacks shaderDrawParameters, which this version asks of every
// Vulkan device, whether a program wants it or not, and ends the process where it is refused.
static bool usable(WGPUAdapter adapter) {
	enum { GOOGLE = 0x1ae0 };
	WGPUAdapterInfo info = {0};
	wgpuAdapterGetInfo(adapter, &info);
	bool swiftshader = info.vendorID == GOOGLE && info.adapterType == WGPUAdapterType_CPU;
	wgpuAdapterInfoFreeMembers(info);
	return !swiftshader;
}

static size_t list(uint32_t backends, WGPUInstance *instance, WGPUAdapter **adapters) {
	uint64_t bits = 0;
	if (backends & CORE_VULKAN) bits |= WGPUInstanceBackend_Vulkan;
	if (backends & CORE_METAL) bits |= WGPUInstanceBackend_Metal;
	if (backends & CORE_D3D12) bits |= WGPUInstanceBackend_DX12;
	if (backends & CORE_OPENGL) bits |= WGPUInstanceBackend_GL;
	WGPUInstanceExtras extras = {.chain = {.sType = WGPUSType_InstanceExtras}, .backends = bits};
	WGPUInstanceDescriptor descriptor = {.nextInChain = &extras.chain};
	WGPUInstanceEnumerateAdapterOptions options = {.backends = bits};

	*adapters = NULL;
	wgpuSetLogLevel(WGPULogLevel_Off); // what it would print, our errors carry
	*instance = wgpuCreateInstance(&descriptor);
	if (!*instance) return 0;
	// The second call enumerates anew and takes no capacity, so leave room for adapters plugged in between.
	size_t n = wgpuInstanceEnumerateAdapters(*instance, &options, NULL);
	if (!n || !(*adapters = calloc(n + 64, sizeof **adapters))) return 0;
	n = wgpuInstanceEnumerateAdapters(*instance, &options, *adapters);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (usable((*adapters)[i]))
			(*adapters)[kept++] = (*adapters)[i];
		else
			wgpuAdapterRelease((*adapters)[i]);
	return kept;
}

static void set_limits(core_limits *to, WGPULimits const *l) {
	*to = (core_limits){
		.buffer = l->maxBufferSize,
		.binding = l->maxStorageBufferBindingSize,
		.storage_buffers = l->maxStorageBuffersPerShaderStage,
		.groups = l->maxComputeWorkgroupsPerDimension,
		.invocations = l->maxComputeInvocationsPerWorkgroup,
		.group_size = {l->maxComputeWorkgroupSizeX, l->maxComputeWorkgroupSizeY, l->maxComputeWorkgroupSizeZ},
		.workgroup_memory = l->maxComputeWorkgroupStorageSize,
	};
}

// The features that are asked for. What kernels can do with subgroups is three features here, of which one is what counts.
static struct {
	uint32_t theirs, ours;
} const features[] = {
	{WGPUNativeFeature_MappablePrimaryBuffers, CORE_MAPPABLE},
	{WGPUFeatureName_ShaderF16, CORE_HALF},
	{WGPUNativeFeature_ShaderF64, CORE_DOUBLE},
	{WGPUNativeFeature_Subgroup, CORE_SUBGROUPS},
	{WGPUNativeFeature_SubgroupBarrier, 0},
	{WGPUFeatureName_TimestampQuery, 0},
	{WGPUNativeFeature_TimestampQueryInsideEncoders, CORE_TIMESTAMPS}, // has the other one, too
};
enum { NFEATURES = sizeof features / sizeof *features };

static uint32_t kind(uint32_t type) {
	switch (type) {
	case WGPUAdapterType_DiscreteGPU: return CORE_KIND_DISCRETE;
	case WGPUAdapterType_IntegratedGPU: return CORE_KIND_INTEGRATED;
	case WGPUAdapterType_CPU: return CORE_KIND_CPU;
	}
	return CORE_KIND_UNKNOWN;
}

static uint32_t backend(uint32_t type) {
	switch (type) {
	case WGPUBackendType_D3D12: return CORE_D3D12;
	case WGPUBackendType_Metal: return CORE_METAL;
	case WGPUBackendType_Vulkan: return CORE_VULKAN;
	case WGPUBackendType_OpenGL:
	case WGPUBackendType_OpenGLES: return CORE_OPENGL;
	}
	return 0;
}

static void describe(WGPUAdapter adapter, core_adapter *a) {
	WGPUAdapterInfo info = {0};
	WGPULimits limits = {0};

	wgpuAdapterGetInfo(adapter, &info);
	*a = (core_adapter){
		.vendor = info.vendorID,
		.device = info.deviceID,
		.kind = kind(info.adapterType),
		.backend = backend(info.backendType),
	};
	snprintf(a->name, sizeof a->name, "%.*s", (int)length(info.device), info.device.data ? info.device.data : "");
	wgpuAdapterInfoFreeMembers(info);
	wgpuAdapterGetLimits(adapter, &limits);
	set_limits(&a->limits, &limits);
	for (size_t i = 0; i < NFEATURES; i++)
		if (wgpuAdapterHasFeature(adapter, features[i].theirs)) a->features |= features[i].ours;
}

static void describe_device(WGPUDevice device, core_adapter *a) {
	WGPULimits limits = {0};
	*a = (core_adapter){0};
	wgpuDeviceGetLimits(device, &limits);
	set_limits(&a->limits, &limits);
	for (size_t i = 0; i < NFEATURES; i++)
		if (wgpuDeviceHasFeature(device, features[i].theirs)) a->features |= features[i].ours;
	WGPUQueue queue = wgpuDeviceGetQueue(device);
	a->tick = wgpuQueueGetTimestampPeriod(queue);
	wgpuQueueRelease(queue);
}

static void on_lost(WGPUDevice const *device, uint32_t reason, WGPUStringView message, void *watch, void *unused) {
	(void)device, (void)reason, (void)unused;
	((core_watch *)watch)->on_lost(watch, message.data, length(message));
}

static void on_error(WGPUDevice const *device, uint32_t type, WGPUStringView message, void *watch, void *unused) {
	(void)device, (void)unused;
	((core_watch *)watch)->on_error(watch, error_type(type), message.data, length(message));
}

typedef struct {
	core_report report;
	void *to;
	WGPUDevice device;
} request_state;

static void on_device(uint32_t status, WGPUDevice device, WGPUStringView message, void *userdata, void *unused) {
	request_state *r = userdata;
	(void)unused;
	if (status == WGPURequestDeviceStatus_Success)
		r->device = device;
	else
		r->report(r->to, CORE_INVALID, message.data, length(message));
}

static WGPUDevice request(WGPUAdapter adapter, core_watch *watch, core_report report, void *to) {
	uint32_t wanted[NFEATURES];
	WGPULimits limits = {0};
	WGPUDeviceDescriptor descriptor = {
		.requiredFeatures = wanted,
		.requiredLimits = &limits,
		.deviceLostCallbackInfo = {.mode = WGPUCallbackMode_AllowSpontaneous, .callback = on_lost, .userdata1 = watch},
		.uncapturedErrorCallbackInfo = {.callback = on_error, .userdata1 = watch},
	};
	request_state r = {report, to, NULL};
	WGPURequestDeviceCallbackInfo done = {
		.mode = WGPUCallbackMode_AllowSpontaneous, .callback = on_device, .userdata1 = &r};

	wgpuAdapterGetLimits(adapter, &limits);
	limits.maxImmediateSize = 0; // it takes a feature
	for (size_t i = 0; i < NFEATURES; i++)
		if (wgpuAdapterHasFeature(adapter, features[i].theirs)) wanted[descriptor.requiredFeatureCount++] = features[i].theirs;
	wgpuAdapterRequestDevice(adapter, &descriptor, done); // calls back before it returns
	return r.device;
}

static bool poll(WGPUDevice device) { return wgpuDevicePoll(device, 0, NULL) != 0; }

// wgpu-native v29 ends the process when it is asked for a scope of internal errors.
static uint32_t const filters[] = {WGPUErrorFilter_Validation, WGPUErrorFilter_OutOfMemory};
enum { NFILTERS = sizeof filters / sizeof *filters };

static void push_scopes(WGPUDevice device) {
	for (size_t i = 0; i < NFILTERS; i++) wgpuDevicePushErrorScope(device, filters[i]);
}

static void on_scope(uint32_t status, uint32_t type, WGPUStringView message, void *userdata, void *unused) {
	request_state *r = userdata;
	(void)status, (void)unused;
	r->report(r->to, error_type(type), message.data, length(message));
}

static void pop_scopes(WGPUDevice device, core_report report, void *to) {
	request_state r = {report, to, NULL};
	WGPUPopErrorScopeCallbackInfo done = {
		.mode = WGPUCallbackMode_AllowSpontaneous, .callback = on_scope, .userdata1 = &r};
	for (size_t i = 0; i < NFILTERS; i++) wgpuDevicePopErrorScope(device, done); // calls back before it returns
}

static WGPUBuffer create_buffer(WGPUDevice device, char const *label, uint64_t size, uint32_t usage) {
	return wgpuDeviceCreateBuffer(device, &(WGPUBufferDescriptor){.label = text(label), .usage = usage, .size = size});
}

static uint32_t buffer_usage(WGPUBuffer b) { return (uint32_t)wgpuBufferGetUsage(b); }

static void on_mapped(uint32_t status, WGPUStringView message, void *signal, void *unused) {
	(void)message, (void)unused;
	core_raise(signal, status == WGPUMapAsyncStatus_Success);
}

static void map(WGPUBuffer b, bool write, uint64_t offset, uint64_t size, core_signal *s) {
	WGPUBufferMapCallbackInfo done = {.mode = WGPUCallbackMode_AllowSpontaneous, .callback = on_mapped, .userdata1 = s};
	wgpuBufferMapAsync(b, write ? WGPUMapMode_Write : WGPUMapMode_Read, offset, size, done);
}

static void *mapped_range(WGPUBuffer b, uint64_t offset, uint64_t size) { return wgpuBufferGetMappedRange(b, offset, size); }

enum { MAX_SLOTS = 32 };

static WGPUBindGroupLayout create_group_layout(WGPUDevice device, size_t n, core_slot const *slots) {
	WGPUBindGroupLayoutEntry entries[MAX_SLOTS] = {0};
	for (size_t i = 0; i < n; i++) {
		entries[i].binding = slots[i].binding;
		entries[i].visibility = WGPUShaderStage_Compute;
		entries[i].buffer.type = slots[i].uniform ? WGPUBufferBindingType_Uniform
			: slots[i].readonly               ? WGPUBufferBindingType_ReadOnlyStorage
							  : WGPUBufferBindingType_Storage;
		entries[i].buffer.hasDynamicOffset = slots[i].uniform;
		entries[i].buffer.minBindingSize = slots[i].least;
	}
	return wgpuDeviceCreateBindGroupLayout(
		device, &(WGPUBindGroupLayoutDescriptor){.label = text("sublet"), .entryCount = n, .entries = entries});
}

static WGPUPipelineLayout create_pipeline_layout(WGPUDevice device, size_t n, WGPUBindGroupLayout const *groups) {
	return wgpuDeviceCreatePipelineLayout(device,
		&(WGPUPipelineLayoutDescriptor){.label = text("sublet"), .bindGroupLayoutCount = n, .bindGroupLayouts = groups});
}

static WGPUBindGroup create_group(WGPUDevice device, WGPUBindGroupLayout layout, size_t n, core_bound const *bound) {
	WGPUBindGroupEntry entries[MAX_SLOTS] = {0};
	for (size_t i = 0; i < n; i++)
		entries[i] = (WGPUBindGroupEntry){
			.binding = bound[i].binding, .buffer = bound[i].buffer, .offset = bound[i].offset, .size = bound[i].size};
	return wgpuDeviceCreateBindGroup(device,
		&(WGPUBindGroupDescriptor){.label = text("sublet"), .layout = layout, .entryCount = n, .entries = entries});
}

static WGPUShaderModule create_module(WGPUDevice device, char const *label, char const *source) {
	WGPUShaderSourceWGSL wgsl = {{.sType = WGPUSType_ShaderSourceWGSL}, text(source)};
	return wgpuDeviceCreateShaderModule(
		device, &(WGPUShaderModuleDescriptor){.nextInChain = &wgsl.chain, .label = text(label)});
}

static WGPUComputePipeline create_pipeline(
	WGPUDevice device, char const *label, WGPUPipelineLayout layout, WGPUShaderModule module, char const *entry) {
	WGPUComputePipelineDescriptor descriptor = {.label = text(label), .layout = layout};
	descriptor.compute.module = module;
	descriptor.compute.entryPoint = text(entry);
	return wgpuDeviceCreateComputePipeline(device, &descriptor);
}

static WGPUCommandEncoder create_encoder(WGPUDevice device, char const *label) {
	return wgpuDeviceCreateCommandEncoder(device, &(WGPUCommandEncoderDescriptor){.label = text(label)});
}

static WGPUComputePassEncoder begin_pass(WGPUCommandEncoder encoder, char const *label) {
	return wgpuCommandEncoderBeginComputePass(encoder, &(WGPUComputePassDescriptor){.label = text(label)});
}

static void set_group(WGPUComputePassEncoder pass, uint32_t i, WGPUBindGroup group, size_t n, uint32_t const *offsets) {
	wgpuComputePassEncoderSetBindGroup(pass, i, group, n, offsets);
}

static void end_pass(WGPUComputePassEncoder pass) {
	wgpuComputePassEncoderEnd(pass);
	wgpuComputePassEncoderRelease(pass);
}

static WGPUCommandBuffer finish(WGPUCommandEncoder encoder) { return wgpuCommandEncoderFinish(encoder, NULL); }

static WGPUQuerySet create_timestamps(WGPUDevice device, uint32_t n) {
	return wgpuDeviceCreateQuerySet(
		device, &(WGPUQuerySetDescriptor){.label = text("sublet"), .type = WGPUQueryType_Timestamp, .count = n});
}

static void on_done(uint32_t status, WGPUStringView message, void *signal, void *unused) {
	(void)message, (void)unused;
	core_raise(signal, status == WGPUQueueWorkDoneStatus_Success);
}

static void done(WGPUQueue queue, core_signal *s) {
	WGPUQueueWorkDoneCallbackInfo info = {
		.mode = WGPUCallbackMode_AllowSpontaneous, .callback = on_done, .userdata1 = s};
	wgpuQueueOnSubmittedWorkDone(queue, info);
}

core_calls const sublet_oliver_calls = {
	.size = sizeof(core_calls),
	.list = list,
	.describe = describe,
	.request = request,
	.describe_device = describe_device,
	.queue = wgpuDeviceGetQueue,
	.poll = poll,
	.push_scopes = push_scopes,
	.pop_scopes = pop_scopes,
	.create_buffer = create_buffer,
	.destroy_buffer = wgpuBufferDestroy,
	.buffer_size = wgpuBufferGetSize,
	.buffer_usage = buffer_usage,
	.map = map,
	.mapped_range = mapped_range,
	.unmap = wgpuBufferUnmap,
	.take_buffer = take_buffer,
	.buffer_state = buffer_state,
	.create_group_layout = create_group_layout,
	.create_pipeline_layout = create_pipeline_layout,
	.create_group = create_group,
	.create_module = create_module,
	.create_pipeline = create_pipeline,
	.create_encoder = create_encoder,
	.copy = wgpuCommandEncoderCopyBufferToBuffer,
	.clear = wgpuCommandEncoderClearBuffer,
	.begin_pass = begin_pass,
	.set_pipeline = wgpuComputePassEncoderSetPipeline,
	.set_group = set_group,
	.dispatch = wgpuComputePassEncoderDispatchWorkgroups,
	.end_pass = end_pass,
	.finish = finish,
	.create_timestamps = create_timestamps,
	.timestamp = wgpuCommandEncoderWriteTimestamp,
	.resolve = wgpuCommandEncoderResolveQuerySet,
	.submit = wgpuQueueSubmit,
	.write = wgpuQueueWriteBuffer,
	.done = done,
	.add_device = wgpuDeviceAddRef,
	.add_buffer = wgpuBufferAddRef,
	.drop_instance = wgpuInstanceRelease,
	.drop_adapter = wgpuAdapterRelease,
	.drop_device = wgpuDeviceRelease,
	.drop_queue = wgpuQueueRelease,
	.drop_buffer = wgpuBufferRelease,
	.drop_group = wgpuBindGroupRelease,
	.drop_group_layout = wgpuBindGroupLayoutRelease,
	.drop_pipeline_layout = wgpuPipelineLayoutRelease,
	.drop_pipeline = wgpuComputePipelineRelease,
	.drop_module = wgpuShaderModuleRelease,
	.drop_encoder = wgpuCommandEncoderRelease,
	.drop_commands = wgpuCommandBufferRelease,
	.drop_timestamps = wgpuQuerySetRelease,
};
