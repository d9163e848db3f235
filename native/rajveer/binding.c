// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

// The table of calls, see binding.h, for the wgpu-native that abi.h declares.

#include "abi.h"

#include <stdio.h>
#include <string.h>

#define LIVE_ADD_DEVICE wgpuDeviceReference
#define LIVE_ADD_BUFFER wgpuBufferReference
#include "live.h"

static uint32_t error_type(uint32_t type) {
	return type == WGPUErrorType_NoError ? CORE_OK : type == WGPUErrorType_OutOfMemory ? CORE_MEMORY : CORE_INVALID;
}

static size_t length(char const *text) { return text ? strlen(text) : 0; }

static size_t list(uint32_t backends, WGPUInstance *instance, WGPUAdapter **adapters) {
	uint32_t bits = 0;
	if (backends & CORE_VULKAN) bits |= WGPUInstanceBackend_Vulkan;
	if (backends & CORE_METAL) bits |= WGPUInstanceBackend_Metal;
	if (backends & CORE_D3D12) bits |= WGPUInstanceBackend_DX12;
	if (backends & CORE_OPENGL) bits |= WGPUInstanceBackend_GL;
	WGPUInstanceExtras extras = {.chain = {.sType = WGPUSType_InstanceExtras}, .backends = bits};
	WGPUInstanceDescriptor descriptor = {&extras.chain};
	WGPUInstanceEnumerateAdapterOptions options = {.backends = bits};

	*adapters = NULL;
	wgpuSetLogLevel(WGPULogLevel_Off); // what it would print, our errors carry
	*instance = wgpuCreateInstance(&descriptor);
	if (!*instance) return 0;
	// The second call enumerates anew and takes no capacity, so leave room for adapters plugged in between.
	size_t n = wgpuInstanceEnumerateAdapters(*instance, &options, NULL);
	if (!n || !(*adapters = calloc(n + 64, sizeof **adapters))) return 0;
	return wgpuInstanceEnumerateAdapters(*instance, &options, *adapters);
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

// describe leaves features empty: of those that are asked for elsewhere this version has none, or has them in a name only.
static void describe(WGPUAdapter adapter, core_adapter *a) {
	WGPUAdapterProperties p = {0};
	WGPUSupportedLimits s = {0};

	wgpuAdapterGetProperties(adapter, &p); // the texts are the adapter's
	*a = (core_adapter){
		.vendor = p.vendorID,
		.device = p.deviceID,
		.kind = kind(p.adapterType),
		.backend = backend(p.backendType),
	};
	snprintf(a->name, sizeof a->name, "%s", p.name ? p.name : "");
	wgpuAdapterGetLimits(adapter, &s);
	set_limits(&a->limits, &s.limits);
}

static void describe_device(WGPUDevice device, core_adapter *a) {
	WGPUSupportedLimits s = {0};
	*a = (core_adapter){0};
	wgpuDeviceGetLimits(device, &s);
	set_limits(&a->limits, &s.limits);
}

static void on_lost(uint32_t reason, char const *message, void *watch) {
	(void)reason;
	((core_watch *)watch)->on_lost(watch, message, length(message));
}

static void on_error(uint32_t type, char const *message, void *watch) {
	((core_watch *)watch)->on_error(watch, error_type(type), message, length(message));
}

typedef struct {
	core_report report;
	void *to;
	WGPUDevice device;
} request_state;

static void on_device(uint32_t status, WGPUDevice device, char const *message, void *userdata) {
	request_state *r = userdata;
	if (status == WGPURequestDeviceStatus_Success)
		r->device = device;
	else
		r->report(r->to, CORE_INVALID, message, length(message));
}

static WGPUDevice request(WGPUAdapter adapter, core_watch *watch, core_report report, void *to) {
	WGPUSupportedLimits limits = {0}; // without extras: those, push constants among them, keep their defaults
	WGPUDeviceDescriptor descriptor = {
		.requiredLimits = &limits,
		.deviceLostCallback = on_lost,
		.deviceLostUserdata = watch,
	};
	request_state r = {report, to, NULL};

	wgpuAdapterGetLimits(adapter, &limits);
	wgpuAdapterRequestDevice(adapter, &descriptor, on_device, &r); // calls back before it returns
	if (r.device) wgpuDeviceSetUncapturedErrorCallback(r.device, on_error, watch);
	return r.device;
}

static bool poll(WGPUDevice device) { return wgpuDevicePoll(device, false, NULL); }

static void push_scopes(WGPUDevice device) {
	wgpuDevicePushErrorScope(device, WGPUErrorFilter_Validation);
	wgpuDevicePushErrorScope(device, WGPUErrorFilter_OutOfMemory);
}

static void on_scope(uint32_t type, char const *message, void *userdata) {
	request_state *r = userdata;
	r->report(r->to, error_type(type), message, length(message));
}

static void pop_scopes(WGPUDevice device, core_report report, void *to) {
	request_state r = {report, to, NULL};
	wgpuDevicePopErrorScope(device, on_scope, &r);
	wgpuDevicePopErrorScope(device, on_scope, &r);
}

static WGPUBuffer create_buffer(WGPUDevice device, char const *label, uint64_t size, uint32_t usage) {
	return wgpuDeviceCreateBuffer(device, &(WGPUBufferDescriptor){.label = label, .usage = usage, .size = size});
}

// check_buffer records a command that nobody submits: recording finds out.
static void check_buffer(WGPUDevice device, WGPUBuffer b) {
	WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(device, &(WGPUCommandEncoderDescriptor){.label = "sublet probe"});
	wgpuCommandEncoderClearBuffer(encoder, b, 0, UINT64_MAX); // to its end
	wgpuCommandEncoderRelease(encoder);
}

static void on_done(uint32_t status, void *signal) { core_raise(signal, status == WGPUBufferMapAsyncStatus_Success); }

static void map(WGPUBuffer b, bool write, uint64_t offset, uint64_t size, core_signal *s) {
	wgpuBufferMapAsync(b, write ? WGPUMapMode_Write : WGPUMapMode_Read, offset, size, on_done, s);
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
		device, &(WGPUBindGroupLayoutDescriptor){.label = "sublet", .entryCount = n, .entries = entries});
}

static WGPUPipelineLayout create_pipeline_layout(WGPUDevice device, size_t n, WGPUBindGroupLayout const *groups) {
	return wgpuDeviceCreatePipelineLayout(
		device, &(WGPUPipelineLayoutDescriptor){.label = "sublet", .bindGroupLayoutCount = n, .bindGroupLayouts = groups});
}

static WGPUBindGroup create_group(WGPUDevice device, WGPUBindGroupLayout layout, size_t n, core_bound const *bound) {
	WGPUBindGroupEntry entries[MAX_SLOTS] = {0};
	for (size_t i = 0; i < n; i++)
		entries[i] = (WGPUBindGroupEntry){
			.binding = bound[i].binding, .buffer = bound[i].buffer, .offset = bound[i].offset, .size = bound[i].size};
	return wgpuDeviceCreateBindGroup(
		device, &(WGPUBindGroupDescriptor){.label = "sublet", .layout = layout, .entryCount = n, .entries = entries});
}

static WGPUShaderModule create_module(WGPUDevice device, char const *label, char const *source) {
	WGPUShaderModuleWGSLDescriptor wgsl = {{.sType = WGPUSType_ShaderModuleWGSLDescriptor}, source};
	return wgpuDeviceCreateShaderModule(device, &(WGPUShaderModuleDescriptor){.nextInChain = &wgsl.chain, .label = label});
}

static WGPUComputePipeline create_pipeline(
	WGPUDevice device, char const *label, WGPUPipelineLayout layout, WGPUShaderModule module, char const *entry) {
	WGPUComputePipelineDescriptor descriptor = {.label = label, .layout = layout};
	descriptor.compute.module = module;
	descriptor.compute.entryPoint = entry;
	return wgpuDeviceCreateComputePipeline(device, &descriptor);
}

static WGPUCommandEncoder create_encoder(WGPUDevice device, char const *label) {
	return wgpuDeviceCreateCommandEncoder(device, &(WGPUCommandEncoderDescriptor){.label = label});
}

static WGPUComputePassEncoder begin_pass(WGPUCommandEncoder encoder, char const *label) {
	return wgpuCommandEncoderBeginComputePass(encoder, &(WGPUComputePassDescriptor){.label = label});
}

static void set_group(WGPUComputePassEncoder pass, uint32_t i, WGPUBindGroup group, size_t n, uint32_t const *offsets) {
	wgpuComputePassEncoderSetBindGroup(pass, i, group, n, offsets);
}

static void end_pass(WGPUComputePassEncoder pass) {
	wgpuComputePassEncoderEnd(pass);
	wgpuComputePassEncoderRelease(pass);
}

static WGPUCommandBuffer finish(WGPUCommandEncoder encoder) { return wgpuCommandEncoderFinish(encoder, NULL); }

static void done(WGPUQueue queue, core_signal *s) { wgpuQueueOnSubmittedWorkDone(queue, on_done, s); }

core_calls const sublet_rajveer_calls = {
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
	.buffer_usage = wgpuBufferGetUsage,
	.map = map,
	.mapped_range = mapped_range,
	.unmap = wgpuBufferUnmap,
	.take_buffer = take_buffer,
	.buffer_state = buffer_state,
	.check_buffer = check_buffer,
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
	.submit = wgpuQueueSubmit,
	.write = wgpuQueueWriteBuffer,
	.done = done,
	.add_device = wgpuDeviceReference,
	.add_buffer = wgpuBufferReference,
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
};
