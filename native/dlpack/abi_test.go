// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// member is a scalar of a C structure: n bytes, or a pointer where n is 0.
type member struct {
	name string
	n    int
}

var tensorMembers = []member{
	{"data", 0},
	{"device_type", 4},
	{"device_id", 4},
	{"ndim", 4},
	{"code", 1},
	{"bits", 1},
	{"lanes", 2},
	{"shape", 0},
	{"strides", 0},
	{"byte_offset", 8},
}

// layout places members as a C compiler does that aligns scalars to their size.
func layout(pointer int, members []member) (offsets []int, size int) {
	widest := 1
	for _, m := range members {
		n := m.n
		if n == 0 {
			n = pointer
		}
		size = (size + n - 1) / n * n
		offsets = append(offsets, size)
		size += n
		widest = max(widest, n)
	}
	return offsets, (size + widest - 1) / widest * widest
}

// The layouts of DLPack, for 64-bit machines and for 32-bit ones with aligned int64_t.
func TestLayout(t *testing.T) {
	legacy := append(slices.Clone(tensorMembers), member{"manager_ctx", 0}, member{"deleter", 0})
	// The flags make dl_tensor begin at a multiple of 8 in both columns, so its members can stand in a row with them.
	versioned := []member{{"major", 4}, {"minor", 4}, {"manager_ctx", 0}, {"deleter", 0}, {"flags", 8}}
	versioned = append(versioned, tensorMembers...)
	for _, c := range []struct {
		name    string
		pointer int
		members []member
		size    int
		offsets []int
	}{
		{"DLTensor", 8, tensorMembers, 48, []int{0, 8, 12, 16, 20, 21, 22, 24, 32, 40}},
		{"DLTensor", 4, tensorMembers, 40, []int{0, 4, 8, 12, 16, 17, 18, 20, 24, 32}},
		{"DLManagedTensor", 8, legacy, 64, []int{0, 8, 12, 16, 20, 21, 22, 24, 32, 40, 48, 56}},
		{"DLManagedTensor", 4, legacy, 48, []int{0, 4, 8, 12, 16, 17, 18, 20, 24, 32, 40, 44}},
		{"DLManagedTensorVersioned", 8, versioned, 80, []int{0, 4, 8, 16, 24, 32, 40, 44, 48, 52, 53, 54, 56, 64, 72}},
		{"DLManagedTensorVersioned", 4, versioned, 64, []int{0, 4, 8, 12, 16, 24, 28, 32, 36, 40, 41, 42, 44, 48, 56}},
	} {
		if offsets, size := layout(c.pointer, c.members); size != c.size || !slices.Equal(offsets, c.offsets) {
			t.Errorf("%s with %d-byte pointers: %d bytes at %v, want %d at %v", c.name, c.pointer, size, offsets, c.size, c.offsets)
		}
	}
}

// What Go reads and writes has the offsets that a 64-bit C compiler gives.
func TestMirror(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		if got := unsafe.Sizeof(version{}) + unsafe.Sizeof(Device{}); got != 16 {
			t.Errorf("a version and a device have %d bytes", got)
		}
		return // export.go compares the rest with what this machine's C compiler does
	}
	var (
		f tensor
		l Legacy
		m Managed
	)
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"DLPackVersion", unsafe.Sizeof(m.version), 8},
		{"major", unsafe.Offsetof(m.version.major), 0},
		{"minor", unsafe.Offsetof(m.version.minor), 4},
		{"DLDevice", unsafe.Sizeof(f.device), 8},
		{"device_type", unsafe.Offsetof(f.device.Type), 0},
		{"device_id", unsafe.Offsetof(f.device.ID), 4},
		{"DLTensor", unsafe.Sizeof(f), 48},
		{"data", unsafe.Offsetof(f.data), 0},
		{"device", unsafe.Offsetof(f.device), 8},
		{"ndim", unsafe.Offsetof(f.ndim), 16},
		{"code", unsafe.Offsetof(f.dtype) + unsafe.Offsetof(f.dtype.Code), 20},
		{"bits", unsafe.Offsetof(f.dtype) + unsafe.Offsetof(f.dtype.Bits), 21},
		{"lanes", unsafe.Offsetof(f.dtype) + unsafe.Offsetof(f.dtype.Lanes), 22},
		{"shape", unsafe.Offsetof(f.shape), 24},
		{"strides", unsafe.Offsetof(f.strides), 32},
		{"byte_offset", unsafe.Offsetof(f.byteOffset), 40},
		{"DLManagedTensor", unsafe.Sizeof(l), 64},
		{"legacy dl_tensor", unsafe.Offsetof(l.tensor), 0},
		{"legacy manager_ctx", unsafe.Offsetof(l.context), 48},
		{"legacy deleter", unsafe.Offsetof(l.deleter), 56},
		{"DLManagedTensorVersioned", unsafe.Sizeof(m), 80},
		{"version", unsafe.Offsetof(m.version), 0},
		{"manager_ctx", unsafe.Offsetof(m.context), 8},
		{"deleter", unsafe.Offsetof(m.deleter), 16},
		{"flags", unsafe.Offsetof(m.flags), 24},
		{"dl_tensor", unsafe.Offsetof(m.tensor), 32},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

// The header's own assertions hold for every column that this machine's compiler knows, and they do fail where a column
// is wrong.
func TestHeader(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	cc := strings.Fields(string(out))
	compile := func(source string, flags ...string) (string, bool) {
		args := append(append(cc[1:len(cc):len(cc)], flags...), "-I.", "-x", "c", "-std=c11", "-fsyntax-only", "-")
		cmd := exec.CommandContext(t.Context(), cc[0], args...)
		cmd.Stdin = strings.NewReader(source)
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}
	const include = "#include \"dlpack_abi.h\"\n"
	if _, ok := compile("int x;"); !ok {
		if _, err := exec.LookPath(cc[0]); err == nil {
			t.Fatalf("%v compiles nothing", cc)
		}
		return // a machine without a compiler cannot build the other half of this package either
	}
	columns := map[string][]string{"native": nil}
	// Freestanding, a compiler brings its own stdint.h, so that this takes no 32-bit C library.
	for name, flags := range map[string][]string{
		"ilp32": {"-m32", "-malign-double", "-ffreestanding"},
		"i386":  {"-m32", "-ffreestanding"},
	} {
		if _, ok := compile("#include <stdint.h>\nint64_t x;", flags...); ok {
			columns[name] = flags
		}
	}
	for name, flags := range columns {
		if out, ok := compile(include, flags...); !ok {
			t.Errorf("%s:\n%s", name, out)
		}
		wrong := include + "SUBLET_DL_IS(sizeof(DLManagedTensorVersioned), 72, 72);\n"
		if _, ok := compile(wrong, flags...); ok && name != "i386" {
			t.Errorf("%s: a wrong size is not noticed", name)
		}
	}
	t.Logf("columns: %v", columns)
}
