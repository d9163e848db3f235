// SPDX-License-Identifier: Apache-2.0

//go:build !js || !sublet_page || sublet_simd

package kernels

// runsSIMD reports whether the program has the kernels that only the driver "simd" runs.
const runsSIMD = true
