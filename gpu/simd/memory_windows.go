// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	virtualAlloc = kernel32.NewProc("VirtualAlloc")
	virtualFree  = kernel32.NewProc("VirtualFree")
)

// What VirtualAlloc and VirtualFree take.
const (
	memCommit     = 0x1000
	memReserve    = 0x2000
	memRelease    = 0x8000
	pageReadWrite = 4
)

// reserve reserves so many addresses.
func reserve(size int) ([]byte, error) {
	at, _, err := virtualAlloc.Call(0, uintptr(size), memReserve, pageReadWrite)
	if at == 0 {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size), nil
}

// commit makes a part of reserved memory usable.
func commit(mem []byte) error {
	if at, _, err := virtualAlloc.Call(address(mem), uintptr(len(mem)), memCommit, pageReadWrite); at == 0 {
		return err
	}
	return nil
}

func release(mem []byte) error {
	if done, _, err := virtualFree.Call(address(mem), 0, memRelease); done == 0 {
		return err
	}
	return nil
}
