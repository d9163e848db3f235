// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

const wideKernels = `
fn rise(i: u32) { a[i] = a[i] + 200u; b[i] = b[i] * 3; }
fn fall(i: u32) { a[i] = a[i] / 2u; b[i] = b[i] / 7; }
fn tick(i: u32) { a[i] = a[i] + 100u; }
fn look(i: u32) { c[i] = a[i] + u32(b[i] + 32768); }`

// narrowed is what the kernels make of one element.
type narrowed struct {
	a uint8
	b int16
}

func (v *narrowed) rise() { v.a, v.b = v.a+200, v.b*3 }
func (v *narrowed) fall() { v.a, v.b = v.a/2, v.b/7 }

// TestTrim has kernels store more bits than elements have: the next kernel sees those that the element keeps, whether it is of the
// same call or not, on the same device or not, and whether anything moved between.
func TestTrim(t *testing.T) {
	const n = 1000
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		for _, flags := range []string{"copied", "tracked", "resident"} {
			for _, blobs := range []int{1, 4} {
				cr := onDevices(t, devices, devs, wideKernels, shifting())
				a, b := wrap(t, "a", count(n, uint8(0))), wrap(t, "b", count(n, int16(9000)))
				c := newArray[uint32](t, "c", n)
				want := make([]narrowed, n)
				for i := range want {
					want[i] = narrowed{a.Data()[i], b.Data()[i]}
				}
				run := func(kernels string, r cruncher.Range) {
					r.Global, r.Local, r.Blobs = n, 10, blobs
					check(t, cr.Compute(t.Context(), 1, kernels, r, a, b, c))
				}
				for _, x := range []*cruncher.Any{a.Any, b.Any} {
					edit(x).PartialRead(true)
					if flags == "tracked" {
						x.Track()
					}
				}
				run("look", cruncher.Range{}) // all is on the devices
				if flags == "resident" {
					edit(a).Read(false).PartialRead(false).Write(false)
					edit(b).Read(false).PartialRead(false).Write(false)
				}
				run("rise", cruncher.Range{})
				run("fall", cruncher.Range{})
				run("rise fall rise rise fall", cruncher.Range{})
				run("rise,fall", cruncher.Range{Repeat: 3, SyncKernel: "tick"})
				run("look", cruncher.Range{})
				for i := range want {
					v := &want[i]
					v.rise()
					v.fall()
					v.rise()
					v.fall()
					v.rise()
					v.rise()
					v.fall()
					for range 3 {
						v.rise()
						v.fall()
						if i < 10 {
							v.a += 100
						}
					}
				}
				check(t, cr.Fetch(t.Context(), a.Any, b.Any))
				for i, v := range want {
					if got := (narrowed{a.Data()[i], b.Data()[i]}); got != v || c.Data()[i] != uint32(v.a)+uint32(int(v.b)+32768) {
						t.Fatalf("%d devices, %s, %d blobs: element %d is %v, seen as %d, want %v", devs, flags, blobs, i, got, c.Data()[i], v)
					}
				}
			}
		}
	}
}

// TestTrimWindow moves the window of an array whose elements are wider than they may be.
func TestTrimWindow(t *testing.T) {
	const n = 1500
	cr := onDevices(t, openDevices(t, 2, gpu.WithMaxBuffer(4096)), 2, wideKernels, fixed([][]int{{500, n - 500}, {600, n - 600}, {1000, n - 1000}}))
	a, b := wrap(t, "a", count(n, uint8(0))), wrap(t, "b", make([]int16, n))
	for _, x := range []*cruncher.Any{a.Any, b.Any} {
		edit(x).PartialRead(true)
	}
	r := cruncher.Range{Global: n, Local: 10}
	check(t, cr.Compute(t.Context(), 1, "rise", r, a, b))
	edit(a).PartialRead(false).Read(false)
	edit(b).PartialRead(false).Read(false)
	check(t, cr.Compute(t.Context(), 1, "rise", r, a, b))
	check(t, cr.Compute(t.Context(), 1, "fall", r, a, b))
	for i, got := range a.Data() {
		if want := (uint8(i) + 200 + 200) / 2; got != want {
			t.Fatalf("element %d is %d, want %d", i, got, want)
		}
	}
}

// TestTrimFree has nothing to trim where all that kernels wrote goes up anew: a call converts two arrays there and back.
func TestTrimFree(t *testing.T) {
	cr := newCruncher(t, 1, wideKernels)
	a, b := wrap(t, "a", count(100, uint8(0))), wrap(t, "b", count(100, int16(0)))
	for range 3 {
		check(t, cr.Compute(t.Context(), 1, "rise", cruncher.Range{Global: 100}, a, b))
	}
	if got := cr.Devices()[0].Stats().Dispatches; got != 3*(2+1+2) {
		t.Errorf("%d dispatches", got)
	}
}
