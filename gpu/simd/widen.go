// SPDX-License-Identifier: Apache-2.0

//go:build !sublet_page

package simd

import "github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"

// widen rewrites kernels to run four invocations at a time.
var widen = lanes.Widen
