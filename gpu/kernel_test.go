// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// TestKernelHolds closes one of two holds, and then the other with a launch still queued.
func TestKernelHolds(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		kernel := devtest.Must[*gpu.Kernel](t)
		one := [3]uint32{1, 1, 1}
		b := devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(256))
		check(t, b.Clear(0, 256))
		arg := gpu.Arg{Buffer: b}
		for round := range uint64(3) {
			x, y := kernel(dev.Kernel(t.Context(), addKernel())), kernel(dev.Kernel(t.Context(), addKernel()))
			if s := dev.Stats(); s.Kernels != 1 || s.Compilations != 2*round+1 || s.CacheHits != round+1 {
				t.Fatalf("two holds: %+v", s)
			}
			check(t, x.Dispatch(one, params(1, 64, 0, 0), arg))
			check(t, errors.Join(x.Close(), x.Close()))
			if err := x.Dispatch(one, params(1, 64, 0, 0), arg); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("a closed hold: %v", err)
			}
			if s := dev.Stats(); s.Kernels != 1 {
				t.Fatalf("one hold is left: %+v", s)
			}
			check(t, y.Dispatch(one, params(10, 64, 0, 0), arg))
			check(t, errors.Join(y.Close(), x.Close()))
			if s := dev.Stats(); s.Kernels != 0 {
				t.Fatalf("nobody holds it: %+v", s)
			}
			other := addKernel() // takes the place of the one whose launch is queued
			other.Source = strings.Replace(other.Source, "+=", "-=", 1)
			ref := other.Reference
			other.Reference = func(groups [3]uint32, p []byte, storage [][]byte) {
				ref(groups, params(^uint32(4), 64, 0, 0), storage)
			}
			z := kernel(dev.Kernel(t.Context(), other))
			check(t, z.Dispatch(one, params(5, 64, 0, 0), arg))
			if v := words(t, b, 64)[63]; v != uint32(round+1)*6 {
				t.Fatalf("%d after %d rounds of 6", v, round+1)
			}
			check(t, z.Close())
		}
		check(t, b.Close())
	})
}

// TestKernelsShared has goroutines take holds of a few texts, use them and give them back.
func TestKernelsShared(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				b, err := dev.NewBuffer(256)
				if err != nil {
					t.Error(err)
					return
				}
				defer b.Close()
				for i := range 25 {
					desc := addKernel()
					desc.Source += strings.Repeat(" ", (g+i)%3)
					k, err := dev.Kernel(t.Context(), desc)
					if err != nil {
						t.Error(err)
						return
					}
					err = errors.Join(b.Clear(0, 256), k.Dispatch([3]uint32{1, 1, 1}, params(uint32(g), 64, 0, 0), gpu.Arg{Buffer: b}), k.Close())
					if err != nil {
						t.Error(err)
						return
					}
					if i%5 == 0 {
						if v := words(t, b, 64)[63]; v != uint32(g) {
							t.Errorf("goroutine %d read %d", g, v)
						}
					}
				}
			})
		}
		wg.Wait()
		s := dev.Stats()
		if s.Kernels != 0 || s.Compilations+s.CacheHits != 200 {
			t.Errorf("%+v", s)
		}
	})
}

// gated is a driver's device whose compilations wait, and that tells what it frees.
type gated struct {
	driver.Device
	asked chan struct{}
	gate  chan error
	freed chan driver.KernelID
	lost  chan struct{}
}

func newGated(t *testing.T) gated {
	t.Helper()
	return gated{newLosable(t).Device, make(chan struct{}, 8), make(chan error), make(chan driver.KernelID, 8), make(chan struct{})}
}

func (g gated) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	g.asked <- struct{}{}
	if err := <-g.gate; err != nil {
		return err
	}
	return g.Device.NewKernel(ctx, id, k)
}

func (g gated) FreeKernel(id driver.KernelID) {
	g.Device.FreeKernel(id)
	g.freed <- id
}

func (g gated) Lost() <-chan struct{} { return g.lost }

// waiter is a call of Device.Kernel under way.
type waiter struct {
	k      *gpu.Kernel
	err    error
	cancel context.CancelFunc
	done   chan struct{}
}

// ask calls Device.Kernel, and returns when that waits for the compiler.
func ask(t *testing.T, dev *gpu.Device) *waiter {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiter{cancel: cancel, done: make(chan struct{})}
	before := dev.Stats().CacheHits
	go func() {
		defer close(w.done)
		w.k, w.err = dev.Kernel(ctx, addKernel())
	}()
	g := dev.Handle().(gated)
	for dev.Stats().CacheHits == before {
		select {
		case <-g.asked:
			return w
		default:
			runtime.Gosched()
		}
	}
	return w
}

func (w *waiter) wait() (*gpu.Kernel, error) {
	<-w.done
	w.cancel()
	return w.k, w.err
}

func (g gated) Handle(driver.BufferID) any { return g }

// TestKernelGivenUp ends the contexts of callers that wait for the compiler: of some, and of all.
func TestKernelGivenUp(t *testing.T) {
	g := newGated(t)
	dev := devtest.Must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDevice(g)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dev.Kernel(ended, addKernel()); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	x, y := ask(t, dev), ask(t, dev)
	x.cancel()
	if k, err := x.wait(); k != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up has %v, %v", k, err)
	}
	g.gate <- nil
	k, err := y.wait()
	check(t, err)
	if again, err := dev.Kernel(ended, addKernel()); err != nil {
		t.Errorf("what is there needs no waiting: %v", err)
	} else {
		check(t, again.Close())
	}
	if s := dev.Stats(); s.Kernels != 1 || s.Compilations != 1 || s.CacheHits != 2 {
		t.Errorf("%+v", s)
	}
	check(t, k.Close())
	first := <-g.freed

	x, y = ask(t, dev), ask(t, dev)
	x.cancel()
	y.cancel()
	_, err = x.wait()
	_, err2 := y.wait()
	if !errors.Is(err, context.Canceled) || !errors.Is(err2, context.Canceled) {
		t.Errorf("%v, %v", err, err2)
	}
	z := ask(t, dev) // it is still the one compilation
	z.cancel()
	_, _ = z.wait()
	g.gate <- nil
	if second := <-g.freed; second != first || dev.Stats().Kernels != 0 || dev.Stats().Compilations != 2 {
		t.Errorf("kernels %d, %d; %+v", first, second, dev.Stats())
	}

	x, y = ask(t, dev), ask(t, dev)
	g.gate <- gpu.ErrCompile
	_, err = x.wait()
	_, err2 = y.wait()
	if !errors.Is(err, gpu.ErrCompile) || !errors.Is(err2, gpu.ErrCompile) {
		t.Errorf("%v, %v", err, err2)
	}
	x = ask(t, dev)
	g.gate <- nil
	k, err = x.wait()
	check(t, err)
	check(t, k.Close())
	if third := <-g.freed; third != first || dev.Stats().Kernels != 0 {
		t.Errorf("kernel %d after a failure, before %d", third, first)
	}

	x = ask(t, dev)
	check(t, dev.Close())
	g.gate <- nil
	if k, err := x.wait(); k != nil || !errors.Is(err, gpu.ErrClosed) || dev.Stats().Kernels != 0 {
		t.Errorf("the device was closed meanwhile: %v, %v, %+v", k, err, dev.Stats())
	}
}

// TestKernelOfTheLifeBefore closes a kernel after its device came back: the new one, which has its number, stays.
func TestKernelOfTheLifeBefore(t *testing.T) {
	first, second := newGated(t), newGated(t)
	close(first.gate)
	close(second.gate)
	dev := devtest.Must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDevice(first)))
	old := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), addKernel()))
	close(first.lost)
	check(t, dev.Reopen(t.Context(), gpu.WithDevice(second)))
	k := devtest.Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), addKernel()))
	check(t, errors.Join(old.Close(), old.Close()))
	if s := dev.Stats(); s.Kernels != 1 {
		t.Errorf("%+v", s)
	}
	b := devtest.Must[*gpu.Buffer](t)(dev.NewBuffer(256))
	check(t, b.Clear(0, 256))
	check(t, k.Dispatch([3]uint32{1, 1, 1}, params(7, 64, 0, 0), gpu.Arg{Buffer: b}))
	if v := words(t, b, 64)[63]; v != 7 {
		t.Errorf("%d", v)
	}
	check(t, k.Close())
	if len(first.freed)+len(second.freed) != 1 || dev.Stats().Kernels != 0 {
		t.Errorf("freed %d and %d; %+v", len(first.freed), len(second.freed), dev.Stats())
	}
	check(t, dev.Close())
	check(t, k.Close())
}

// TestKernelMisuse uses kernels that are none.
func TestKernelMisuse(t *testing.T) {
	var none *gpu.Kernel
	for _, k := range []*gpu.Kernel{none, {}} {
		k.CountHit()
		if err := k.Dispatch([3]uint32{1, 1, 1}, nil); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("%v", err)
		}
		check(t, k.Close())
	}
	dev := devtest.Open(t, "cpu")
	var noContext context.Context
	if _, err := dev.Kernel(noContext, addKernel()); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("nil context: %v", err)
	}
}

// TestNBodyLeavesNothing wants the benchmark to give back what it made on a device of the caller's.
func TestNBodyLeavesNothing(t *testing.T) {
	devtest.EachGPU(t, func(t *testing.T, dev *gpu.Device) {
		devtest.Must[float64](t)(gpu.NBody(t.Context(), dev))
		if s := dev.Stats(); s.Kernels != 0 || s.Buffers != 0 || s.Compilations != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// BenchmarkDispatch is what a launch of the smallest kernel costs the caller, submissions included.
func BenchmarkDispatch(b *testing.B) {
	for _, name := range devtest.Drivers() {
		b.Run(name, func(b *testing.B) {
			dev := devtest.Open(b, name)
			k := devtest.Must[*gpu.Kernel](b)(dev.Kernel(b.Context(), addKernel()))
			mem := devtest.Must[*gpu.Buffer](b)(dev.NewBuffer(256))
			defer func() { check(b, mem.Close()) }()
			b.Cleanup(func() { check(b, errors.Join(mem.Close(), k.Close())) })
			block := params(1, 1, 0, 0)
			n := 0
			for b.Loop() {
				check(b, k.Dispatch([3]uint32{1, 1, 1}, block, gpu.Arg{Buffer: mem}))
				if n++; n%200 == 0 {
					b.StopTimer()
					check(b, dev.Sync(b.Context()))
					b.StartTimer()
				}
			}
		})
	}
}
