// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var axpyLayout = driver.NewLayout(driver.AccessReadWrite, driver.AccessParams)

const hostileHead = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"

// inMain is a kernel of a body, with what stands before it.
func inMain(before, body string) string {
	return hostileHead + before + "\n@compute @workgroup_size(1) fn main() { y[0] = 1u; " + body + " }"
}

// deadly is in sources that did end the process, or lose the device.
var deadly = []string{"= array<u32>(", "var a = array<u32, 16777216>()", "f(&v", "(&t", "g(&s", "g(p)", "var a: array<u32, 1073741824>", "array<vec4<u32>, 2147483648u>;", "more.a;", "= R()", "switch vec2", "textureSampleLevel(t, s, vec2<f32>(), 0.0)"}

// testHostileKernels compiles and runs sources in a process of its own: each compiles or does not, and the process and the device go on.
func testHostileKernels(t *testing.T, bench *Bench) {
	if from := os.Getenv("SUBLET_HOSTILE"); from != "" {
		hostileChild(t, bench, from)
		return
	}
	list, _ := hostile()
	for next, deaths := 0, 0; next < len(list) && deaths < 100; deaths++ {
		child := exec.Command(os.Args[0], again(t))
		child.Env = append(os.Environ(), "SUBLET_HOSTILE="+strconv.Itoa(next))
		out, err := child.CombinedOutput()
		at := next - 1
		for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
			var n int
			if _, serr := fmt.Sscanf(lines.Text(), "source %d", &n); serr == nil {
				at = n
			}
			if strings.HasPrefix(lines.Text(), "WRONG") {
				t.Error(lines.Text())
			}
		}
		if err == nil && at == len(list)-1 {
			return
		}
		text := "nothing"
		if at >= 0 {
			text = list[at]
		}
		t.Errorf("source %d ends the process: %v\n%.600s\n%.300s", at, err, text, out[max(0, len(out)-300):])
		next = at + 1
	}
}

func hostileChild(t *testing.T, bench *Bench, from string) {
	list, fixed := hostile()
	first, err := strconv.Atoi(from)
	must(t, err)
	d := bench.open(t)
	for i := first; i < len(list); i++ {
		fmt.Println("source", i)
		k := driver.Kernel{Label: "hostile", Source: list[i], Entry: "main", Layout: driver.NewLayout(driver.AccessReadWrite, driver.AccessReadWrite)}
		if strings.Contains(k.Source, "var<uniform>") {
			k.Layout = axpyLayout
		}
		if bench.fatal(k.Source) {
			continue
		}
		if !long() && i%25 != 0 && i < fixed &&
			!slices.ContainsFunc(deadly, func(s string) bool { return strings.Contains(k.Source, s) }) {
			continue // one of 25, those that are known to be bad, and the random ones
		}
		if err := d.NewKernel(t.Context(), 1, &k); err == nil {
			if _, rerr := turn1(t, d, k.Layout); rerr != nil && !errors.Is(rerr, fault.ErrLimit) && !tooSmall(rerr) {
				fmt.Printf("WRONG run of source %d: %v: %q\n", i, rerr, list[i])
			}
			d.FreeKernel(1)
		} else if !errors.Is(err, fault.ErrCompile) && !errors.Is(err, fault.ErrLimit) && list[i] != "" {
			fmt.Printf("WRONG error of source %d: %v: %q\n", i, err, list[i])
		}
		if d.LostReason() != "" {
			fmt.Printf("WRONG source %d loses the device: %s: %q\n", i, d.LostReason(), list[i])
			d = bench.open(t)
		}
	}
}

// fatal reports whether the library is known to end the process on a source.
func (bench *Bench) fatal(source string) bool { return bench.Fatal != nil && bench.Fatal(source) != "" }

// tooSmall reports whether a dispatch was refused because a buffer is smaller than the kernel's type.
func tooSmall(err error) bool {
	return errors.Is(err, fault.ErrInvalid) && strings.Contains(err.Error(), " is bound with size ")
}

// turn1 runs kernel 1 once.
func turn1(t *testing.T, d driver.Device, layout driver.Layout) ([]uint32, error) {
	must(t, d.NewBuffer(1, 256, false))
	must(t, d.NewBuffer(2, 256, false))
	defer d.FreeBuffer(2)
	var l driver.CommandList
	l.Bind(1, layout, []driver.Binding{whole(1, 64), whole(2, 64)}[:layout.Storage()])
	l.Dispatch(1, 1, [3]uint32{1, 1, 1}, make([]byte, 4))
	l.Unbind(1)
	err := d.Submit(&l)
	got, rerr := read(t.Context(), d, 1, 4)
	if errors.Is(rerr, fault.ErrLimit) {
		_ = d.Submit(new(driver.CommandList))
	}
	d.FreeBuffer(1)
	return got, errors.Join(err, rerr)
}
