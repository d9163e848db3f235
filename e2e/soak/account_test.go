// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"weak"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// account knows what there was before the first walk, and what there is after each.
type account struct {
	t          *testing.T
	dir        string
	goroutines int
	files      int
	lost       int
	heap       []int
	resident   []int
}

func newAccount(t *testing.T, dir string) *account {
	return &account{t: t, dir: dir, goroutines: runtime.NumGoroutine()}
}

// released reports whether devices and releases are what they should be after everything was closed.
func (w *world) released() bool {
	for _, d := range w.devs {
		if st := d.Stats(); st.LiveBytes != 0 || st.Buffers != 0 {
			return false
		}
	}
	for _, p := range w.players {
		for _, r := range p.roots {
			if r.released.Load() < r.releases {
				return false
			}
		}
	}
	return true
}

// settle fails unless nothing is left of a walk. What the first one leaves in the platform stays, such as its threads.
func (a *account) settle(w *world) {
	t := a.t
	t.Helper()
	devtest.Settles(w.released)
	for _, p := range w.players {
		for _, r := range p.roots {
			if n := r.released.Load(); n != r.releases {
				t.Errorf("seed %d: memory was released %d times, want %d: %s", w.seed, n, r.releases, r.made)
			}
		}
	}
	for _, d := range w.devs {
		if st := d.Stats(); st.LiveBytes != 0 || st.Buffers != 0 {
			t.Errorf("seed %d: %s has %d bytes in %d buffers", w.seed, d.name, st.LiveBytes, st.Buffers)
		}
		if err := d.Close(); err != nil {
			t.Errorf("seed %d: closing %s: %v", w.seed, d.name, err)
		}
		if st := d.Stats(); st.Kernels != 0 || st.PooledBytes != 0 {
			t.Errorf("seed %d: closed, %s has %d kernels and %d bytes", w.seed, d.name, st.Kernels, st.PooledBytes)
		}
	}
	var devices []weak.Pointer[gpu.Device]
	for _, d := range w.devs {
		devices = append(devices, weak.Make(d.Device))
	}
	a.lost += w.lost
	*w = world{seed: w.seed}
	if !devtest.Settles(func() bool {
		return !slices.ContainsFunc(devices, func(d weak.Pointer[gpu.Device]) bool { return d.Value() != nil })
	}) {
		t.Errorf("seed %d: something keeps devices", w.seed)
	}
	devtest.Settles(func() bool {
		return runtime.NumGoroutine() <= a.goroutines && (a.heap == nil || openFiles() <= a.files)
	})
	if a.heap == nil {
		a.files = openFiles()
	}
	if n := runtime.NumGoroutine(); n > a.goroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("seed %d: %d goroutines, %d before\n%s", w.seed, n, a.goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if n := openFiles(); n > a.files {
		t.Errorf("seed %d: %d open files, %d before", w.seed, n, a.files)
	}
	if left, err := os.ReadDir(a.dir); err != nil || len(left) > 0 {
		t.Errorf("seed %d: files are left: %v %v", w.seed, left, err)
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	a.heap, a.resident = append(a.heap, int(m.HeapAlloc)), append(a.resident, resident())
	t.Logf("seed %d: %d KiB of Go's heap, %d KiB resident, %d devices lost, %d goroutines", w.seed, m.HeapAlloc>>10, resident()>>10, a.lost, runtime.NumGoroutine())
}

// finish compares Go's memory after the walks of the second half with that after the first.
func (a *account) finish() {
	if n := len(a.heap); n >= 8 {
		if first, second := median(a.heap[n/8:n/2]), median(a.heap[n/2:]); second > first+2<<20 {
			a.t.Errorf("Go's heap has %d bytes in the second half of %d walks, %d in the first\n%v", second, n, first, a.heap)
		}
	}
}

// TestSameWalk makes one walk again and again: what is resident of the process grows with the first ones, as memory gets holes, and not
// for ever. Other walks need other memory, which tells nothing.
func TestSameWalk(t *testing.T) {
	const seed, most = 3000, 24 << 20 // no native device is lost, of which the driver never gives everything back
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	a := newAccount(t, dir)
	for range max(devtest.Times(1), 4) {
		a.settle(walk(t, seed, rounds, roundSteps, dir))
	}
	if n := len(a.resident); a.resident[n-1] > a.resident[n/2]+most {
		t.Errorf("resident after each walk: %v", a.resident)
	}
}

func median(s []int) int {
	s = slices.Sorted(slices.Values(s))
	return s[len(s)/2]
}

// openFiles counts the process's open files, where the system lists them.
func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// resident returns the bytes of the process in memory, where the system says so.
func resident() int {
	b, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n * os.Getpagesize()
}
