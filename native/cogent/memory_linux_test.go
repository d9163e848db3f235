// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package cogent

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Running out of memory is an error. The limit that brings it about on a software adapter is for the whole process, so
// this takes another process.
func TestOutOfMemory(t *testing.T) {
	const mark = "COGENT_TEST_OUT_OF_MEMORY"
	if os.Getenv(mark) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestOutOfMemory$")
		child.Env = append(os.Environ(), mark+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	d := openDevice(t)
	healthy(t, d, 1)
	size := min(d.Info().Limits.MaxBufferSize, 1<<32) &^ 4095
	if d.Info().Kind == driver.KindCPU {
		must(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: addressSpace(t) + size*3/2, Max: 1 << 50}))
	}
	var err error
	id := driver.BufferID(10)
	for err == nil && id < 10000 {
		id++
		err = d.NewBuffer(id, size, false)
	}
	if !errors.Is(err, driver.ErrNoMemory) {
		t.Errorf("after %d buffers: got error %v, want %v", id-11, err, driver.ErrNoMemory)
	}
	for i := driver.BufferID(11); i < id; i++ {
		d.FreeBuffer(i)
	}
	must(t, d.Wait(t.Context()))
	must(t, d.NewBuffer(id, 4, false)) // the id is still free
	healthy(t, d, 100)
}

// addressSpace returns how many bytes of it the process has taken.
func addressSpace(t *testing.T) uint64 {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	pages, err := strconv.ParseUint(strings.Fields(string(statm))[0], 10, 64)
	must(t, err)
	return pages * uint64(os.Getpagesize())
}
