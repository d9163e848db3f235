// SPDX-License-Identifier: Apache-2.0

//go:build sublet_page && !sublet_simd

package kernels

import "github.com/sublet-gpu/sublet/internal/shaders/fuse"

// SIMD says that the npm package's program for pages with WebGPU goes without the kernels for such devices.
const SIMD = false

var productPanel, productPack, softmaxHeld *form

func (*Request) panels() bool { return false }

func (*Request) planPanels(fuse.Type) *Product { return nil }

func (*Kernel) simdPart(fuse.Type) string { return "" }

func packPanels[N fuse.Num](*fuse.Eval[N], []int) {}

func multiplyPanels[N fuse.Num](*Kernel, *fuse.Eval[N], []int, [][]byte) {}
