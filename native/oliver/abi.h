// SPDX-License-Identifier: Apache-2.0
//
// The part of webgpu.h and wgpu.h that this driver calls, declared as the wgpu-native v29.0.0.0 inside
// github.com/oliverbestmann/webgpu v1.33.4 has it. The binding's headers are out of reach of another module's C code, but importing
// the binding links its library, so a declaration is all it takes. Names and layouts follow webgpu.h, Copyright 2019-2023
// WebGPU-Native developers, BSD-3-Clause. Fields that the driver leaves zero are declared all the same: the layout is what counts.

#ifndef SUBLET_OLIVER_ABI_H
#define SUBLET_OLIVER_ABI_H

#include "../internal/core/binding.h"

// Enumerations are 32 bits wide in the library, and flags 64.
enum {
	WGPUStatus_Success = 1,
	WGPUSType_ShaderSourceWGSL = 2,
	WGPUSType_InstanceExtras = 0x00030006,
	WGPULogLevel_Off = 0,
	WGPUCallbackMode_AllowSpontaneous = 3,

	WGPUInstanceBackend_Vulkan = 1 << 0,
	WGPUInstanceBackend_GL = 1 << 1,
	WGPUInstanceBackend_Metal = 1 << 2,
	WGPUInstanceBackend_DX12 = 1 << 3,

	WGPUFeatureName_TimestampQuery = 9,
	WGPUFeatureName_ShaderF16 = 11,
	WGPUFeatureName_Subgroups = 18,
	WGPUNativeFeature_MappablePrimaryBuffers = 0x0003000E,
	WGPUNativeFeature_ShaderF64 = 0x0003001D,
	WGPUNativeFeature_Subgroup = 0x00030021,
	WGPUNativeFeature_SubgroupBarrier = 0x00030023,
	WGPUNativeFeature_TimestampQueryInsideEncoders = 0x00030024,

	WGPUErrorFilter_Validation = 1,
	WGPUErrorFilter_OutOfMemory = 2,
	WGPUErrorFilter_Internal = 3,

	WGPUErrorType_NoError = 1,
	WGPUErrorType_Validation = 2,
	WGPUErrorType_OutOfMemory = 3,

	WGPUMapMode_Read = 1,
	WGPUMapMode_Write = 2,
	WGPUMapAsyncStatus_Success = 1,
	WGPUQueueWorkDoneStatus_Success = 1,

	WGPUBufferBindingType_Uniform = 2,
	WGPUBufferBindingType_Storage = 3,
	WGPUBufferBindingType_ReadOnlyStorage = 4,
	WGPUShaderStage_Compute = 4,
	WGPUQueryType_Timestamp = 2,

	WGPURequestDeviceStatus_Success = 1,

	WGPUAdapterType_DiscreteGPU = 1,
	WGPUAdapterType_IntegratedGPU = 2,
	WGPUAdapterType_CPU = 3,

	WGPUBackendType_D3D12 = 4,
	WGPUBackendType_Metal = 5,
	WGPUBackendType_Vulkan = 6,
	WGPUBackendType_OpenGL = 7,
	WGPUBackendType_OpenGLES = 8,
};

typedef uint32_t WGPUBool;

typedef struct WGPUStringView {
	char const *data;
	size_t length;
} WGPUStringView;

typedef struct WGPUChainedStruct {
	struct WGPUChainedStruct *next;
	uint32_t sType;
} WGPUChainedStruct;

typedef struct {
	uint64_t id;
} WGPUFuture;

typedef struct {
	WGPUChainedStruct chain;
	uint64_t backends, flags;
	uint32_t dx12ShaderCompiler, gles3MinorVersion, glFenceBehaviour;
	WGPUStringView dxcPath;
	uint32_t dxcMaxShaderModel, dx12PresentationSystem;
	uint8_t const *budgetForDeviceCreation, *budgetForDeviceLoss;
	struct {
		uint32_t type;
		struct {
			void *display;
			int screen;
		} data;
	} displayHandle;
} WGPUInstanceExtras;

typedef struct {
	WGPUChainedStruct *nextInChain;
	size_t requiredFeatureCount;
	void const *requiredFeatures, *requiredLimits;
} WGPUInstanceDescriptor;

typedef struct {
	WGPUChainedStruct const *nextInChain;
	uint64_t backends;
} WGPUInstanceEnumerateAdapterOptions;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView vendor, architecture, device, description;
	uint32_t backendType, adapterType, vendorID, deviceID, subgroupMinSize, subgroupMaxSize;
} WGPUAdapterInfo;

typedef struct {
	WGPUChainedStruct *nextInChain;
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
	uint32_t maxInterStageShaderVariables;
	uint32_t maxColorAttachments, maxColorAttachmentBytesPerSample;
	uint32_t maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup;
	uint32_t maxComputeWorkgroupSizeX, maxComputeWorkgroupSizeY, maxComputeWorkgroupSizeZ;
	uint32_t maxComputeWorkgroupsPerDimension;
	uint32_t maxImmediateSize;
} WGPULimits;

typedef void (*WGPUErrorCallback)(WGPUDevice const *, uint32_t type, WGPUStringView message, void *, void *);
typedef void (*WGPUScopeCallback)(uint32_t status, uint32_t type, WGPUStringView message, void *, void *);
typedef void (*WGPULostCallback)(WGPUDevice const *, uint32_t reason, WGPUStringView message, void *, void *);
typedef void (*WGPURequestCallback)(uint32_t status, WGPUDevice, WGPUStringView message, void *, void *);
typedef void (*WGPUDoneCallback)(uint32_t status, WGPUStringView message, void *, void *); // of a mapping and of a queue

typedef struct {
	WGPUChainedStruct *nextInChain;
	uint32_t mode;
	WGPULostCallback callback;
	void *userdata1, *userdata2;
} WGPUDeviceLostCallbackInfo;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUErrorCallback callback;
	void *userdata1, *userdata2;
} WGPUUncapturedErrorCallbackInfo;

typedef struct {
	WGPUChainedStruct *nextInChain;
	uint32_t mode;
	WGPURequestCallback callback;
	void *userdata1, *userdata2;
} WGPURequestDeviceCallbackInfo;

typedef struct {
	WGPUChainedStruct *nextInChain;
	uint32_t mode;
	WGPUDoneCallback callback;
	void *userdata1, *userdata2;
} WGPUBufferMapCallbackInfo;

typedef WGPUBufferMapCallbackInfo WGPUQueueWorkDoneCallbackInfo;

typedef struct {
	WGPUChainedStruct *nextInChain;
	uint32_t mode;
	WGPUScopeCallback callback;
	void *userdata1, *userdata2;
} WGPUPopErrorScopeCallbackInfo;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	size_t requiredFeatureCount;
	uint32_t const *requiredFeatures;
	WGPULimits const *requiredLimits;
	struct {
		WGPUChainedStruct *nextInChain;
		WGPUStringView label;
	} defaultQueue;
	WGPUDeviceLostCallbackInfo deviceLostCallbackInfo;
	WGPUUncapturedErrorCallbackInfo uncapturedErrorCallbackInfo;
} WGPUDeviceDescriptor;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	uint64_t usage, size;
	WGPUBool mappedAtCreation;
} WGPUBufferDescriptor;

typedef struct {
	WGPUChainedStruct *nextInChain;
	uint32_t binding;
	WGPUBuffer buffer;
	uint64_t offset, size;
	void *sampler, *textureView;
} WGPUBindGroupEntry;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	WGPUBindGroupLayout layout;
	size_t entryCount;
	WGPUBindGroupEntry const *entries;
} WGPUBindGroupDescriptor;

typedef struct {
	WGPUChainedStruct *nextInChain;
	uint32_t binding;
	uint64_t visibility;
	uint32_t bindingArraySize;
	struct {
		WGPUChainedStruct *nextInChain;
		uint32_t type;
		WGPUBool hasDynamicOffset;
		uint64_t minBindingSize;
	} buffer;
	struct {
		WGPUChainedStruct *nextInChain;
		uint32_t type;
	} sampler;
	struct {
		WGPUChainedStruct *nextInChain;
		uint32_t sampleType, viewDimension;
		WGPUBool multisampled;
	} texture;
	struct {
		WGPUChainedStruct *nextInChain;
		uint32_t access, format, viewDimension;
	} storageTexture;
} WGPUBindGroupLayoutEntry;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	size_t entryCount;
	WGPUBindGroupLayoutEntry const *entries;
} WGPUBindGroupLayoutDescriptor;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	size_t bindGroupLayoutCount;
	WGPUBindGroupLayout const *bindGroupLayouts;
	uint32_t immediateSize;
} WGPUPipelineLayoutDescriptor;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
} WGPUShaderModuleDescriptor;

typedef WGPUShaderModuleDescriptor WGPUCommandEncoderDescriptor;

typedef struct {
	WGPUChainedStruct chain;
	WGPUStringView code;
} WGPUShaderSourceWGSL;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	void const *timestampWrites;
} WGPUComputePassDescriptor;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	WGPUPipelineLayout layout;
	struct {
		WGPUChainedStruct *nextInChain;
		WGPUShaderModule module;
		WGPUStringView entryPoint;
		size_t constantCount;
		void const *constants;
	} compute;
} WGPUComputePipelineDescriptor;

typedef struct {
	WGPUChainedStruct *nextInChain;
	WGPUStringView label;
	uint32_t type, count;
} WGPUQuerySetDescriptor;

extern void wgpuSetLogLevel(uint32_t level);

extern WGPUInstance wgpuCreateInstance(WGPUInstanceDescriptor const *);
extern size_t wgpuInstanceEnumerateAdapters(WGPUInstance, WGPUInstanceEnumerateAdapterOptions const *, WGPUAdapter *);
extern void wgpuInstanceRelease(WGPUInstance);

extern uint32_t wgpuAdapterGetInfo(WGPUAdapter, WGPUAdapterInfo *);
extern void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo);
extern uint32_t wgpuAdapterGetLimits(WGPUAdapter, WGPULimits *);
extern WGPUBool wgpuAdapterHasFeature(WGPUAdapter, uint32_t feature);
extern WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter, WGPUDeviceDescriptor const *, WGPURequestDeviceCallbackInfo);
extern void wgpuAdapterRelease(WGPUAdapter);

extern WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice, WGPUBindGroupDescriptor const *);
extern WGPUBindGroupLayout wgpuDeviceCreateBindGroupLayout(WGPUDevice, WGPUBindGroupLayoutDescriptor const *);
extern WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice, WGPUBufferDescriptor const *);
extern WGPUCommandEncoder wgpuDeviceCreateCommandEncoder(WGPUDevice, WGPUCommandEncoderDescriptor const *);
extern WGPUComputePipeline wgpuDeviceCreateComputePipeline(WGPUDevice, WGPUComputePipelineDescriptor const *);
extern WGPUPipelineLayout wgpuDeviceCreatePipelineLayout(WGPUDevice, WGPUPipelineLayoutDescriptor const *);
extern WGPUQuerySet wgpuDeviceCreateQuerySet(WGPUDevice, WGPUQuerySetDescriptor const *);
extern WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice, WGPUShaderModuleDescriptor const *);
extern uint32_t wgpuDeviceGetLimits(WGPUDevice, WGPULimits *);
extern WGPUQueue wgpuDeviceGetQueue(WGPUDevice);
extern WGPUBool wgpuDeviceHasFeature(WGPUDevice, uint32_t feature);
extern WGPUBool wgpuDevicePoll(WGPUDevice, WGPUBool wait, uint64_t const *submission);
extern void wgpuDevicePushErrorScope(WGPUDevice, uint32_t filter);
extern WGPUFuture wgpuDevicePopErrorScope(WGPUDevice, WGPUPopErrorScopeCallbackInfo);
extern void wgpuDeviceAddRef(WGPUDevice);
extern void wgpuDeviceRelease(WGPUDevice);

extern float wgpuQueueGetTimestampPeriod(WGPUQueue);
extern WGPUFuture wgpuQueueOnSubmittedWorkDone(WGPUQueue, WGPUQueueWorkDoneCallbackInfo);
extern void wgpuQueueSubmit(WGPUQueue, size_t count, WGPUCommandBuffer const *);
extern void wgpuQueueWriteBuffer(WGPUQueue, WGPUBuffer, uint64_t offset, void const *data, size_t size);
extern void wgpuQueueRelease(WGPUQueue);

extern void wgpuBufferDestroy(WGPUBuffer);
extern void *wgpuBufferGetMappedRange(WGPUBuffer, size_t offset, size_t size);
extern uint64_t wgpuBufferGetSize(WGPUBuffer);
extern uint64_t wgpuBufferGetUsage(WGPUBuffer);
extern WGPUFuture wgpuBufferMapAsync(WGPUBuffer, uint64_t mode, size_t offset, size_t size, WGPUBufferMapCallbackInfo);
extern void wgpuBufferUnmap(WGPUBuffer);
extern void wgpuBufferAddRef(WGPUBuffer);
extern void wgpuBufferRelease(WGPUBuffer);

extern WGPUComputePassEncoder wgpuCommandEncoderBeginComputePass(WGPUCommandEncoder, WGPUComputePassDescriptor const *);
extern void wgpuCommandEncoderClearBuffer(WGPUCommandEncoder, WGPUBuffer, uint64_t offset, uint64_t size);
extern void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder, WGPUBuffer src, uint64_t srcOffset, WGPUBuffer dst,
	uint64_t dstOffset, uint64_t size);
extern WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder, void const *descriptor);
extern void wgpuCommandEncoderResolveQuerySet(WGPUCommandEncoder, WGPUQuerySet, uint32_t first, uint32_t count, WGPUBuffer,
	uint64_t offset);
extern void wgpuCommandEncoderWriteTimestamp(WGPUCommandEncoder, WGPUQuerySet, uint32_t index);
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
extern void wgpuQuerySetRelease(WGPUQuerySet);
extern void wgpuShaderModuleRelease(WGPUShaderModule);

#endif
