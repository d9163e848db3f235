// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

func init() {
	cases = append(cases,
		testCase{"OutOfMemory", testOutOfMemory},
		testCase{"MemoryInSmallSteps", testMemoryInSmallSteps},
		testCase{"KernelsWithoutWork", testKernelsWithoutWork},
		testCase{"Listings", testListings},
		testCase{"MapTakesPart", testMapTakesPart},
		testCase{"LostMemory", testLostMemory},
		testCase{"OpenGL", testOpenGL},
	)
}

// Running out of memory is an error. The limit that brings it about on a software adapter is for the whole process, so
// this takes another process.
func testOutOfMemory(t *testing.T, bench *Bench) {
	const mark = "SUBLET_OUT_OF_MEMORY"
	if os.Getenv(mark) == "" {
		child := exec.Command(os.Args[0], again(t))
		child.Env = append(os.Environ(), mark+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	d := bench.open(t)
	healthy(t, d, 1)
	size := min(d.Info().Limits.MaxBufferSize, 1<<32) &^ 4095
	if d.Info().Kind == driver.KindCPU {
		must(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: statm(t, 0) + size*3/2, Max: 1 << 50}))
	}
	var err error
	id := driver.BufferID(10)
	for err == nil && id < 10000 {
		id++
		err = d.NewBuffer(id, size, false)
	}
	if !errors.Is(err, fault.ErrNoMemory) {
		t.Errorf("after %d buffers: got error %v, want %v", id-11, err, fault.ErrNoMemory)
	}
	for i := driver.BufferID(11); i < id; i++ {
		d.FreeBuffer(i)
	}
	must(t, d.Wait(t.Context()))
	must(t, d.NewBuffer(id, 4, false)) // the id is still free
	healthy(t, d, 100)
}

// The end of memory that is taken in steps of any size, with work in between, is an error: not that of the process, which may also
// want a little memory for itself. What is freed can be had again.
func testMemoryInSmallSteps(t *testing.T, bench *Bench) {
	const mark = "SUBLET_SMALL_STEPS"
	if os.Getenv(mark) == "" {
		sizes := []int{0}
		if long() {
			sizes = append(sizes, 64<<10, 256<<10, 1<<20, 16<<20)
		}
		for _, size := range sizes {
			child := exec.Command(os.Args[0], again(t))
			child.Env = append(os.Environ(), mark+"="+strconv.Itoa(size))
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("steps of %d bytes: %v\n%s", size, err, out[max(0, len(out)-3000):])
			}
		}
		return
	}
	size, err := strconv.Atoi(os.Getenv(mark))
	must(t, err)
	d := bench.open(t)
	healthy(t, d, 1)
	if d.Info().Kind != driver.KindCPU {
		return // a GPU's memory is not the process's, and not this test's to take
	}
	must(t, d.NewKernel(t.Context(), 3, &bump))
	must(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: statm(t, 0) + 5<<28, Max: 1 << 50}))
	for round := range 2 {
		taken, n := takeAll(t, d, size)
		if t.Logf("%d bytes in %d buffers", taken, n); taken < 128<<20 {
			t.Errorf("round %d: only %d bytes could be taken", round, taken)
		}
		want(t, d, 11, []uint32{8, 9}) // what is there can be used
		for id := range driver.BufferID(n) {
			d.FreeBuffer(11 + id)
		}
		must(t, d.Wait(t.Context()))
		healthy(t, d, uint32(20000+10*round))
	}
}

// takeAll takes memory until there is none, in buffers of a size or, with 0, of many sizes. Each is written and worked on.
func takeAll(t *testing.T, d driver.Device, size int) (taken, n int) {
	t.Helper()
	for err := error(nil); ; n++ {
		id, bytes := driver.BufferID(11+n), size
		if size == 0 {
			bytes = 64 << 10 << (n % 9)
		}
		if err = d.NewBuffer(id, uint64(bytes), false); err == nil {
			taken += bytes
			var l driver.CommandList
			l.Write(id, 0, driver.HostBytes(bytesOf(ramp(bytes/4, 7))))
			l.Bind(1000, bump.Layout, []driver.Binding{whole(id, bytes/4)})
			l.Dispatch(3, 1000, [3]uint32{1, 1, 1}, nil)
			l.Unbind(1000)
			err = d.Submit(&l)
		}
		if err == nil && n%16 == 0 {
			_, err = read(t.Context(), d, id, bytes/4)
		}
		if err != nil {
			if !errors.Is(err, fault.ErrNoMemory) || d.LostReason() != "" {
				t.Errorf("after %d bytes in %d buffers: got error %v, want %v", taken, n, err, fault.ErrNoMemory)
			}
			return taken, n + 1
		}
	}
}

// The library gives kernels back when something is submitted. Programs that only compile must not wait for that.
func testKernelsWithoutWork(t *testing.T, bench *Bench) {
	d := bench.open(t)
	compile := func(n int) {
		for range n {
			source := "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n" +
				"@compute @workgroup_size(1) fn main() { x[0] = 1u; }"
			k := &driver.Kernel{Source: source, Entry: "main", Layout: driver.NewLayout(driver.AccessReadWrite)}
			must(t, d.NewKernel(t.Context(), 1, k))
			d.FreeKernel(1)
		}
	}
	compile(500)
	resident := statm(t, 1)
	compile(3000)
	if grown := int64(statm(t, 1)) - int64(resident); grown > 48<<20 {
		t.Errorf("3000 kernels that are gone take %d bytes", grown)
	}
}

// The library takes a megabyte for each listing of its adapters, of which the garbage collector knows nothing.
func testListings(t *testing.T, bench *Bench) {
	list := func(n int) {
		for range n {
			_, err := bench.Driver.Adapters(t.Context())
			must(t, err)
		}
	}
	list(10)
	resident := statm(t, 1)
	list(100)
	if grown := int64(statm(t, 1)) - int64(resident); grown > 48<<20 {
		t.Errorf("100 listings take %d bytes", grown)
	}
}

// A software adapter takes memory for what is mapped, not for the buffer that it is a part of.
func testMapTakesPart(t *testing.T, bench *Bench) {
	if !mapsStorage(t, bench) {
		return
	}
	const size, part = 1 << 30, 32 << 20
	d := bench.open(t)
	must(t, d.NewBuffer(1, size, true))
	resident := statm(t, 1)
	b, err := d.Map(t.Context(), 1, size/2, part)
	must(t, err)
	for i := 0; i < part; i += 4096 {
		if b[i] != 0 {
			t.Fatalf("byte %d of new memory is %d", i, b[i])
		}
		b[i] = 1
	}
	grown := int64(statm(t, 1) - resident)
	must(t, d.Unmap(1))
	if grown > 4*part { // a GPU's own memory does not count
		t.Errorf("mapping %d of %d bytes took %d", part, size, grown)
	}
}

// testLostMemory loses devices of a software adapter, each with buffers, a kernel, and work under way: all of it is released.
func testLostMemory(t *testing.T, bench *Bench) {
	before := runtime.NumGoroutine()
	lose := func() {
		d := bench.open(t)
		must(t, d.NewBuffer(1, 1<<20, false))
		must(t, d.NewBuffer(2, 1<<20, false))
		write(t, d, make([]uint32, 1<<18))
		must(t, d.NewKernel(t.Context(), 1, &bump))
		var l driver.CommandList
		l.Bind(1, bump.Layout, []driver.Binding{whole(1, 1<<18)})
		l.Dispatch(1, 1, groups(1<<18), nil)
		l.Copy(2, 0, 1, 0, 1<<20)
		must(t, d.Submit(&l))
		core.Inspect(d).Lose()
		lost(t, d)
		must(t, d.Close())
	}
	if d := bench.open(t); d.Info().Kind != driver.KindCPU {
		return // a GPU's lost device stays
	}
	var start uint64
	const warmUp = 10
	n := min(times(30), 200)
	for i := range warmUp + n {
		if i == warmUp {
			settled(t, before)
			start = statm(t, 1)
		}
		lose()
	}
	settled(t, before)
	grown := int64(statm(t, 1) - start)
	if t.Logf("%d lost devices, %d bytes", n, grown); grown > int64(n)*(2<<20) {
		t.Errorf("%d lost devices keep %d bytes", n, grown)
	}
}

// statm returns a field of the process's statistics of memory in bytes: 0 is its address space, 1 what of it is in memory.
func statm(t *testing.T, field int) uint64 {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	pages, err := strconv.ParseUint(strings.Fields(string(statm))[field], 10, 64)
	must(t, err)
	return pages * uint64(os.Getpagesize())
}
