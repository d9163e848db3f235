// SPDX-License-Identifier: Apache-2.0

//go:build !sublet_simd || sublet_page

package simd

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders/modules"
)

// prepared returns nothing: there is no archive.
func prepared(*driver.Kernel) *modules.Module { return nil }
