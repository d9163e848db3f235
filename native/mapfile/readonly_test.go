// SPDX-License-Identifier: Apache-2.0

package mapfile_test

import (
	"errors"
	"os"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/mapfile"
)

// TestReadOnly tries everything that writes on matrices of a read-only mapping. A single byte written there would end the
// test with SIGSEGV.
func TestReadOnly(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		path := write(t, 0, ramp(16))
		f := must[*mapfile.File](t)(mapfile.Open(path))
		m := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, 4, 4))
		owned := must[*dense](t)(matrix.FromSlice(dev, 4, 4, make([]float32, 16)))
		if !m.Buffer().ReadOnly() || owned.Buffer().ReadOnly() {
			t.Error("the wrong matrix is read-only")
		}
		nothing := func([]float32) error { t.Error("called"); return nil }
		writes := map[string]func() error{
			"element-wise":   func() error { return m.Assign(matrix.Add(owned, owned)) },
			"itself":         func() error { return m.Assign(matrix.Scale(2, m)) },
			"product":        func() error { return m.Mul(owned, owned) },
			"own product":    func() error { return m.Mul(m, m.T()) },
			"softmax":        func() error { return m.Assign(matrix.Softmax(owned)) },
			"copy":           func() error { return m.Assign(owned) },
			"fill":           func() error { return m.Fill(1) },
			"transpose":      func() error { return m.T().Assign(owned) },
			"view":           func() error { return m.Slice(1, 3, 1, 3).Fill(1) },
			"reduction":      func() error { return m.Row(2).Assign(matrix.SumCols(owned)) },
			"alias":          func() error { return m.Alias().Zero() },
			"set all":        func() error { return m.SetSlice(make([]float32, 16)) },
			"set one":        func() error { return m.Set(1, 1, 1) },
			"access":         func() error { return m.Access(t.Context(), buffer.Writes, nothing) },
			"buffer write":   func() error { return m.Buffer().Write(4, gpu.HostBytes(make([]byte, 4))) },
			"buffer":         func() error { _, err := m.Buffer().Memory(buffer.Replaces); return err },
			"read by region": func() error { return readRegion(t, f, m.Buffer()) },
		}
		for round := range 2 { // before and after the matrix is on the device
			for name, try := range writes {
				if err := try(); !errors.Is(err, gpu.ErrReadOnly) {
					t.Errorf("%s: %v, want %v", name, err, gpu.ErrReadOnly)
				}
			}
			if l := m.Buffer().Location(); l != []buffer.Location{buffer.Host, buffer.Both}[round] {
				t.Errorf("round %d: the bits are on %v", round, l)
			}
			check(t, errors.Join(m.Sync(t.Context()), m.Touch(), m.Sync(t.Context())))
			same(t, m, ramp(16)...)
			check(t, owned.Assign(matrix.Scale(1, m)))
			same(t, owned, ramp(16)...)
			check(t, m.Access(t.Context(), buffer.Reads, func(v []float32) error {
				if v[3] != 3.5 {
					t.Errorf("access to %v", v)
				}
				return nil
			}))
		}
		check(t, errors.Join(m.Close(), owned.Close(), f.Flush(), f.Close()))
		if now := must[[]byte](t)(os.ReadFile(path)); string(now) != string(bytesOf(ramp(16))) {
			t.Error("the file changed")
		}
	})
}

func readRegion(t *testing.T, f *mapfile.File, b *buffer.Buffer) error {
	mem, release, err := f.Share(0)
	check(t, err)
	defer release()
	return b.Read(t.Context(), buffer.Region{Width: 8, Pitch: 16, Count: 2}, mem, 4)
}

// TestWrittenAccess lets the CPU write into a writable mapping.
func TestWrittenAccess(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		path := write(t, 0, ramp(4))
		f := must[*mapfile.File](t)(mapfile.OpenWritable(path))
		m := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, 2, 2))
		check(t, m.Access(t.Context(), buffer.Writes, func(v []float32) error { v[2] = -1; return nil }))
		check(t, m.Assign(matrix.Scale(2, m)))
		check(t, errors.Join(m.Sync(t.Context()), f.Flush(), m.Close(), f.Close()))
		if now := must[[]byte](t)(os.ReadFile(path)); string(now) != string(bytesOf([]float32{1, 3, -2, 7})) {
			t.Errorf("the file holds % x", now)
		}
	})
}

// TestRelease gives a release function of the caller's beside the package's own: both are called.
func TestRelease(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		path := write(t, 0, ramp(4))
		f := must[*mapfile.File](t)(mapfile.Open(path))
		released := 0
		m := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, 2, 2, matrix.Options{Release: func() { released++ }}))
		check(t, errors.Join(f.Close(), m.Close(), m.Close()))
		if released != 1 {
			t.Errorf("released %d times", released)
		}
		unmapped(t, path)
	})
}
