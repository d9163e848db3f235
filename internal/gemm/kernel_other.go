// SPDX-License-Identifier: Apache-2.0

//go:build purego || !(amd64 || arm64)

package gemm

func machineKernels() []kernel { return nil }
