// SPDX-License-Identifier: Apache-2.0

//go:build !js || !sublet_page || sublet_simd

package kernels

// runsSIMD leaves out of programs for pages with WebGPU what only the driver "simd" needs.
const runsSIMD = true
