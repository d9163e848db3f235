// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestByteOrder wants devices, and files of Go numbers, on little-endian machines, and ErrUnsupported on others. The long test runs on one
// of the others, too.
func TestByteOrder(t *testing.T) {
	fits := func(what string, err error) {
		t.Helper()
		if little := binary.NativeEndian.Uint16([]byte{1, 0}) == 1; little && err != nil || !little && !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	dev, err := gpu.Open(t.Context(), gpu.WithDriver("cpu"))
	fits("Open", err)
	if err == nil {
		check(t, dev.Close())
	}
	for _, err := range gpu.Adapters(t.Context()) {
		fits("Adapters", err)
	}
	_, err = gpu.Select(t.Context()).Driver("cpu").Adapters()
	fits("Select", err)
	list, err := cpu.New().Adapters(t.Context())
	check(t, err)
	own, err := list[0].Open(t.Context())
	check(t, err)
	dev, err = gpu.Open(t.Context(), gpu.WithDevice(own))
	fits("WithDevice", err)
	if err == nil {
		check(t, dev.Close())
	}
	var file bytes.Buffer
	fits("Write", npy.Write(&file, npy.Header{Type: dtype.Float32, Shape: []int64{1}}, []float32{1}))
	r, err := npy.NewReader(bytes.NewReader([]byte(oneFloat)), -1)
	check(t, err)
	_, err = npy.Read[float32](r)
	fits("Read", err)
	if devtest.Long() && os.Getenv(emulated) == "" {
		t.Run("s390x", emulate)
	}
}

// oneFloat is a file of a single number.
const oneFloat = "\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}              \n\x00\x00\x80\x3f"

// emulated is a variable that is set where a test runs in an emulator.
const emulated = "SUBLET_TEST_EMULATED"

// emulate runs TestByteOrder on an emulated big-endian machine.
func emulate(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gpu.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=s390x", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), "qemu-s390x", program, "-test.run=^TestByteOrder$", "-test.v")
	run.Env = append(os.Environ(), emulated+"=1")
	out, err := run.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestByteOrder")) {
		t.Fatalf("%v\n%s", err, out)
	}
}
