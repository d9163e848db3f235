// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/go-gl/glfw/v3.4/glfw"
	"github.com/oliverbestmann/webgpu/wgpu"
	"github.com/oliverbestmann/webgpu/wgpuglfw"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/oliver"
)

//go:embed screen.wgsl
var screenCode string

// screen draws a matrix to a window, with the device that computes it.
type screen struct {
	window   *glfw.Window
	device   *wgpu.Device // Sublet's, and so are its instance and its adapter
	instance *wgpu.Instance
	adapter  *wgpu.Adapter
	surface  *wgpu.Surface
	config   wgpu.SurfaceConfiguration
	pipeline *wgpu.RenderPipeline
	buffer   *wgpu.Buffer // the matrix's, and the group that binds it
	group    *wgpu.BindGroup
}

func newScreen(ctx context.Context, dev *gpu.Device, window *glfw.Window, m *dense) (*screen, error) {
	device, ok := dev.Handle().(*wgpu.Device)
	if !ok {
		return nil, fmt.Errorf("a device of the driver %s draws to no window", dev.Info().Driver)
	}
	s := &screen{window: window, device: device}
	if s.instance, s.adapter = oliver.Origin(device); s.instance == nil {
		return nil, errors.New("the device is not one that Sublet made")
	}
	if err := s.renew(); err != nil {
		return nil, fmt.Errorf("%s: %w", dev.Info().Name, err)
	}
	_, offset, err := m.Handle(ctx)
	if err == nil {
		err = s.compile(m, offset/m.DType().Size())
	}
	if err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// compile makes the pipeline for matrices that lie in their buffer as m does.
func (s *screen) compile(m *dense, first int) error {
	rows, cols := m.Dims()
	layout := fmt.Sprintf("const rows = %d; const cols = %d; const stride = %d; const first = %d;\n", rows, cols, m.Stride(), first)
	shader, err := s.device.TryCreateShaderModule(&wgpu.ShaderModuleDescriptor{WGSLSource: &wgpu.ShaderSourceWGSL{Code: layout + screenCode}})
	if err != nil {
		return err
	}
	defer shader.Release()
	s.pipeline, err = s.device.TryCreateRenderPipeline(&wgpu.RenderPipelineDescriptor{
		Vertex: wgpu.VertexState{Module: shader, EntryPoint: "corner"},
		Fragment: &wgpu.FragmentState{
			Module: shader, EntryPoint: "shade",
			Targets: []wgpu.ColorTargetState{{Format: s.config.Format, WriteMask: wgpu.ColorWriteMaskAll}},
		},
		Primitive:   wgpu.PrimitiveState{Topology: wgpu.PrimitiveTopologyTriangleList},
		Multisample: wgpu.MultisampleState{Count: 1, Mask: 0xffffffff},
	})
	return err
}

// draw shows the matrix as it is after what was queued for it. A window that is hidden or just changes shows a later frame.
func (s *screen) draw(ctx context.Context, m *dense) error {
	width, height := s.window.GetFramebufferSize()
	if width == 0 || height == 0 {
		return nil // an icon
	}
	if err := s.bind(ctx, m); err != nil { // of a closed device, too, which the binding must not get
		return err
	}
	if uint32(width) != s.config.Width || uint32(height) != s.config.Height {
		s.configure(width, height)
	}
	frame, err := s.surface.TryGetCurrentTexture()
	switch {
	case err != nil:
		return err
	case frame.IsStatusSuccess():
	case frame.Status == wgpu.SurfaceGetCurrentTextureStatusTimeout, frame.Status == wgpu.SurfaceGetCurrentTextureStatusOccluded:
		return nil
	case frame.Status == wgpu.SurfaceGetCurrentTextureStatusLost:
		return s.renew()
	case frame.Status == wgpu.SurfaceGetCurrentTextureStatusOutdated:
		s.config.Width = 0 // so that the next frame configures it
		return nil
	default:
		return fmt.Errorf("the window gives no texture: %v", frame.Status)
	}
	defer frame.Texture.Release() // it refers to the device
	if err := s.paint(frame.Texture); err != nil {
		return err
	}
	s.surface.Present()
	return nil
}

// renew makes the surface, in place of one that was lost.
func (s *screen) renew() error {
	s.surface.Release() // a window has one at a time
	s.surface = nil
	surface := s.instance.CreateSurface(wgpuglfw.GetSurfaceDescriptor(s.window))
	able := surface.GetCapabilities(s.adapter)
	if len(able.Formats) == 0 {
		runtime.SetFinalizer(surface, nil) // the binding ends the process when it releases a surface that was never configured
		return errors.New("the adapter draws to no window here")
	}
	s.surface = surface
	if s.pipeline == nil {
		s.config = wgpu.SurfaceConfiguration{
			Usage: wgpu.TextureUsageRenderAttachment, Format: able.Formats[0], PresentMode: wgpu.PresentModeFifo, AlphaMode: able.AlphaModes[0],
		}
		plain := []wgpu.TextureFormat{wgpu.TextureFormatBGRA8Unorm, wgpu.TextureFormatRGBA8Unorm} // the shader's colours are sRGB already
		if i := slices.IndexFunc(able.Formats, func(f wgpu.TextureFormat) bool { return slices.Contains(plain, f) }); i >= 0 {
			s.config.Format = able.Formats[i]
		}
	}
	s.configure(s.window.GetFramebufferSize())
	return nil
}

// configure gives the surface the window's size.
func (s *screen) configure(width, height int) {
	s.config.Width, s.config.Height = uint32(max(width, 1)), uint32(max(height, 1))
	s.surface.Configure(s.device, &s.config)
}

// bind binds the matrix's buffer, which is another one once the matrix has new memory.
func (s *screen) bind(ctx context.Context, m *dense) error {
	handle, _, err := m.Handle(ctx)
	if err != nil || handle == s.buffer {
		return err
	}
	buffer, ok := handle.(*wgpu.Buffer)
	if !ok {
		return errors.New("no buffer to draw from")
	}
	layout := s.pipeline.GetBindGroupLayout(0)
	defer layout.Release()
	group, err := s.device.TryCreateBindGroup(&wgpu.BindGroupDescriptor{
		Layout: layout, Entries: []wgpu.BindGroupEntry{{Binding: 0, Buffer: buffer, Size: wgpu.WholeSize}},
	})
	if err != nil {
		return err
	}
	s.group.Release()
	s.buffer, s.group = buffer, group
	return nil
}

func (s *screen) paint(texture *wgpu.Texture) error {
	view, err := texture.TryCreateView(nil)
	if err != nil {
		return err
	}
	defer view.Release()
	encoder, err := s.device.TryCreateCommandEncoder(nil)
	if err != nil {
		return err
	}
	defer encoder.Release()
	pass := encoder.BeginRenderPass(&wgpu.RenderPassDescriptor{
		ColorAttachments: []wgpu.RenderPassColorAttachment{{View: view, LoadOp: wgpu.LoadOpClear, StoreOp: wgpu.StoreOpStore}},
	})
	pass.SetPipeline(s.pipeline)
	pass.SetBindGroup(0, s.group, nil)
	pass.Draw(3, 1, 0, 0)
	err = pass.TryEnd()
	pass.Release()
	if err != nil {
		return err
	}
	commands, err := encoder.TryFinish(nil)
	if err != nil {
		return err
	}
	defer commands.Release()
	queue := s.device.GetQueue()
	defer queue.Release()
	queue.Submit(commands)
	return nil
}

// release releases what the program made of Sublet's device, before that is closed. The device, the instance and the buffer are borrowed.
func (s *screen) release() {
	s.group.Release()
	s.pipeline.Release()
	s.surface.Release()
}
