// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/sublet-gpu/sublet/internal/fault"

// Kind tells what sort of processor an adapter is.
type Kind uint8

// The kinds of adapter. Software adapters (llvmpipe, SwiftShader) and the oracle are of kind CPU.
const (
	KindUnknown Kind = iota
	KindDiscrete
	KindIntegrated
	KindVirtual
	KindCPU
)

// String returns the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[KindUnknown]
}

var kindNames = [...]string{"unknown", "discrete", "integrated", "virtual", "cpu"}

// Limits of an adapter, or what an open device was granted. Sizes are in bytes.
type Limits struct {
	MaxBufferSize       uint64    // one buffer
	MaxBindingSize      uint64    // the part of a buffer that one binding shows to a kernel
	MaxStorageBuffers   uint32    // storage bindings of one kernel
	MaxGroups           uint32    // workgroups of one dispatch, per dimension
	MaxInvocations      uint32    // invocations of one workgroup
	MaxGroupSize        [3]uint32 // invocations of one workgroup, per dimension
	MaxWorkgroupMemory  uint32    // var<workgroup> of one kernel
	BindingOffsetAlign  uint32    // a binding's offset is a multiple of it
	MaxLoopsPerInvoking uint32    // turns of all loops of one invocation together; 0 is no limit
}

// Features is a set of optional abilities.
type Features uint32

// The features the library makes use of.
const (
	// FeatureMappable: a buffer can be storage for kernels and mapped by the CPU, without copies.
	FeatureMappable Features = 1 << iota
	// FeatureHalf: kernels may compute in f16.
	FeatureHalf
	// FeatureDouble: kernels may compute in f64.
	FeatureDouble
	// FeatureSubgroups: kernels may use subgroup operations.
	FeatureSubgroups
	// FeatureWGSL: the device compiles any WGSL. The oracle does not.
	FeatureWGSL
)

var featureNames = [...]string{"mappable", "half", "double", "subgroups", "wgsl"}

// Has reports whether all of x is in f.
func (f Features) Has(x Features) bool { return f&x == x }

// Names lists the features in words.
func (f Features) Names() []string {
	names := make([]string, 0, len(featureNames))
	for i, n := range featureNames {
		if f.Has(1 << i) {
			names = append(names, n)
		}
	}
	return names
}

// AdapterInfo describes an adapter or an open device.
type AdapterInfo struct {
	Driver   string // the driver's name, for example "cogent"
	Name     string // the adapter's own name
	Vendor   string
	Backend  string // "vulkan", "metal", "d3d12", "webgpu", "go"
	Kind     Kind
	Limits   Limits
	Features Features
}

func fail(op string, err error, detail ...any) error {
	return fault.Fail(op, err, fault.Text(detail...))
}

// CheckRange wants an offset and a size in multiples of 4 within a buffer of so many bytes. Package gpu calls it and the checks
// below when a command is recorded, [Objects] when the list is submitted. op begins the error's text.
func CheckRange(op string, offset, size, buffer uint64) error {
	if offset%4 != 0 || size%4 != 0 {
		return fail(op, fault.ErrInvalid, "offset ", offset, " or size ", size, " is not a multiple of 4")
	}
	if offset > buffer || size > buffer-offset {
		return fail(op, fault.ErrInvalid, size, " bytes at ", offset, " of ", buffer)
	}
	return nil
}

// CheckGroups checks the workgroup counts of a launch.
func (l *Limits) CheckGroups(op string, groups [3]uint32) error {
	for _, g := range groups {
		if g > l.MaxGroups {
			return fail(op, fault.ErrLimit, g, " workgroups, the most per dimension are ", l.MaxGroups)
		}
	}
	return nil
}

// CheckBindings checks what a kernel of the layout is to see of buffers of the given sizes.
//
// WebGPU refuses a buffer that is bound for reading and for writing, whatever the ranges, and ranges that overlap and are
// both writable: https://www.w3.org/TR/webgpu/#programming-model-resource-usages
func (l *Limits) CheckBindings(op string, layout Layout, entries []Binding, sizes []uint64) error {
	switch {
	case len(entries) != layout.Storage():
		return fail(op, fault.ErrInvalid, len(entries), " entries for ", layout.Storage(), " storage bindings")
	case layout.params() > 1:
		return fail(op, fault.ErrInvalid, "more than one parameter block")
	case len(entries) > int(l.MaxStorageBuffers):
		return fail(op, fault.ErrLimit, len(entries), " storage bindings")
	}
	var writes [MaxBindings]bool
	binding := -1
	for i, e := range entries {
		for binding++; layout.At(binding) == AccessNone || layout.At(binding) == AccessParams; binding++ {
		}
		writes[i] = layout.At(binding) == AccessReadWrite
		if err := l.checkBinding(op, e, sizes[i]); err != nil {
			return err
		}
		for j, f := range entries[:i] {
			overlap := e.Offset < f.Offset+f.Size && f.Offset < e.Offset+e.Size
			if f.Buffer == e.Buffer && (writes[i] != writes[j] || writes[i] && overlap) {
				return fail(op, fault.ErrInvalid, "one buffer bound for reading and for writing")
			}
		}
	}
	return nil
}

func (l *Limits) checkBinding(op string, e Binding, buffer uint64) error {
	switch {
	case e.Size == 0 || e.Size%4 != 0:
		return fail(op, fault.ErrInvalid, "size ", e.Size, " is not a positive multiple of 4")
	case l.BindingOffsetAlign > 0 && e.Offset%uint64(l.BindingOffsetAlign) != 0:
		return fail(op, fault.ErrInvalid, "offset ", e.Offset, " is not a multiple of ", l.BindingOffsetAlign)
	case e.Offset > buffer || e.Size > buffer-e.Offset:
		return fail(op, fault.ErrInvalid, "beyond the end of the buffer")
	case e.Size > l.MaxBindingSize:
		return fail(op, fault.ErrLimit, e.Size, " bytes, the largest binding has ", l.MaxBindingSize)
	}
	return nil
}
