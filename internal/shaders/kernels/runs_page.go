// SPDX-License-Identifier: Apache-2.0

//go:build js && sublet_page && !sublet_simd

package kernels

// runsSIMD is false: programs for pages with WebGPU leave out the kernels that only the driver "simd" runs.
const runsSIMD = false
