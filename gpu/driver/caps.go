// SPDX-License-Identifier: Apache-2.0

package driver

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
