// SPDX-License-Identifier: Apache-2.0

package cpu_test

import "unsafe"

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
