// SPDX-License-Identifier: Apache-2.0

package mapfile_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/mapfile"
)

// mappings counts those of the file.
func mappings(t testing.TB, path string) int {
	t.Helper()
	return strings.Count(string(must[[]byte](t)(os.ReadFile("/proc/self/maps"))), path+"\n")
}

func unmapped(t testing.TB, path string) {
	t.Helper()
	if n := mappings(t, path); n != 0 {
		t.Errorf("the file is still mapped %d times", n)
	}
}

// both are the ways to open a file.
var both = []func(string) (*mapfile.File, error){mapfile.Open, mapfile.OpenWritable}

// TestLife closes matrices, views and files in several orders: the file is mapped until the last of them is closed, and
// no longer.
func TestLife(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		path := write(t, 0, ramp(12))
		for _, open := range both {
			f := must[*mapfile.File](t)(open(path))
			if n := mappings(t, path); n != 1 {
				t.Fatalf("mapped %d times", n)
			}
			a := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, 3, 4))
			b := must[*dense](t)(mapfile.Wrap[float32](dev, f, 16, 1, 2))
			row := a.Row(2)
			check(t, errors.Join(f.Close(), f.Close(), a.Close(), a.Close()))
			same(t, row, 8.5, 9.5, 10.5, 11.5)
			check(t, row.Close())
			same(t, b, 4.5, 5.5)
			if n := mappings(t, path); n != 1 {
				t.Errorf("mapped %d times while a matrix uses it", n)
			}
			check(t, b.Close())
			unmapped(t, path)

			f = must[*mapfile.File](t)(open(path))
			c := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, 3, 4))
			check(t, c.Close())
			if n := mappings(t, path); n != 1 {
				t.Errorf("mapped %d times while the file is open", n)
			}
			check(t, f.Close())
			unmapped(t, path)
		}
	})
}

// TestNothingLeaks opens, wraps, uses and closes a thousand times.
func TestNothingLeaks(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		path := write(t, 0, ramp(12))
		descriptors := func() int { return len(must[[]os.DirEntry](t)(os.ReadDir("/proc/self/fd"))) }
		lines := func() int {
			return strings.Count(string(must[[]byte](t)(os.ReadFile("/proc/self/maps"))), "\n")
		}
		round := func(i int) {
			f := must[*mapfile.File](t)(both[i%2](path))
			m := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, 3, 4))
			v := m.Slice(0, 2, 0, 2)
			s := must[*dense](t)(matrix.Add(v, v).Eval())
			check(t, errors.Join(m.Close(), f.Close(), v.Close(), s.Close()))
		}
		for i := range 10 {
			round(i)
		}
		check(t, dev.Sync(t.Context()))
		goroutines, files, before := runtime.NumGoroutine(), descriptors(), lines()
		for i := range 1000 {
			round(i)
		}
		check(t, dev.Sync(t.Context()))
		unmapped(t, path)
		for range 100 { // the device's own goroutines come and go
			if runtime.NumGoroutine() <= goroutines {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, there were %d", n, goroutines)
		}
		if n := descriptors(); n > files {
			t.Errorf("%d descriptors, there were %d", n, files)
		}
		if n := lines(); n > before+100 { // Go's heap may have grown
			t.Errorf("%d mappings, there were %d", n, before)
		}
		if s := dev.Stats(); s.LiveBytes != 0 || s.Buffers != 0 {
			t.Errorf("%d bytes in %d buffers are live", s.LiveBytes, s.Buffers)
		}
	})
}

// resident returns how many bytes of the process are in memory.
func resident(t testing.TB) int {
	t.Helper()
	statm := must[[]byte](t)(os.ReadFile("/proc/self/statm"))
	return must[int](t)(strconv.Atoi(strings.Fields(string(statm))[1])) * os.Getpagesize()
}

// sparse makes a file of at least 64 GiB, and twice the machine's memory, without contents.
func sparse(t testing.TB) (path string, size int64) {
	t.Helper()
	var info syscall.Sysinfo_t
	check(t, syscall.Sysinfo(&info))
	size = max(64<<30, 2*int64(info.Totalram)*int64(info.Unit)) &^ (1<<20 - 1)
	path = filepath.Join(t.TempDir(), "sparse")
	f := must[*os.File](t)(os.Create(path))
	check(t, errors.Join(f.Truncate(size), f.Close()))
	return path, size
}

// TestLargerThanMemory computes with small parts of a file that does not fit into memory, and writes some.
func TestLargerThanMemory(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n, bytes = 512, 4 * 512 * 512
		path, size := sparse(t)
		f := must[*mapfile.File](t)(mapfile.OpenWritable(path))
		use := func(m *dense, v float32) {
			t.Helper()
			same(t, must[*dense](t)(matrix.Sum(m).Eval()), 0)
			check(t, m.Fill(v))
			check(t, m.Sync(t.Context()))
			same(t, must[*dense](t)(matrix.Sum(m).Eval()), v*n*n)
			check(t, m.Close())
		}
		use(must[*dense](t)(matrix.New[float32](dev, n, n)), 1) // the kernels are compiled now
		before := resident(t)
		for i, offset := range []int64{0, size/2 - 4, size - bytes} {
			use(must[*dense](t)(mapfile.Wrap[float32](dev, f, offset, n, n)), float32(i+2))
		}
		if grown := resident(t) - before; grown > 64<<20 {
			t.Errorf("%d bytes more in memory", grown)
		}
		check(t, errors.Join(f.Flush(), f.Close()))
		file := must[*os.File](t)(os.Open(path))
		var last [4]byte
		_, err := file.ReadAt(last[:], size-4)
		check(t, errors.Join(err, file.Close()))
		if string(last[:]) != string(bytesOf([]float32{4})) {
			t.Errorf("the file ends with %v", last)
		}
	})
}

// TestLargerThanBuffers wraps a whole file that fits neither into a buffer of the device nor into memory, and uses parts.
func TestLargerThanBuffers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		path, size := sparse(t)
		f := must[*mapfile.File](t)(mapfile.OpenWritable(path))
		const cols = 1 << 18
		rows := int(size / 4 / cols)
		m := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, rows, cols))
		for _, i := range []int{0, rows / 2, rows - 4} {
			v := m.RowSlice(i, 4)
			check(t, v.Fill(float32(i%7+1)))
			check(t, v.Sync(t.Context()))
			same(t, must[*dense](t)(matrix.Sum(v).Eval()), float32(i%7+1)*4*cols)
			check(t, v.Close())
		}
		start := m.RowSlice(0, 600) // more than a block, for which the oracle takes half a minute
		if dev.Info().Features.Has(driver.FeatureWGSL) || devtest.Long() {
			same(t, must[*dense](t)(matrix.Sum(start).Eval()), 4*cols)
		}
		if n := dev.Stats().PeakBytes; n > 1200<<20 {
			t.Errorf("%d bytes were live at once", n)
		}
		check(t, errors.Join(start.Close(), m.Close(), f.Close()))
		unmapped(t, path)
	})
}

// TestAddressSpace maps more than the process may address. The limit is for good, so this takes another process.
func TestAddressSpace(t *testing.T) {
	const mark = "MAPFILE_TEST_ADDRESS_SPACE"
	if os.Getenv(mark) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestAddressSpace$")
		child.Env = append(os.Environ(), mark+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	path, size := sparse(t)
	statm := must[[]byte](t)(os.ReadFile("/proc/self/statm"))
	taken := must[int](t)(strconv.Atoi(strings.Fields(string(statm))[0])) * os.Getpagesize()
	limit := uint64(taken) + uint64(size)/2
	check(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}))
	if _, err := mapfile.Open(path); !errors.Is(err, gpu.ErrNoMemory) {
		t.Errorf("got error %v, want %v", err, gpu.ErrNoMemory)
	}
}

// TestTruncated shortens a mapped file. Where Go code reads it, the program can ask for a panic, and go on.
func TestTruncated(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		path := write(t, 0, ramp(64<<10))
		f := must[*mapfile.File](t)(mapfile.Open(path))
		m := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, 1<<8, 1<<8))
		check(t, os.Truncate(path, 1<<12))
		func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				if err, ok := recover().(runtime.Error); !ok {
					t.Errorf("recovered %v, want a fault", err)
				}
			}()
			values, err := m.Read(t.Context())
			t.Errorf("read %d elements, %v", len(values), err)
		}()
		row := m.Row(0)
		same(t, row, ramp(1<<8)...)
		check(t, errors.Join(row.Close(), m.Close(), f.Close()))
		unmapped(t, path)
	})
}

// TestSpecialFiles opens what is no regular file: it neither waits nor succeeds.
func TestSpecialFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	check(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, "/dev/zero"} {
		for _, open := range both {
			if _, err := open(path); !errors.Is(err, gpu.ErrInvalid) {
				t.Errorf("%s: %v, want %v", path, err, gpu.ErrInvalid)
			}
		}
	}
	if _, err := mapfile.Open("/proc/self/maps"); !errors.Is(err, mapfile.ErrRange) {
		t.Errorf("a file without a size: %v, want %v", err, mapfile.ErrRange)
	}
	if _, err := mapfile.Open("/sys/devices/system/cpu/online"); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a file that cannot be mapped: %v, want %v", err, gpu.ErrUnsupported)
	}
	link := filepath.Join(t.TempDir(), "link")
	path := write(t, 0, ramp(1))
	check(t, os.Symlink(path, link))
	f := must[*mapfile.File](t)(mapfile.Open(link))
	check(t, f.Close())
}
