// SPDX-License-Identifier: Apache-2.0

//go:build js && sublet_page && !sublet_simd

package kernels

const runsSIMD = false
