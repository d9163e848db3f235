// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// meanwhile is a driver's device with which something happens once, at the end of a submission.
type meanwhile struct {
	driver.Device
	do func()
}

func (m *meanwhile) Submit(l *driver.CommandList) error {
	err := m.Device.Submit(l)
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return err
}

// TestImportedAgain imports a buffer again that was closed but not yet freed, as work of others was queued meanwhile.
func TestImportedAgain(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := devtest.Must[*gpu.Buffer](t)
		var m *meanwhile
		gpu.Wrap(dev, func(drv driver.Device) driver.Device {
			m = &meanwhile{Device: drv}
			return m
		})
		theirs, other := must(dev.NewBuffer(16)), must(dev.NewBuffer(16))
		first := must(dev.ImportBuffer(theirs.Handle()))
		for range 3 {
			check(t, first.Clear(0, 16))
			m.do = func() { check(t, other.Clear(0, 16)) } // waits in the batch
			check(t, first.Close())
			first = must(dev.ImportBuffer(theirs.Handle()))
		}
		check(t, dev.Flush())
		fresh := must(dev.NewBuffer(1 << 10)) // takes the number of a buffer that was freed
		check(t, errors.Join(fresh.Clear(0, 1<<10), first.Write(0, gpu.HostBytes(bytes.Repeat([]byte{7}, 16)))))
		if v := words(t, first, 4); v[3] != 0x07070707 {
			t.Errorf("imported again it holds %#x", v)
		}
		check(t, errors.Join(first.Close(), fresh.Close(), theirs.Close(), other.Close()))
	})
}

// TestImportedByMany has goroutines import buffers over and over, two of them the same one, beside one that does work of its own.
func TestImportedByMany(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := devtest.Must[*gpu.Buffer](t)
		one, two, own := must(dev.NewBuffer(64)), must(dev.NewBuffer(64)), must(dev.NewBuffer(64))
		handles := []any{one.Handle(), one.Handle(), two.Handle()}
		var importers, others sync.WaitGroup
		for g, handle := range handles {
			importers.Go(func() {
				for i := range 200 {
					if v, err := throughImport(t, dev, handle, uint64(16*g), byte(i)); err != nil || v != byte(i) {
						t.Errorf("goroutine %d, import %d: %d, %v", g, i, v, err)
						return
					}
				}
			})
		}
		done := make(chan struct{})
		others.Go(func() {
			for open := true; open; {
				if err := own.Clear(0, 64); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Microsecond) // in a page, others go on only then
				select {
				case <-done:
					open = false
				default:
				}
			}
		})
		importers.Wait()
		close(done)
		others.Wait()
		check(t, errors.Join(own.Close(), one.Close(), two.Close()))
	})
}

// throughImport writes a byte to an imported buffer and reads it.
func throughImport(t *testing.T, dev *gpu.Device, handle any, offset uint64, v byte) (byte, error) {
	b, err := dev.ImportBuffer(handle)
	if err != nil {
		return 0, err
	}
	if b.Identity() == 0 {
		t.Error("it has no identity")
	}
	got := make([]byte, 16)
	err = errors.Join(
		b.Write(offset, gpu.HostBytes(bytes.Repeat([]byte{v}, 16))),
		b.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(got), Offset: offset, Width: 16, Count: 1}),
		b.Close())
	return got[15], err
}

// mappedSize is that of memory which the system takes back when it is freed.
const mappedSize = 1 << 20

// onMapped runs a test on every device that has mappable buffers.
func onMapped(t *testing.T, test func(t *testing.T, dev *gpu.Device, b *gpu.Buffer)) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		if dev.Info().Features.Has(driver.FeatureMappable) {
			test(t, dev, devtest.Must[*gpu.Buffer](t)(dev.NewMappable(mappedSize)))
		}
	})
}

// TestCloseDeviceMapped closes a device, or has another goroutine close it, while a function uses memory of it.
func TestCloseDeviceMapped(t *testing.T) {
	for name, run := range map[string]func(func()){
		"inside":  func(f func()) { f() },
		"outside": func(f func()) { var g sync.WaitGroup; g.Go(f); g.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			onMapped(t, func(t *testing.T, dev *gpu.Device, b *gpu.Buffer) {
				err := b.Map(t.Context(), 0, mappedSize, func(m []byte) error {
					run(func() {
						if err := dev.Close(); err != nil {
							t.Error(err)
						}
					})
					for i := range m {
						m[i] = byte(i)
					}
					if m[mappedSize-1] != 255 {
						t.Error("the memory does not keep what is written")
					}
					return nil
				})
				if !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("Map: %v, want %v", err, gpu.ErrClosed)
				}
			})
		})
	}
}

// TestCloseMapped closes a buffer while a function uses its memory, which no other buffer may have before the function returns.
func TestCloseMapped(t *testing.T) {
	onMapped(t, func(t *testing.T, dev *gpu.Device, b *gpu.Buffer) {
		var others []*gpu.Buffer
		check(t, b.Map(t.Context(), 0, mappedSize, func(m []byte) error {
			check(t, errors.Join(b.Close(), dev.Sync(t.Context())))
			for range 4 {
				n := devtest.Must[*gpu.Buffer](t)(dev.NewMappable(mappedSize))
				check(t, n.Clear(0, mappedSize))
				others = append(others, n)
			}
			check(t, dev.Sync(t.Context()))
			for i := range m {
				m[i] = 0xee
			}
			return nil
		}))
		for _, n := range others {
			if v := words(t, n, 4); v[3] != 0 {
				t.Errorf("another buffer holds %#x", v)
			}
			check(t, n.Close())
		}
		if err := b.Map(t.Context(), 0, 4, func([]byte) error { return nil }); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("Map: %v, want %v", err, gpu.ErrClosed)
		}
		if s := dev.Stats(); s.LiveBytes != 0 || s.Buffers != 0 {
			t.Errorf("%d bytes of %d buffers are left", s.LiveBytes, s.Buffers)
		}
	})
}
