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

// affordable reports whether the system can give the process so many bytes. Where it cannot, what the program no longer uses goes back
// to the system first.
func affordable(size uint64) bool {
	if size <= free(0) {
		return true
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return size <= free(m.HeapIdle)
}

// free returns how many bytes the process can still get, as far as the system tells: of the machine's memory, of its control group's,
// and of its address space where that is limited, besides the idle part of it, which the runtime keeps.
func free(idle uint64) uint64 {
	n := kilobytes("/proc/meminfo", "MemAvailable:")
	if most, used := number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current"); used < most {
		n = min(n, most-used)
	}
	var addresses syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &addresses) == nil && addresses.Cur < math.MaxInt64 {
		used := kilobytes("/proc/self/status", "VmSize:")
		n = min(n, addresses.Cur-min(addresses.Cur, used)+idle)
	}
	return n
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
