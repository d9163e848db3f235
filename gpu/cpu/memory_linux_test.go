// SPDX-License-Identifier: Apache-2.0

// The race detector keeps a shadow of all memory, for which the limit leaves no room.

//go:build !race

package cpu_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// More than the system has is an error, and what was freed can be had again. The limit that brings this about is for the whole
// process, so this takes another one.
func TestSystemMemory(t *testing.T) {
	const mark = "SUBLET_TEST_SYSTEM_MEMORY"
	if os.Getenv(mark) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestSystemMemory$")
		child.Env = append(os.Environ(), mark+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.3000s", err, out)
		}
		return
	}
	dev := open(t, 0)
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, size, _ := bytes.Cut(status, []byte("VmSize:"))
	size, _, _ = bytes.Cut(size, []byte("kB"))
	used, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 10, 64)
	must(t, err)
	must(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: used<<10 + 1<<30, Max: 1 << 50}))
	want(t, dev.NewBuffer(1, 1<<30, false), fault.ErrNoMemory)
	for _, each := range []uint64{64 << 20, 100 << 10} { // large and small
		n := driver.BufferID(0)
		for err = error(nil); err == nil && n < 1<<14; {
			n++
			err = dev.NewBuffer(n, each, false)
		}
		if !errors.Is(err, fault.ErrNoMemory) || uint64(n)*each < 256<<20 {
			t.Errorf("after %d buffers of %d bytes: %v", n, each, err)
		}
		for id := range n {
			dev.FreeBuffer(id + 1)
		}
	}
	must(t, dev.NewBuffer(1, 64<<20, false))
	data, list := make([]byte, 64<<20), new(driver.CommandList)
	for range 14 {
		list.Write(1, 0, driver.HostBytes(data))
	}
	want(t, dev.Submit(list), fault.ErrNoMemory)
	list.Reset()
	list.Write(1, 0, driver.HostBytes(data))
	must(t, dev.Submit(list))
	must(t, dev.Wait(t.Context()))
}
