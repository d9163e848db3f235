// SPDX-License-Identifier: Apache-2.0
//
// The part of webgpu.h and wgpu.h that this driver calls, declared as the wgpu-native inside
// github.com/cogentcore/webgpu v0.23.0 has it (wgpu-native f2b3f0f, wgpu-core 0.19.4). The binding's headers are out of
// reach of another module's C code, but importing the binding links its library, so a declaration is all it takes.
// Names and layouts follow webgpu.h, Copyright 2019-2023 WebGPU-Native developers, BSD-3-Clause. Fields that the driver
// leaves zero are declared all the same: the layout is what counts.

#ifndef SUBLET_COGENT_ABI_H
#define SUBLET_COGENT_ABI_H

#include "../internal/core/binding.h"

// Enumerations are 32 bits wide in the library.
enum {
	WGPUSType_ShaderModuleWGSLDescriptor = 6,
	WGPUSType_InstanceExtras = 0x00030006,

	WGPUInstanceBackend_Vulkan = 1 << 0,
	WGPUInstanceBackend_GL = 1 << 1,
	WGPUInstanceBackend_Metal = 1 << 2,
	WGPUInstanceBackend_DX12 = 1 << 3,

	WGPUNativeFeature_MappablePrimaryBuffers = 0x0003000E,
	WGPUNativeFeature_ShaderF64 = 0x0003001E,

	WGPUErrorFilter_Validation = 0,
	WGPUErrorFilter_OutOfMemory = 1,

	WGPUErrorType_NoError = 0,
	WGPUErrorType_Validation = 1,
	WGPUErrorType_OutOfMemory = 2,

	WGPUBufferUsage_MapRead = 1 << 0,
	WGPUBufferUsage_MapWrite = 1 << 1,
	WGPUBufferUsage_CopySrc = 1 << 2,
	WGPUBufferUsage_CopyDst = 1 << 3,
	WGPUBufferUsage_Uniform = 1 << 6,
	WGPUBufferUsage_Storage = 1 << 7,

	WGPUMapMode_Read = 1,
	WGPUMapMode_Write = 2,
	WGPUBufferMapAsyncStatus_Success = 0,

	WGPUBufferBindingType_Uniform = 1,
	WGPUBufferBindingType_Storage = 2,
	WGPUBufferBindingType_ReadOnlyStorage = 3,
	WGPUShaderStage_Compute = 4,

	WGPURequestDeviceStatus_Success = 0,
	WGPULogLevel_Off = 0,

	WGPUAdapterType_DiscreteGPU = 0,
	WGPUAdapterType_IntegratedGPU = 1,
	WGPUAdapterType_CPU = 2,

	WGPUBackendType_D3D12 = 4,
	WGPUBackendType_Metal = 5,
	WGPUBackendType_Vulkan = 6,
	WGPUBackendType_OpenGL = 7,
	WGPUBackendType_OpenGLES = 8,
};

typedef uint32_t WGPUBool;

typedef struct WGPUChainedStruct {
	struct WGPUChainedStruct const *next;
	uint32_t sType;
} WGPUChainedStruct;

typedef struct {
	WGPUChainedStruct chain;
	uint32_t backends, flags, dx12ShaderCompiler, gles3MinorVersion;
	char const *dxilPath, *dxcPath;
} WGPUInstanceExtras;

typedef struct {
	WGPUChainedStruct const *nextInChain;
} WGPUInstanceDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	uint32_t backends;
} WGPUInstanceEnumerateAdapterOptions;

typedef struct {
	void *nextInChain;
	char const *vendor, *architecture, *device, *description;
	uint32_t backendType, adapterType, vendorID, deviceID;
} WGPUAdapterInfo;

typedef struct {
	uint32_t maxTextureDimension1D, maxTextureDimension2D, maxTextureDimension3D, maxTextureArrayLayers;
	uint32_t maxBindGroups, maxBindGroupsPlusVertexBuffers, maxBindingsPerBindGroup;
	uint32_t maxDynamicUniformBuffersPerPipelineLayout, maxDynamicStorageBuffersPerPipelineLayout;
	uint32_t maxSampledTexturesPerShaderStage, maxSamplersPerShaderStage;
	uint32_t maxStorageBuffersPerShaderStage, maxStorageTexturesPerShaderStage, maxUniformBuffersPerShaderStage;
	uint64_t maxUniformBufferBindingSize, maxStorageBufferBindingSize;
	uint32_t minUniformBufferOffsetAlignment, minStorageBufferOffsetAlignment;
	uint32_t maxVertexBuffers;
	uint64_t maxBufferSize;
	uint32_t maxVertexAttributes, maxVertexBufferArrayStride;
	uint32_t maxInterStageShaderComponents, maxInterStageShaderVariables;
	uint32_t maxColorAttachments, maxColorAttachmentBytesPerSample;
	uint32_t maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup;
	uint32_t maxComputeWorkgroupSizeX, maxComputeWorkgroupSizeY, maxComputeWorkgroupSizeZ;
	uint32_t maxComputeWorkgroupsPerDimension;
} WGPULimits;

typedef struct {
	void *nextInChain;
	WGPULimits limits;
} WGPUSupportedLimits; // WGPURequiredLimits has the same layout

typedef void (*WGPUErrorCallback)(uint32_t type, char const *message, void *userdata);
typedef void (*WGPUDeviceLostCallback)(uint32_t reason, char const *message, void *userdata);
typedef void (*WGPURequestDeviceCallback)(uint32_t status, WGPUDevice device, char const *message, void *userdata);
typedef void (*WGPUDoneCallback)(uint32_t status, void *userdata); // of a mapping and of a queue

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	size_t requiredFeatureCount;
	uint32_t const *requiredFeatures;
	WGPUSupportedLimits const *requiredLimits;
	struct {
		WGPUChainedStruct const *nextInChain;
		char const *label;
	} defaultQueue;
	WGPUDeviceLostCallback deviceLostCallback;
	void *deviceLostUserdata;
	struct {
		WGPUChainedStruct const *nextInChain;
		WGPUErrorCallback callback;
		void *userdata;
	} uncapturedErrorCallbackInfo;
} WGPUDeviceDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	uint32_t usage;
	uint64_t size;
	WGPUBool mappedAtCreation;
} WGPUBufferDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	uint32_t binding;
	WGPUBuffer buffer;
	uint64_t offset, size;
	void *sampler, *textureView;
} WGPUBindGroupEntry;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	WGPUBindGroupLayout layout;
	size_t entryCount;
	WGPUBindGroupEntry const *entries;
} WGPUBindGroupDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	uint32_t binding, visibility;
	struct {
		WGPUChainedStruct const *nextInChain;
		uint32_t type;
		WGPUBool hasDynamicOffset;
		uint64_t minBindingSize;
	} buffer;
	struct {
		WGPUChainedStruct const *nextInChain;
		uint32_t type;
	} sampler;
	struct {
		WGPUChainedStruct const *nextInChain;
		uint32_t sampleType, viewDimension;
		WGPUBool multisampled;
	} texture;
	struct {
		WGPUChainedStruct const *nextInChain;
		uint32_t access, format, viewDimension;
	} storageTexture;
} WGPUBindGroupLayoutEntry;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	size_t entryCount;
	WGPUBindGroupLayoutEntry const *entries;
} WGPUBindGroupLayoutDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	size_t bindGroupLayoutCount;
	WGPUBindGroupLayout const *bindGroupLayouts;
} WGPUPipelineLayoutDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	size_t hintCount;
	void const *hints;
} WGPUShaderModuleDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
} WGPUCommandEncoderDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	void const *timestampWrites;
} WGPUComputePassDescriptor;

typedef struct {
	WGPUChainedStruct chain;
	char const *code;
} WGPUShaderModuleWGSLDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	WGPUPipelineLayout layout;
	struct {
		WGPUChainedStruct const *nextInChain;
		WGPUShaderModule module;
		char const *entryPoint;
		size_t constantCount;
		void const *constants;
	} compute;
} WGPUComputePipelineDescriptor;

extern void wgpuSetLogLevel(uint32_t level);

extern WGPUInstance wgpuCreateInstance(WGPUInstanceDescriptor const *descriptor);
extern size_t wgpuInstanceEnumerateAdapters(WGPUInstance, WGPUInstanceEnumerateAdapterOptions const *, WGPUAdapter *);
extern void wgpuInstanceRelease(WGPUInstance);

extern void wgpuAdapterGetInfo(WGPUAdapter, WGPUAdapterInfo *);
extern void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo);
extern WGPUBool wgpuAdapterGetLimits(WGPUAdapter, WGPUSupportedLimits *);
extern WGPUBool wgpuAdapterHasFeature(WGPUAdapter, uint32_t feature);
extern void wgpuAdapterRequestDevice(WGPUAdapter, WGPUDeviceDescriptor const *, WGPURequestDeviceCallback, void *userdata);
extern void wgpuAdapterRelease(WGPUAdapter);

extern WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice, WGPUBindGroupDescriptor const *);
extern WGPUBindGroupLayout wgpuDeviceCreateBindGroupLayout(WGPUDevice, WGPUBindGroupLayoutDescriptor const *);
extern WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice, WGPUBufferDescriptor const *);
extern WGPUCommandEncoder wgpuDeviceCreateCommandEncoder(WGPUDevice, WGPUCommandEncoderDescriptor const *);
extern WGPUComputePipeline wgpuDeviceCreateComputePipeline(WGPUDevice, WGPUComputePipelineDescriptor const *);
extern WGPUPipelineLayout wgpuDeviceCreatePipelineLayout(WGPUDevice, WGPUPipelineLayoutDescriptor const *);
extern WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice, WGPUShaderModuleDescriptor const *);
extern WGPUBool wgpuDeviceGetLimits(WGPUDevice, WGPUSupportedLimits *);
extern WGPUQueue wgpuDeviceGetQueue(WGPUDevice);
extern WGPUBool wgpuDeviceHasFeature(WGPUDevice, uint32_t feature);
extern WGPUBool wgpuDevicePoll(WGPUDevice, WGPUBool wait, void const *submission);
extern void wgpuDevicePushErrorScope(WGPUDevice, uint32_t filter);
extern void wgpuDevicePopErrorScope(WGPUDevice, WGPUErrorCallback, void *userdata);
extern void wgpuDeviceReference(WGPUDevice);
extern void wgpuDeviceRelease(WGPUDevice);

extern void wgpuQueueOnSubmittedWorkDone(WGPUQueue, WGPUDoneCallback, void *userdata);
extern void wgpuQueueSubmit(WGPUQueue, size_t count, WGPUCommandBuffer const *);
extern void wgpuQueueWriteBuffer(WGPUQueue, WGPUBuffer, uint64_t offset, void const *data, size_t size);
extern void wgpuQueueRelease(WGPUQueue);

extern void wgpuBufferDestroy(WGPUBuffer);
extern void *wgpuBufferGetMappedRange(WGPUBuffer, size_t offset, size_t size);
extern uint64_t wgpuBufferGetSize(WGPUBuffer);
extern uint32_t wgpuBufferGetUsage(WGPUBuffer);
extern void wgpuBufferMapAsync(WGPUBuffer, uint32_t mode, size_t offset, size_t size, WGPUDoneCallback, void *userdata);
extern void wgpuBufferUnmap(WGPUBuffer);
extern void wgpuBufferReference(WGPUBuffer);
extern void wgpuBufferRelease(WGPUBuffer);

extern WGPUComputePassEncoder wgpuCommandEncoderBeginComputePass(WGPUCommandEncoder, WGPUComputePassDescriptor const *);
extern void wgpuCommandEncoderClearBuffer(WGPUCommandEncoder, WGPUBuffer, uint64_t offset, uint64_t size);
extern void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder, WGPUBuffer src, uint64_t srcOffset, WGPUBuffer dst,
	uint64_t dstOffset, uint64_t size);
extern WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder, void const *descriptor);
extern void wgpuCommandEncoderRelease(WGPUCommandEncoder);
extern void wgpuCommandBufferRelease(WGPUCommandBuffer);

extern void wgpuComputePassEncoderDispatchWorkgroups(WGPUComputePassEncoder, uint32_t x, uint32_t y, uint32_t z);
extern void wgpuComputePassEncoderEnd(WGPUComputePassEncoder);
extern void wgpuComputePassEncoderSetBindGroup(WGPUComputePassEncoder, uint32_t index, WGPUBindGroup, size_t offsetCount,
	uint32_t const *offsets);
extern void wgpuComputePassEncoderSetPipeline(WGPUComputePassEncoder, WGPUComputePipeline);
extern void wgpuComputePassEncoderRelease(WGPUComputePassEncoder);

extern void wgpuBindGroupRelease(WGPUBindGroup);
extern void wgpuBindGroupLayoutRelease(WGPUBindGroupLayout);
extern void wgpuComputePipelineRelease(WGPUComputePipeline);
extern void wgpuPipelineLayoutRelease(WGPUPipelineLayout);
extern void wgpuShaderModuleRelease(WGPUShaderModule);

#endif
