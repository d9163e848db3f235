// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/host"
)

// bufferScene is what tests lose devices and memory in that use no more than this package.
type bufferScene struct {
	t    testing.TB
	dev  *gpu.Device
	bufs []*gpu.Buffer // a, b, and one that is mapped
	k    *gpu.Kernel
}

const sceneWords = 64

// sumKernel adds the second buffer to the first one.
var sumKernel = gpu.KernelDesc{
	Source: `@group(0) @binding(0) var<storage, read_write> a: array<f32>; @group(0) @binding(1) var<storage, read> b: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) { a[i.x] = a[i.x] + b[i.x]; }`,
	Bindings: []driver.Access{driver.AccessReadWrite, driver.AccessRead},
	Reference: func(_ [3]uint32, _ []byte, s [][]byte) {
		a, b := floatsIn(s[0]), floatsIn(s[1])
		for i := range sceneWords {
			a[i] += b[i]
		}
	},
}

func newBufferScene(t testing.TB, devices []*gpu.Device) *devtest.Scene {
	s := &bufferScene{t: t, dev: devices[0]}
	devtest.Check(t, s.reset())
	scene := &devtest.Scene{Reset: s.reset, Close: s.close}
	for i := range s.bufs {
		scene.Values = append(scene.Values, func() ([]float32, error) { return s.read(i) })
	}
	step := func(name string, do func() error) {
		scene.Steps = append(scene.Steps, devtest.Step{Name: name, Do: func() ([]float32, error) { return nil, do() }})
	}
	a, b, m := 0, 1, 2
	step("compile", s.compile)
	step("add", func() error { return s.add(a, b) })
	step("write", func() error { return s.write(b, 3) })
	step("copy", func() error { return s.bufs[m].CopyFrom(0, s.bufs[a], 0, sceneWords*4) })
	step("sync", func() error { return s.dev.Sync(t.Context()) })
	step("map", func() error {
		return s.bufs[m].Map(t.Context(), 0, sceneWords*4, func(mem []byte) error { floatsIn(mem)[1] = 100; return nil })
	})
	step("add what was mapped", func() error { return s.add(a, m) })
	step("clear", func() error { return s.bufs[b].Clear(16, 32) })
	step("pooled", func() error { return s.replace(b) })
	step("larger", func() error { return s.temporary(1 << 12) })
	step("add again", func() error { return s.add(a, b) })
	scene.Steps = append(scene.Steps, devtest.Step{Name: "read", Do: func() ([]float32, error) { return s.read(a) }})
	step("flush", s.dev.Flush)
	return scene
}

// compile makes the kernel, unless there is one.
func (s *bufferScene) compile() error {
	k, err := s.dev.Kernel(s.t.Context(), sumKernel)
	if err == nil {
		s.k = k
	}
	return err
}

func (s *bufferScene) add(to, from int) error {
	return s.k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: s.bufs[to]}, gpu.Arg{Buffer: s.bufs[from]})
}

func (s *bufferScene) write(i int, v float32) error {
	all := make([]float32, sceneWords)
	for k := range all {
		all[k] = v + float32(k)
	}
	return s.bufs[i].Write(0, gpu.HostBytes(host.BytesOf(all)))
}

func (s *bufferScene) read(i int) ([]float32, error) {
	v := make([]float32, sceneWords)
	err := s.bufs[i].Read(s.t.Context(), gpu.Transfer{Host: gpu.HostBytes(host.BytesOf(v)), Width: sceneWords * 4, Count: 1})
	return v, err
}

// replace makes a buffer anew, most likely of memory of the pool.
func (s *bufferScene) replace(i int) error {
	next, err := s.dev.NewBuffer(sceneWords * 4)
	if err != nil {
		return err
	}
	if err := next.CopyFrom(0, s.bufs[i], 0, sceneWords*4); err != nil {
		return errors.Join(err, next.Close())
	}
	old := s.bufs[i]
	s.bufs[i] = next
	_ = old.Close() // a batch that it hands over may be refused
	return nil
}

// temporary makes a buffer of some size that goes to the pool.
func (s *bufferScene) temporary(size uint64) error {
	b, err := s.dev.NewBuffer(size)
	if err == nil {
		_ = b.Close()
	}
	return err
}

func (s *bufferScene) reset() error {
	err := s.close()
	for i := range 3 {
		create := s.dev.NewBuffer
		if i == 2 && s.dev.Info().Features.Has(driver.FeatureMappable) {
			create = s.dev.NewMappable
		}
		b, berr := create(sceneWords * 4)
		s.bufs = append(s.bufs, b)
		err = errors.Join(err, berr, s.write(i, float32(10*i)))
	}
	return err
}

func (s *bufferScene) close() error {
	err := s.k.Close()
	for _, b := range s.bufs {
		err = errors.Join(err, b.Close())
	}
	s.k, s.bufs = nil, nil
	return err
}

// TestEveryFault has everything go wrong at every call of a driver that buffers and kernels need.
func TestEveryFault(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 20, 20)
	s := devtest.Script{Devices: 1, New: newBufferScene}
	s.EveryFault(t, 60, devtest.Lose, devtest.LoseAfter, devtest.NoMemory, devtest.Refuse)
}

// TestEveryAllocation has every k-th call fail that may take memory.
func TestEveryAllocation(t *testing.T) {
	devtest.AtLeast(t, devtest.NoMemory, 400, 1000)
	devtest.Script{Devices: 1, New: newBufferScene}.EveryAllocation(t, devtest.Times(2))
}

// TestPoolGivesWay has a call fail for lack of memory. Closed buffers that are kept for reuse are freed, and the call is made once more, so
// that nobody notices; where memory is short still, the error is the caller's.
func TestPoolGivesWay(t *testing.T) {
	for op, call := range map[string]func(s *bufferScene) error{
		"NewBuffer": func(s *bufferScene) error { return s.temporary(1 << 12) },
		"NewKernel": (*bufferScene).compile,
		"Submit":    func(s *bufferScene) error { return s.write(0, 7) },
		"Read":      func(s *bufferScene) error { _, err := s.read(0); return err },
		"Map": func(s *bufferScene) error {
			return s.bufs[2].Map(t.Context(), 0, 4, func([]byte) error { return nil })
		},
	} {
		for _, c := range []struct {
			kept     bool
			failures int
			calls    int
			want     error
		}{{true, 1, 2, nil}, {false, 1, 2, nil}, {true, 2, 2, gpu.ErrNoMemory}, {false, 2, 2, gpu.ErrNoMemory}} {
			dev, f := devtest.OpenFaulty(t, devtest.Oracle(t), nil)
			s := &bufferScene{t: t, dev: dev}
			devtest.Check(t, s.reset())
			if c.kept {
				devtest.Check(t, s.temporary(64))
			}
			calls := 0
			f.Arm(func(call devtest.Call) devtest.Fault {
				if call.Op != op {
					return devtest.None
				}
				if calls++; calls > c.failures {
					return devtest.None
				}
				return devtest.NoMemory
			})
			if err := call(s); !errors.Is(err, c.want) || calls != c.calls || dev.Stats().PooledBytes > 1<<12 {
				t.Errorf("%s, %+v: %v after %d calls, the pool has %d bytes", op, c, err, calls, dev.Stats().PooledBytes)
			}
			f.Arm(nil)
			devtest.Check(t, errors.Join(call(s), s.close()))
		}
	}
}

// floatsIn is memory as numbers.
func floatsIn(mem []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
}
