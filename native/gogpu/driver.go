// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"cmp"
	"context"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/gogpu/gputypes"
	"github.com/gogpu/wgpu"
	_ "github.com/gogpu/wgpu/hal/allbackends" // the platform's interfaces
	"github.com/gogpu/wgpu/hal/vulkan"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// New returns the driver.
func New() driver.Driver {
	return driver.Driver{Name: name, Adapters: listAdapters, Adopt: adopt, Experimental: true}
}

const name = "gogpu"

func fail(op string, err error, detail ...any) error {
	return fault.Fail(name+": "+op, err, fault.Text(detail...))
}

// rescue turns a panic of the library into an error.
func rescue(op string, err *error) {
	if p := recover(); p != nil {
		*err = fail(op, fault.ErrUnsupported, "the library panicked: "+fault.Panic(p))
	}
}

// instance is made once: the library keeps what its instances have listed for as long as the process runs.
var instance = sync.OnceValues(func() (i *wgpu.Instance, err error) {
	defer rescue("Adapters", &err)
	backends := wgpu.BackendsVulkan
	switch runtime.GOOS {
	case "windows":
		backends |= wgpu.BackendsDX12
	case "darwin":
		backends |= wgpu.BackendsMetal
	}
	return wgpu.CreateInstance(&wgpu.InstanceDescriptor{Backends: backends})
})

// preferences are how the library is asked for adapters, of which it has no list.
var preferences = []*wgpu.RequestAdapterOptions{
	{PowerPreference: wgpu.PowerPreferenceHighPerformance},
	{PowerPreference: wgpu.PowerPreferenceLowPower},
	{ForceFallbackAdapter: true},
}

func listAdapters(ctx context.Context) (list []driver.Adapter, err error) {
	if err := fault.Ended(ctx, name+": Adapters"); err != nil {
		return nil, err
	}
	defer rescue("Adapters", &err)
	i, err := instance()
	if err != nil {
		return nil, nil //nolint:nilerr // there is no such interface
	}
	for _, p := range preferences {
		a, err := i.RequestAdapter(p)
		if err != nil {
			continue
		}
		info := describe(a.Info(), a.Limits())
		if slices.ContainsFunc(list, func(known driver.Adapter) bool { return known.Info == info }) {
			continue
		}
		list = append(list, driver.Adapter{Info: info, Open: func(ctx context.Context) (driver.Device, error) { return open(ctx, a, info) }})
	}
	return list, nil
}

func open(ctx context.Context, a *wgpu.Adapter, info driver.AdapterInfo) (dev driver.Device, err error) {
	const op = "Open"
	if err := fault.Ended(ctx, name+": "+op); err != nil {
		return nil, err
	}
	defer rescue(op, &err)
	d, err := a.RequestDevice(&wgpu.DeviceDescriptor{RequiredLimits: a.Limits()})
	if err != nil {
		return nil, fail(op, fault.ErrNoAdapter, err.Error())
	}
	return newDevice(d, info, true), nil
}

// adopt takes a *wgpu.Device, which does not tell what its adapter was.
func adopt(ctx context.Context, handle any) (dev driver.Device, err error) {
	const op = "Adopt"
	if err := fault.Ended(ctx, name+": "+op); err != nil {
		return nil, err
	}
	d, ok := handle.(*wgpu.Device)
	if !ok {
		return nil, fail(op, fault.ErrUnsupported, "not a *wgpu.Device of github.com/gogpu/wgpu")
	}
	defer rescue(op, &err)
	if d == nil || d.HalDevice() == nil || d.Queue() == nil {
		return nil, fail(op, fault.ErrInvalid, "nil device, or one that is released")
	}
	info := describe(wgpu.AdapterInfo{Name: "adopted device"}, d.Limits())
	info.Backend, info.Limits.MaxLoopsPerInvoking = "unknown", llvmpipeLoops // it may be llvmpipe
	if overVulkan(d) {
		info.Backend = "vulkan"
	}
	return newDevice(d, info, false), nil
}

func overVulkan(d *wgpu.Device) bool {
	_, ok := d.HalDevice().(*vulkan.Device)
	return ok
}

// belongs reports whether a buffer is the device's, which the library keeps to itself.
func belongs(b *wgpu.Buffer, d *wgpu.Device) bool {
	f := reflect.ValueOf(b).Elem().FieldByName("device")
	return f.Kind() == reflect.Pointer && f.Pointer() == reflect.ValueOf(d).Pointer()
}

// llvmpipeLoops is how many turns the loops of one invocation make together before Mesa's llvmpipe silently ends them.
const llvmpipeLoops = 65535

var kinds = map[wgpu.DeviceType]driver.Kind{
	gputypes.DeviceTypeDiscreteGPU:   driver.KindDiscrete,
	gputypes.DeviceTypeIntegratedGPU: driver.KindIntegrated,
	gputypes.DeviceTypeVirtualGPU:    driver.KindVirtual,
	gputypes.DeviceTypeCPU:           driver.KindCPU,
}

var backends = map[wgpu.Backend]string{wgpu.BackendVulkan: "vulkan", wgpu.BackendMetal: "metal", wgpu.BackendDX12: "d3d12"}

func describe(a wgpu.AdapterInfo, l wgpu.Limits) driver.AdapterInfo {
	const word = 3 // sizes of buffers and bindings are multiples of 4
	info := driver.AdapterInfo{
		Driver:   name,
		Name:     a.Name,
		Vendor:   cmp.Or(strings.ToLower(a.Vendor), "unknown"),
		Backend:  cmp.Or(backends[a.Backend], "unknown"),
		Kind:     kinds[a.DeviceType],
		Features: driver.FeatureWGSL,
		Limits: driver.Limits{
			MaxBufferSize:      l.MaxBufferSize &^ word,
			MaxBindingSize:     min(l.MaxStorageBufferBindingSize, l.MaxBufferSize) &^ word,
			MaxStorageBuffers:  min(l.MaxStorageBuffersPerShaderStage, driver.MaxBindings),
			MaxGroups:          l.MaxComputeWorkgroupsPerDimension,
			MaxInvocations:     l.MaxComputeInvocationsPerWorkgroup,
			MaxGroupSize:       [3]uint32{l.MaxComputeWorkgroupSizeX, l.MaxComputeWorkgroupSizeY, l.MaxComputeWorkgroupSizeZ},
			MaxWorkgroupMemory: l.MaxComputeWorkgroupStorageSize,
			BindingOffsetAlign: 256,
		},
	}
	if strings.Contains(strings.ToLower(a.Name), "llvmpipe") {
		info.Limits.MaxLoopsPerInvoking = llvmpipeLoops
	}
	return info
}
