// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package gemm

import (
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// guarded is memory between pages that nobody may read. Numbers lie at its beginning or at its end.
type guarded struct{ memory []byte }

func newGuarded(t *testing.T, numbers int) guarded {
	t.Helper()
	page := os.Getpagesize()
	size := (4*numbers+page-1)/page*page + 2*page
	memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for _, guard := range [][]byte{memory[:page], memory[size-page:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = syscall.Munmap(memory) })
	return guarded{memory[page : size-page]}
}

// hold copies a matrix there.
func (g guarded) hold(m Matrix, atEnd bool) Matrix {
	at := g.memory
	if atEnd {
		at = at[len(at)-4*len(m.Data):]
	}
	to := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(at))), len(m.Data))
	copy(to, m.Data)
	m.Data = to
	return m
}

// TestGuarded has operands and results that begin or end at a page that ends the process when it is touched.
func TestGuarded(t *testing.T) {
	const most = 70000
	x, y, z := newGuarded(t, most), newGuarded(t, most), newGuarded(t, most)
	eachKernel(t, func(t *testing.T, k *kernel) {
		all := shapes
		for n := range 2 * k.cols {
			all = append(all, [3]int{k.rows + 1, 3, n + 2})
		}
		for _, s := range all {
			if s[0]*s[1]*s[2] > 500_000 {
				continue // the reference is slow
			}
			for _, by := range [][2]int{{0, 0}, {1, 0}, {2, 1}, {3, 3}, {4, 2}} {
				for _, atEnd := range []bool{false, true} {
					a, b, c := layouts[by[0]].make(s[0], s[1]), layouts[by[1]].make(s[1], s[2]), result(s[0], s[2], 0)
					if max(len(a.Data), len(b.Data), len(c.Data)) > most || min(len(a.Data), len(b.Data), len(c.Data)) == 0 {
						continue
					}
					a, b, c = x.hold(a, atEnd), y.hold(b, atEnd), z.hold(c, atEnd)
					multiply(k, c, a, b, 1)
					if err := wrong(c, a, b); err != nil {
						t.Errorf("%v: %v", s, err)
					}
				}
			}
		}
	})
}
