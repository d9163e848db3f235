// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/gogpu/gputypes"
	"github.com/gogpu/naga"
	"github.com/gogpu/naga/ir"
	"github.com/gogpu/naga/spirv"
	"github.com/gogpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// layout is what kernels and binding sets of one driver.Layout share.
type layout struct {
	of        driver.Layout
	groups    *wgpu.BindGroupLayout
	pipelines *wgpu.PipelineLayout
}

var bufferTypes = map[driver.Access]gputypes.BufferBindingType{
	driver.AccessRead:      gputypes.BufferBindingTypeReadOnlyStorage,
	driver.AccessReadWrite: gputypes.BufferBindingTypeStorage,
	driver.AccessParams:    gputypes.BufferBindingTypeUniform,
}

func (d *device) layoutOf(of driver.Layout) (*layout, error) {
	if l := d.layouts[of]; l != nil {
		return l, nil
	}
	var entries []wgpu.BindGroupLayoutEntry
	for i := range driver.MaxBindings {
		if t, ok := bufferTypes[of.At(i)]; ok {
			entries = append(entries, wgpu.BindGroupLayoutEntry{
				Binding: uint32(i), Visibility: wgpu.ShaderStageCompute, Buffer: &gputypes.BufferBindingLayout{Type: t},
			})
		}
	}
	l := &layout{of: of}
	var err error
	if l.groups, err = d.dev.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Entries: entries}); err != nil {
		return nil, err
	}
	l.pipelines, err = d.dev.CreatePipelineLayout(&wgpu.PipelineLayoutDescriptor{BindGroupLayouts: []*wgpu.BindGroupLayout{l.groups}})
	if err != nil {
		l.groups.Release()
		return nil, err
	}
	d.layouts[of] = l
	return l, nil
}

// NewKernel compiles beside other calls. A compilation that has begun is not interrupted.
func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	const op = "NewKernel"
	l, err := d.begin(ctx, op, id, k)
	if err != nil {
		return err
	}
	defer d.compiles.Done()
	p, err := d.compile(op, k, l)
	if err != nil {
		return err
	}
	if err := d.keep(op, id, k, p); err != nil {
		p.Release()
		return err
	}
	return nil
}

// begin checks a kernel without noting it, as nobody may dispatch it yet, and counts a compilation.
func (d *device) begin(ctx context.Context, op string, id driver.KernelID, k *driver.Kernel) (l *layout, err error) {
	if err := d.lock(op); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	defer d.rescue(op, &err)
	if err := fault.Ended(ctx, name+": "+op); err != nil {
		return nil, err
	}
	if err := d.AddKernel(id, k); err != nil {
		return nil, err
	}
	d.DropKernel(id)
	if l, err = d.layoutOf(k.Layout); err != nil {
		return nil, fail(op, fault.ErrInvalid, err.Error())
	}
	d.compiles.Add(1)
	return l, nil
}

func (d *device) keep(op string, id driver.KernelID, k *driver.Kernel, p *wgpu.ComputePipeline) error {
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.AddKernel(id, k); err != nil { // somebody took the id
		return err
	}
	d.kernels[id] = p
	return nil
}

func (d *device) FreeKernel(id driver.KernelID) {
	var err error
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.rescue("FreeKernel", &err)
	if d.DropKernel(id) && d.Usable("") == nil {
		d.discard(d.kernels[id].Release)
		delete(d.kernels, id)
	}
}

// compile makes a pipeline of a kernel. What panics is the compiler, which leaves the device as it is.
func (d *device) compile(op string, k *driver.Kernel, l *layout) (p *wgpu.ComputePipeline, err error) {
	why := func(text string) error {
		if k.Label != "" {
			text = fault.Short(k.Label) + ": " + text
		}
		return fail(op, fault.ErrCompile, text)
	}
	defer func() {
		if p := recover(); p != nil {
			err = why("the compiler panicked: " + fault.Panic(p))
		}
	}()
	source, entry, text := d.translate(k)
	if text != "" {
		return nil, why(text)
	}
	module, err := d.dev.CreateShaderModule(source)
	if err != nil {
		return nil, why(err.Error())
	}
	defer module.Release()
	p, err = d.dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Label: k.Label, Layout: l.pipelines, Module: module, EntryPoint: entry,
	})
	if err != nil {
		return nil, why(err.Error())
	}
	return p, nil
}

// enables says which directive enables what the device was not given, whatever the compiler makes of it.
func enables(s *wgsl.Scan) string {
	for i := range s.Tokens {
		if s.At(i) == "enable" && (i == 0 || s.Char(i-1) == ';') && s.IsWord(i+1) {
			return "line " + strconv.Itoa(s.Line(i)) + ": this driver has no " + s.At(i+1)
		}
	}
	return ""
}

// translate checks a kernel, of which the library checks little, and returns what it is to compile, or why the kernel is wrong.
func (d *device) translate(k *driver.Kernel) (source *wgpu.ShaderModuleDescriptor, entry, wrong string) {
	limits := d.Info().Limits
	s, err := wgsl.Tokenize(k.Source)
	if s == nil {
		return nil, "", err.Error()
	}
	if text := s.Unsafe(); text != "" {
		return nil, "", text
	}
	text, entry := k.Source, k.Entry
	if err == nil {
		effort := int64(wgsl.Effort)
		if k.Bounded || k.Fused { // the library's own
			effort = wgsl.Unlimited
		}
		if text := cmp.Or(s.Excess(k.Entry, limits.MaxWorkgroupMemory, effort), enables(s)); text != "" {
			return nil, "", text
		}
		text, entry = portable(s), k.Entry+suffix
	}
	module, err := parse(text)
	if err != nil {
		return nil, "", strings.ReplaceAll(err.Error(), suffix, "")
	}
	order, wrong := checkInterface(module, entry, k.Layout, &limits)
	if wrong != "" {
		return nil, "", strings.ReplaceAll(wrong, suffix, "")
	}
	if !d.vulkan {
		return &wgpu.ShaderModuleDescriptor{Label: k.Label, WGSL: text}, entry, ""
	}
	lower(module, order)
	code, err := naga.GenerateSPIRV(module, spirv.Options{Version: spirv.Version1_3})
	if err != nil {
		return nil, "", err.Error()
	}
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return &wgpu.ShaderModuleDescriptor{Label: k.Label, SPIRV: words}, entry, ""
}

func parse(text string) (*ir.Module, error) {
	ast, err := naga.Parse(text)
	if err != nil {
		return nil, err
	}
	module, err := naga.LowerWithSource(ast, text)
	if err != nil {
		return nil, err
	}
	found, err := naga.Validate(module)
	if err == nil && len(found) > 0 {
		err = found[0]
	}
	return module, err
}

// checkInterface holds an entry point to the limits of the device and to the layout that the kernel says it has. It returns an order of
// the functions in which they stand behind those that they call.
func checkInterface(m *ir.Module, entry string, layout driver.Layout, l *driver.Limits) (order []ir.FunctionHandle, wrong string) {
	i := slices.IndexFunc(m.EntryPoints, func(e ir.EntryPoint) bool { return e.Name == entry && e.Stage == ir.StageCompute })
	if i < 0 {
		return nil, "there is no entry point " + fault.Short(entry)
	}
	total := uint64(1)
	for i, n := range m.EntryPoints[i].Workgroup {
		if n == 0 || n > l.MaxGroupSize[i] {
			return nil, fault.Text("a workgroup of ", n, " invocations in dimension ", i, ", the most are ", l.MaxGroupSize[i])
		}
		total *= uint64(n)
	}
	if total > uint64(l.MaxInvocations) {
		return nil, fault.Text("a workgroup of ", total, " invocations, the most are ", l.MaxInvocations)
	}
	r, globals := reached(m, &m.EntryPoints[i].Function)
	if r.recursion {
		return nil, "a function calls itself"
	}
	for i, v := range m.GlobalVariables {
		if v.Binding == nil || !globals[ir.GlobalVariableHandle(i)] {
			continue
		}
		if text := checkBinding(v, layout); text != "" {
			return nil, text
		}
	}
	return r.order, ""
}

func checkBinding(v ir.GlobalVariable, layout driver.Layout) (wrong string) {
	access := layout.At(int(min(v.Binding.Binding, driver.MaxBindings)))
	ok := false
	switch {
	case v.Binding.Group != 0:
	case v.Space == ir.SpaceUniform:
		ok = access == driver.AccessParams
	case v.Space == ir.SpaceStorage:
		ok = access == driver.AccessReadWrite || access == driver.AccessRead && v.Access == ir.StorageRead
	}
	if ok {
		return ""
	}
	return fault.Text("variable ", fault.Short(v.Name), " at binding ", v.Binding.Binding, " of group ", v.Binding.Group, " is not what the layout has there")
}
