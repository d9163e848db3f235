// SPDX-License-Identifier: Apache-2.0
//
// Prints the sizes and offsets of what abi.h declares. TestABI compiles it once with abi.h and once with the headers of
// the binding; the two must print the same.

#include HEADER
#include <stdio.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(type));
#define FIELD(type, field) printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field));
#define VALUE(name) printf(#name " %d\n", (int)name);

int main(void) {
	SIZE(WGPUBool) SIZE(WGPUDevice)
	SIZE(WGPUChainedStruct) FIELD(WGPUChainedStruct, sType)
	SIZE(WGPUInstanceExtras) FIELD(WGPUInstanceExtras, backends) FIELD(WGPUInstanceExtras, flags)
	FIELD(WGPUInstanceExtras, gles3MinorVersion) FIELD(WGPUInstanceExtras, dxcPath)
	SIZE(WGPUInstanceDescriptor)
	SIZE(WGPUInstanceEnumerateAdapterOptions) FIELD(WGPUInstanceEnumerateAdapterOptions, backends)
	SIZE(WGPUAdapterInfo) FIELD(WGPUAdapterInfo, vendor) FIELD(WGPUAdapterInfo, description)
	FIELD(WGPUAdapterInfo, backendType) FIELD(WGPUAdapterInfo, adapterType) FIELD(WGPUAdapterInfo, vendorID)
	SIZE(WGPULimits) FIELD(WGPULimits, maxStorageBuffersPerShaderStage) FIELD(WGPULimits, maxStorageBufferBindingSize)
	FIELD(WGPULimits, minStorageBufferOffsetAlignment) FIELD(WGPULimits, maxBufferSize)
	FIELD(WGPULimits, maxComputeWorkgroupStorageSize) FIELD(WGPULimits, maxComputeInvocationsPerWorkgroup)
	FIELD(WGPULimits, maxComputeWorkgroupSizeX) FIELD(WGPULimits, maxComputeWorkgroupSizeY)
	FIELD(WGPULimits, maxComputeWorkgroupSizeZ) FIELD(WGPULimits, maxComputeWorkgroupsPerDimension)
	SIZE(WGPUSupportedLimits) FIELD(WGPUSupportedLimits, limits)
	SIZE(WGPUDeviceDescriptor) FIELD(WGPUDeviceDescriptor, requiredFeatureCount)
	FIELD(WGPUDeviceDescriptor, requiredFeatures) FIELD(WGPUDeviceDescriptor, requiredLimits)
	FIELD(WGPUDeviceDescriptor, deviceLostCallback) FIELD(WGPUDeviceDescriptor, deviceLostUserdata)
	FIELD(WGPUDeviceDescriptor, uncapturedErrorCallbackInfo.callback)
	FIELD(WGPUDeviceDescriptor, uncapturedErrorCallbackInfo.userdata)
	SIZE(WGPUBufferDescriptor) FIELD(WGPUBufferDescriptor, usage) FIELD(WGPUBufferDescriptor, size)
	FIELD(WGPUBufferDescriptor, mappedAtCreation)
	SIZE(WGPUBindGroupEntry) FIELD(WGPUBindGroupEntry, binding) FIELD(WGPUBindGroupEntry, buffer)
	FIELD(WGPUBindGroupEntry, offset) FIELD(WGPUBindGroupEntry, size)
	SIZE(WGPUBindGroupDescriptor) FIELD(WGPUBindGroupDescriptor, layout) FIELD(WGPUBindGroupDescriptor, entryCount)
	FIELD(WGPUBindGroupDescriptor, entries)
	SIZE(WGPUBindGroupLayoutEntry) FIELD(WGPUBindGroupLayoutEntry, binding)
	FIELD(WGPUBindGroupLayoutEntry, visibility) FIELD(WGPUBindGroupLayoutEntry, buffer.type)
	FIELD(WGPUBindGroupLayoutEntry, buffer.hasDynamicOffset) FIELD(WGPUBindGroupLayoutEntry, buffer.minBindingSize)
	SIZE(WGPUBindGroupLayoutDescriptor) FIELD(WGPUBindGroupLayoutDescriptor, entryCount)
	FIELD(WGPUBindGroupLayoutDescriptor, entries)
	SIZE(WGPUPipelineLayoutDescriptor) FIELD(WGPUPipelineLayoutDescriptor, bindGroupLayoutCount)
	FIELD(WGPUPipelineLayoutDescriptor, bindGroupLayouts)
	SIZE(WGPUShaderModuleDescriptor) FIELD(WGPUShaderModuleDescriptor, label)
	SIZE(WGPUCommandEncoderDescriptor) FIELD(WGPUCommandEncoderDescriptor, label)
	SIZE(WGPUComputePassDescriptor) FIELD(WGPUComputePassDescriptor, label)
	SIZE(WGPUShaderModuleWGSLDescriptor) FIELD(WGPUShaderModuleWGSLDescriptor, code)
	SIZE(WGPUComputePipelineDescriptor) FIELD(WGPUComputePipelineDescriptor, label)
	FIELD(WGPUComputePipelineDescriptor, layout) FIELD(WGPUComputePipelineDescriptor, compute.module)
	FIELD(WGPUComputePipelineDescriptor, compute.entryPoint)

	VALUE(WGPUSType_ShaderModuleWGSLDescriptor) VALUE(WGPUSType_InstanceExtras)
	VALUE(WGPUInstanceBackend_Vulkan) VALUE(WGPUInstanceBackend_GL) VALUE(WGPUInstanceBackend_Metal)
	VALUE(WGPUInstanceBackend_DX12)
	VALUE(WGPUNativeFeature_MappablePrimaryBuffers)
	VALUE(WGPUNativeFeature_ShaderF64)
	VALUE(WGPUErrorFilter_Validation) VALUE(WGPUErrorFilter_OutOfMemory)
	VALUE(WGPUErrorType_NoError) VALUE(WGPUErrorType_Validation) VALUE(WGPUErrorType_OutOfMemory)
	VALUE(WGPUBufferUsage_MapRead) VALUE(WGPUBufferUsage_MapWrite) VALUE(WGPUBufferUsage_CopySrc)
	VALUE(WGPUBufferUsage_CopyDst) VALUE(WGPUBufferUsage_Uniform) VALUE(WGPUBufferUsage_Storage)
	VALUE(WGPUMapMode_Read) VALUE(WGPUMapMode_Write) VALUE(WGPUBufferMapAsyncStatus_Success)
	VALUE(WGPUBufferBindingType_Uniform) VALUE(WGPUBufferBindingType_Storage)
	VALUE(WGPUBufferBindingType_ReadOnlyStorage) VALUE(WGPUShaderStage_Compute)
	VALUE(WGPURequestDeviceStatus_Success) VALUE(WGPULogLevel_Off)
	VALUE(WGPUAdapterType_DiscreteGPU) VALUE(WGPUAdapterType_IntegratedGPU) VALUE(WGPUAdapterType_CPU)
	VALUE(WGPUBackendType_D3D12) VALUE(WGPUBackendType_Metal) VALUE(WGPUBackendType_Vulkan)
	VALUE(WGPUBackendType_OpenGL) VALUE(WGPUBackendType_OpenGLES)
	return 0;
}
