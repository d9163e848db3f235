// SPDX-License-Identifier: Apache-2.0

// Package wgsl reads WGSL of the user's as far as it takes to build it into kernels: its tokens, the names that it declares,
// and what compilers say about it.
package wgsl
