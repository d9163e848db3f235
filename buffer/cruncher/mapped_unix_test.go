// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cruncher_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// mapFile maps a file of 32-bit numbers from 0 on.
func mapFile(t *testing.T, n, protection int) []byte {
	t.Helper()
	f := must[*os.File](t)(os.Create(filepath.Join(t.TempDir(), "numbers")))
	data := make([]byte, 4*n)
	for i := range n {
		data[4*i], data[4*i+1] = byte(i), byte(i>>8)
	}
	must[int](t)(f.Write(data))
	mem := must[[]byte](t)(syscall.Mmap(int(f.Fd()), 0, len(data), protection, syscall.MAP_SHARED))
	check(t, f.Close())
	return mem
}

// TestMappedFiles has arrays in mapped files, one of them such that writing to it would end the process.
func TestMappedFiles(t *testing.T) {
	const n = 2000
	cr := newCruncher(t, 2, `fn add(i: u32) { out[i] = out[i] + a[i]; }`, shifting())
	in, result := mapFile(t, n, syscall.PROT_READ), mapFile(t, n, syscall.PROT_READ|syscall.PROT_WRITE)
	a := must[*cruncher.Any](t)(cruncher.WrapHost("a", dtype.Uint32, gpu.Host{Bytes: in, Size: len(in), ReadOnly: true}, func() { check(t, syscall.Munmap(in)) }))
	out := must[*cruncher.Any](t)(cruncher.WrapHost("out", dtype.Uint32, gpu.HostBytes(result), func() { check(t, syscall.Munmap(result)) }))
	edit(out).PartialRead(true)
	r := cruncher.Range{Global: n, Local: 8}
	for k := range 3 {
		r.Blobs = k
		check(t, cr.Compute(t.Context(), 1, "add", r, a, out))
	}
	if got := int(result[4*1999]) | int(result[4*1999+1])<<8; got != 4*1999 {
		t.Errorf("the last number is %d", got)
	}
	edit(a).ReadOnly(false)
	refused(t, "another access", cr.Compute(t.Context(), 1, "add", r, a, out), cruncher.ErrAccess)
	edit(a).Write(true)
	refused(t, "writing to read-only memory", cr.Compute(t.Context(), 1, "add", r, a, out), gpu.ErrReadOnly)
	refused(t, "fetching to read-only memory", cr.Fetch(t.Context(), a), gpu.ErrReadOnly)
	check(t, a.Close())
	check(t, out.Close())
	refused(t, "after that", cr.Compute(t.Context(), 1, "add", r, a, out), gpu.ErrClosed)
}
