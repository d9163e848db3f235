// SPDX-License-Identifier: Apache-2.0

package mapfile_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/mapfile"
)

var (
	onDevices = devtest.Each
	check     = devtest.Check
)

func must[V any](t testing.TB) func(V, error) V { return devtest.Must[V](t) }

type dense = matrix.Dense[float32]

// bytesOf returns numbers as they stand in a file.
func bytesOf(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func ramp(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i) + 0.5
	}
	return v
}

// write makes a file of skip bytes and the numbers.
func write(t testing.TB, skip int, v []float32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "numbers")
	head := []byte(strings.Repeat("header", skip/6+1)[:skip])
	check(t, os.WriteFile(path, append(head, bytesOf(v)...), 0o600))
	return path
}

func same(t testing.TB, m *dense, want ...float32) {
	t.Helper()
	if got := must[[]float32](t)(m.Read(t.Context())); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func second[V any](_ V, err error) error { return err }

// TestNumbers reads a file with a header through matrices of all layouts, on both sides.
func TestNumbers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const header = 128
		path := write(t, header, ramp(20))
		whole := must[*mapfile.File](t)(mapfile.Open(path))
		for _, c := range []struct {
			name       string
			offset     int64
			rows, cols int
			opts       matrix.Options
			want       []float32
		}{
			{"rows", header, 2, 3, matrix.Options{}, []float32{0.5, 1.5, 2.5, 3.5, 4.5, 5.5}},
			{"columns", header, 2, 3, matrix.Options{ColMajor: true}, []float32{0.5, 2.5, 4.5, 1.5, 3.5, 5.5}},
			{"stride", header + 4, 2, 3, matrix.Options{Stride: 10}, []float32{1.5, 2.5, 3.5, 11.5, 12.5, 13.5}},
			{"offset", 0, 1, 2, matrix.Options{Offset: header/4 + 18}, []float32{18.5, 19.5}},
			{"to the end", header + 8, 3, 6, matrix.Options{}, ramp(20)[2:]},
			{"nothing", header + 80, 0, 4, matrix.Options{}, nil},
		} {
			m, err := mapfile.Wrap[float32](dev, whole, c.offset, c.rows, c.cols, c.opts)
			check(t, err)
			t.Run(c.name, func(t *testing.T) {
				same(t, m, c.want...)
				r := must[*dense](t)(matrix.Scale(2, m).Eval())
				twice := slices.Clone(c.want)
				for i := range twice {
					twice[i] *= 2
				}
				same(t, r, twice...)
				check(t, errors.Join(r.Close(), m.Close()))
			})
		}
		check(t, whole.Close())
	})
}

// TestResults writes results into a file. They are there after Sync and Flush, and nothing else has changed.
func TestResults(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const header = 70000
		path := write(t, header, ramp(12))
		before := must[[]byte](t)(os.ReadFile(path))
		f := must[*mapfile.File](t)(mapfile.OpenWritable(path))
		m := must[*dense](t)(mapfile.Wrap[float32](dev, f, header+12, 2, 2, matrix.Options{Stride: 3}))
		check(t, m.Assign(matrix.Scale(10, m)))
		if now := must[[]byte](t)(os.ReadFile(path)); string(now) != string(before) {
			t.Error("the file changed before Sync")
		}
		check(t, m.Sync(t.Context()))
		check(t, f.Flush())
		want := ramp(12)
		for _, i := range []int{3, 4, 6, 7} {
			want[i] *= 10
		}
		if now := must[[]byte](t)(os.ReadFile(path)); string(now) != string(before[:header])+string(bytesOf(want)) {
			t.Error("the file does not hold the results, or something else")
		}
		// What somebody else writes is seen after Touch.
		other := must[*os.File](t)(os.OpenFile(path, os.O_RDWR, 0))
		_, err := other.WriteAt(bytesOf([]float32{-1}), header+4*3)
		check(t, errors.Join(err, other.Close(), m.Touch()))
		same(t, m, -1, want[4], want[6], want[7])
		check(t, errors.Join(f.Close(), m.Fill(7), m.Sync(t.Context()), m.Close())) // the file is mapped until here
		for _, i := range []int{3, 4, 6, 7} {
			want[i] = 7
		}
		if now := must[[]byte](t)(os.ReadFile(path)); string(now[header:]) != string(bytesOf(want)) {
			t.Error("results were lost at the end")
		}
	})
}

// TestMistakes makes every one. None leaves a share: the files are unmapped by their Close.
func TestMistakes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		dir := t.TempDir()
		empty, path := filepath.Join(dir, "empty"), write(t, 0, ramp(10))
		check(t, os.WriteFile(empty, nil, 0o600))
		open := func(path string) error {
			f, err := mapfile.Open(path)
			if f != nil {
				check(t, f.Close())
			}
			return err
		}
		f := must[*mapfile.File](t)(mapfile.Open(path))
		wrap := func(dev *gpu.Device, f *mapfile.File, offset int64, rows, cols int, opts ...matrix.Options) error {
			m, err := mapfile.Wrap[float32](dev, f, offset, rows, cols, opts...)
			if m != nil {
				check(t, m.Close())
			}
			return err
		}
		share := func(f *mapfile.File, offset int64) error {
			_, release, err := f.Share(offset)
			if release != nil {
				release()
			}
			return err
		}
		closed := must[*mapfile.File](t)(mapfile.Open(path))
		check(t, errors.Join(closed.Close(), closed.Close()))
		var none *mapfile.File
		for _, c := range []struct {
			name string
			err  error
			want error
		}{
			{"no file", open(filepath.Join(dir, "none")), fs.ErrNotExist},
			{"no path", open(""), fs.ErrNotExist},
			{"directory", open(dir), gpu.ErrInvalid},
			{"directory to write", second(mapfile.OpenWritable(dir)), gpu.ErrInvalid},
			{"device", open(os.DevNull), gpu.ErrInvalid},
			{"empty file", open(empty), mapfile.ErrRange},
			{"closed share", share(closed, 0), gpu.ErrClosed},
			{"closed flush", closed.Flush(), gpu.ErrClosed},
			{"closed wrap", wrap(dev, closed, 0, 1, 1), gpu.ErrClosed},
			{"nil share", share(none, 0), gpu.ErrInvalid},
			{"nil flush", none.Flush(), gpu.ErrInvalid},
			{"nil wrap", wrap(dev, none, 0, 1, 1), gpu.ErrInvalid},
			{"zero value", share(&mapfile.File{}, 0), gpu.ErrClosed},
			{"negative share", share(f, -1), gpu.ErrInvalid},
			{"share behind", share(f, 41), mapfile.ErrRange},
			{"wrap behind", wrap(dev, f, 44, 1, 1), mapfile.ErrRange},
			{"misaligned", wrap(dev, f, 2, 1, 1), matrix.ErrAlignment},
			{"too large for the file", wrap(dev, f, 4, 2, 5), buffer.ErrShort},
			{"stride beyond the file", wrap(dev, f, 0, 2, 2, matrix.Options{Stride: 9}), buffer.ErrShort},
			{"bad stride", wrap(dev, f, 0, 2, 2, matrix.Options{Stride: 1}), buffer.ErrStride},
			{"negative dimension", wrap(dev, f, 0, -1, 2), buffer.ErrSize},
			{"nil device", wrap(nil, f, 0, 1, 1), gpu.ErrInvalid},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
			}
		}
		check(t, errors.Join(none.Close(), (&mapfile.File{}).Close(), f.Flush(), share(f, 40)))
		check(t, f.Close())
		unmapped(t, path)
	})
}

// TestGoroutines shares, flushes and closes at the same time.
func TestGoroutines(t *testing.T) {
	path := write(t, 0, ramp(1<<16))
	for range 50 {
		f := must[*mapfile.File](t)(mapfile.OpenWritable(path))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				mem, release, err := f.Share(int64(i) * 4096)
				if err != nil {
					if !errors.Is(err, gpu.ErrClosed) {
						t.Error(err)
					}
					return
				}
				mem.Bytes[100]++
				if err := f.Flush(); err != nil && !errors.Is(err, gpu.ErrClosed) {
					t.Error(err)
				}
				mem.Bytes[100]--
				release()
				release()
			})
		}
		wg.Go(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	}
	unmapped(t, path)
}
