// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd

package simd

import "syscall"

// reserve maps so many zeros, of which pages become memory when they are first used.
func reserve(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
}

// commit makes a part of reserved memory usable.
func commit([]byte) error { return nil }

func release(mem []byte) error { return syscall.Munmap(mem) }
