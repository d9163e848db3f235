// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ctest

import (
	"syscall"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

func init() { cases = append(cases, testCase{"ForeignPages", testForeignPages}) }

// Memory that is not Go's, such as a mapped file, is written from and read into like any other.
func testForeignPages(t *testing.T, bench *Bench) {
	const n = 4096
	d := bench.open(t)
	pages := func() []byte {
		b, err := syscall.Mmap(-1, 0, 4*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		must(t, err)
		t.Cleanup(func() { must(t, syscall.Munmap(b)) })
		return b
	}
	from, to := pages(), pages()
	copy(from, bytesOf(ramp(n, 5)))
	must(t, d.NewBuffer(1, 4*n, false))
	var l driver.CommandList
	l.Write(1, 0, driver.HostBytes(from))
	must(t, d.Submit(&l))
	must(t, d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(to), Width: 4 * n, Count: 1}))
	if string(from) != string(to) {
		t.Error("the pages differ")
	}
}
