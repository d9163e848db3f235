// SPDX-License-Identifier: Apache-2.0
//
// What a binding of WebGPU's C library gives to package core: one table of functions over plain numbers, so that the core need not know
// which version of the library's header a binding has. Each binding implements the table in a C file of its own.
//
// The functions follow the calls of webgpu.h whose names they bear. Where a function takes a core_signal, it raises it with
// core_raise, at once or within a later poll. A binding's error handler calls watch->on_error within the call that caused
// the error.

#ifndef SUBLET_CORE_BINDING_H
#define SUBLET_CORE_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The library's objects, under the names that every version of webgpu.h gives them.
typedef struct WGPUAdapterImpl *WGPUAdapter;
typedef struct WGPUBindGroupImpl *WGPUBindGroup;
typedef struct WGPUBindGroupLayoutImpl *WGPUBindGroupLayout;
typedef struct WGPUBufferImpl *WGPUBuffer;
typedef struct WGPUCommandBufferImpl *WGPUCommandBuffer;
typedef struct WGPUCommandEncoderImpl *WGPUCommandEncoder;
typedef struct WGPUComputePassEncoderImpl *WGPUComputePassEncoder;
typedef struct WGPUComputePipelineImpl *WGPUComputePipeline;
typedef struct WGPUDeviceImpl *WGPUDevice;
typedef struct WGPUInstanceImpl *WGPUInstance;
typedef struct WGPUPipelineLayoutImpl *WGPUPipelineLayout;
typedef struct WGPUQuerySetImpl *WGPUQuerySet;
typedef struct WGPUQueueImpl *WGPUQueue;
typedef struct WGPUShaderModuleImpl *WGPUShaderModule;

enum { // kinds of error
	CORE_OK,
	CORE_INVALID,
	CORE_MEMORY, // also where malloc failed
	CORE_MAPPED, // a buffer of the list is mapped by somebody else
	CORE_LOST,
};

enum { // backends, as bits
	CORE_VULKAN = 1, CORE_METAL = 2, CORE_D3D12 = 4, CORE_OPENGL = 8,
};

enum { // usages of buffers, as in webgpu.h
	CORE_MAP_READ = 1, CORE_MAP_WRITE = 2, CORE_COPY_SRC = 4, CORE_COPY_DST = 8, CORE_UNIFORM = 0x40, CORE_STORAGE = 0x80,
	CORE_RESOLVE = 0x200,
};

enum { // states of a buffer
	CORE_BUFFER_UNKNOWN, // not seen; or this device's and not destroyed, but perhaps mapped
	CORE_BUFFER_FINE,
	CORE_BUFFER_MAPPED, // from its creation on
	CORE_BUFFER_DESTROYED,
	CORE_BUFFER_FOREIGN, // another device's, of one that is gone, or no buffer
};

enum { // features, the bits of driver.Features
	CORE_MAPPABLE = 1, CORE_HALF = 2, CORE_DOUBLE = 4, CORE_SUBGROUPS = 8, CORE_WGSL = 16, CORE_TIMESTAMPS = 32,
};

enum { // kinds of adapter, the values of driver.Kind
	CORE_KIND_UNKNOWN, CORE_KIND_DISCRETE, CORE_KIND_INTEGRATED, CORE_KIND_VIRTUAL, CORE_KIND_CPU,
};

typedef struct {
	uint64_t buffer, binding; // sizes in bytes
	uint32_t storage_buffers, groups, invocations, group_size[3], workgroup_memory;
} core_limits;

typedef struct {
	char name[256];
	uint32_t vendor, device; // PCI numbers, or those that Vulkan gives to makers of software
	uint32_t kind, backend, features;
	core_limits limits;
	float tick; // of a timestamp, in nanoseconds
} core_adapter;

// core_signal is raised once by a callback that may come late or never. When both the callback and the waiter are done with it,
// it is freed.
typedef struct {
	int32_t state;
	bool ok;
} core_signal;

enum { CORE_WAITING, CORE_RAISED, CORE_ABANDONED };

static inline void core_raise(core_signal *s, bool ok) {
	s->ok = ok;
	if (__atomic_exchange_n(&s->state, CORE_RAISED, __ATOMIC_ACQ_REL) == CORE_ABANDONED) free(s);
}

// core_watch collects what a device says outside of any call. It outlives the device and is never freed where
// the library has its address: objects of the device that others own keep the device alive, and with it the address.
typedef struct core_watch {
	int32_t lost;   // the device is lost; set last
	int32_t strays; // errors reported while no call of ours was under way
	char *reason;   // why it was lost
	void (*on_error)(struct core_watch *, uint32_t type, char const *message, size_t length);
	void (*on_lost)(struct core_watch *, char const *message, size_t length);
} core_watch;

// core_report receives an error of an error scope.
typedef void (*core_report)(void *to, uint32_t type, char const *message, size_t length);

typedef struct {
	uint32_t binding;
	bool uniform;  // with a dynamic offset
	bool readonly;
	uint64_t least; // size of the binding
} core_slot;

typedef struct {
	uint32_t binding;
	WGPUBuffer buffer;
	uint64_t offset, size;
} core_bound;

typedef struct {
	size_t size; // of this table, so that one of another version is noticed

	// list enumerates the adapters of the backends, in an instance of their own, in a malloc'ed array.
	size_t (*list)(uint32_t backends, WGPUInstance *, WGPUAdapter **);
	void (*describe)(WGPUAdapter, core_adapter *);
	// request opens a device with all limits, and the features that core_adapter names. Errors and the loss go to the watch. It
	// returns NULL with a report.
	WGPUDevice (*request)(WGPUAdapter, core_watch *, core_report, void *to);
	void (*describe_device)(WGPUDevice, core_adapter *); // limits, features and tick
	WGPUQueue (*queue)(WGPUDevice);
	bool (*poll)(WGPUDevice); // without waiting; whether the queue is empty
	void (*push_scopes)(WGPUDevice);
	void (*pop_scopes)(WGPUDevice, core_report, void *to);

	WGPUBuffer (*create_buffer)(WGPUDevice, char const *label, uint64_t size, uint32_t usage);
	void (*destroy_buffer)(WGPUBuffer);
	uint64_t (*buffer_size)(WGPUBuffer);
	uint32_t (*buffer_usage)(WGPUBuffer);
	void (*map)(WGPUBuffer, bool write, uint64_t offset, uint64_t size, core_signal *);
	void *(*mapped_range)(WGPUBuffer, uint64_t offset, uint64_t size);
	void (*unmap)(WGPUBuffer);
	// take_buffer takes a reference, or returns false if the last one was released. Where releases cannot be seen it takes the buffer
	// for alive. buffer_state tells what can be seen of a buffer that the device may have, without an error.
	bool (*take_buffer)(WGPUBuffer);
	uint32_t (*buffer_state)(WGPUDevice, WGPUBuffer);
	// check_buffer makes an error if a buffer is destroyed. It is NULL where unmap says so.
	void (*check_buffer)(WGPUDevice, WGPUBuffer);

	WGPUBindGroupLayout (*create_group_layout)(WGPUDevice, size_t n, core_slot const *);
	WGPUPipelineLayout (*create_pipeline_layout)(WGPUDevice, size_t n, WGPUBindGroupLayout const *);
	WGPUBindGroup (*create_group)(WGPUDevice, WGPUBindGroupLayout, size_t n, core_bound const *);
	WGPUShaderModule (*create_module)(WGPUDevice, char const *label, char const *source);
	WGPUComputePipeline (*create_pipeline)(WGPUDevice, char const *label, WGPUPipelineLayout, WGPUShaderModule, char const *entry);

	WGPUCommandEncoder (*create_encoder)(WGPUDevice, char const *label);
	void (*copy)(WGPUCommandEncoder, WGPUBuffer from, uint64_t from_offset, WGPUBuffer to, uint64_t to_offset, uint64_t size);
	void (*clear)(WGPUCommandEncoder, WGPUBuffer, uint64_t offset, uint64_t size);
	WGPUComputePassEncoder (*begin_pass)(WGPUCommandEncoder, char const *label);
	void (*set_pipeline)(WGPUComputePassEncoder, WGPUComputePipeline);
	void (*set_group)(WGPUComputePassEncoder, uint32_t i, WGPUBindGroup, size_t n, uint32_t const *offsets);
	void (*dispatch)(WGPUComputePassEncoder, uint32_t x, uint32_t y, uint32_t z);
	void (*end_pass)(WGPUComputePassEncoder); // and releases it
	WGPUCommandBuffer (*finish)(WGPUCommandEncoder);

	// Where timestamps are no feature of any device, these are NULL.
	WGPUQuerySet (*create_timestamps)(WGPUDevice, uint32_t n);
	void (*timestamp)(WGPUCommandEncoder, WGPUQuerySet, uint32_t i);
	void (*resolve)(WGPUCommandEncoder, WGPUQuerySet, uint32_t i, uint32_t n, WGPUBuffer, uint64_t offset);

	void (*submit)(WGPUQueue, size_t n, WGPUCommandBuffer const *);
	void (*write)(WGPUQueue, WGPUBuffer, uint64_t offset, void const *, size_t size);
	void (*done)(WGPUQueue, core_signal *);

	void (*add_device)(WGPUDevice);
	void (*add_buffer)(WGPUBuffer);
	void (*drop_instance)(WGPUInstance);
	void (*drop_adapter)(WGPUAdapter);
	void (*drop_device)(WGPUDevice);
	void (*drop_queue)(WGPUQueue);
	void (*drop_buffer)(WGPUBuffer);
	void (*drop_group)(WGPUBindGroup);
	void (*drop_group_layout)(WGPUBindGroupLayout);
	void (*drop_pipeline_layout)(WGPUPipelineLayout);
	void (*drop_pipeline)(WGPUComputePipeline);
	void (*drop_module)(WGPUShaderModule);
	void (*drop_encoder)(WGPUCommandEncoder);
	void (*drop_commands)(WGPUCommandBuffer);
	void (*drop_timestamps)(WGPUQuerySet);
} core_calls;

#endif
