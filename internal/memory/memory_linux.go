// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
)

// affordable reports whether the system can give the process so many bytes, and so many addresses besides. Where it cannot, what the
// program no longer uses goes back to the system first; its addresses stay with the runtime, for memory that is ours.
func affordable(size, addresses uint64, ours bool) bool {
	enough := func(idle uint64) bool { return size <= freeBytes() && size+addresses <= freeAddresses(idle) }
	if enough(0) {
		return true
	}
	debug.FreeOSMemory()
	if !ours {
		return enough(0)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return enough(m.HeapIdle)
}

func hasBytes(size uint64) bool { return size <= freeBytes() }

// occupy maps all addresses that are free, but for a few.
func occupy(few uint64) (release func()) {
	n := freeAddresses(0)
	if n <= few || n == math.MaxUint64 {
		return func() {}
	}
	const flags = syscall.MAP_ANON | syscall.MAP_PRIVATE | syscall.MAP_NORESERVE
	b, err := syscall.Mmap(-1, 0, int(n-few), syscall.PROT_NONE, flags)
	if err != nil {
		return func() {}
	}
	return func() { _ = syscall.Munmap(b) }
}

// freeBytes returns how much memory there is still, as far as the system tells, in the machine and in the process's control group.
func freeBytes() uint64 {
	n := kilobytes("/proc/meminfo", "MemAvailable:")
	if most, used := number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current"); used < most {
		n = min(n, most-used)
	}
	return n
}

// freeAddresses returns what is left of the process's address space where that is limited, and of it the idle part, which the runtime
// keeps.
func freeAddresses(idle uint64) uint64 {
	var addresses syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &addresses) == nil && addresses.Cur < math.MaxInt64 {
		return addresses.Cur - min(addresses.Cur, kilobytes("/proc/self/status", "VmSize:")) + idle
	}
	return math.MaxUint64
}

// kilobytes reads a line of a file of the system's.
func kilobytes(file, name string) uint64 {
	text, _ := os.ReadFile(file)
	_, text, _ = bytes.Cut(text, []byte(name))
	text, _, _ = bytes.Cut(text, []byte("kB"))
	if n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 53); err == nil {
		return n << 10
	}
	return math.MaxUint64
}

// number reads a file of the system's.
func number(file string) uint64 {
	text, _ := os.ReadFile(file)
	if n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64); err == nil {
		return n
	}
	return math.MaxUint64
}
