// SPDX-License-Identifier: Apache-2.0

package gpu

// RunsReferences tells whether a driver is linked that runs the Go reference implementations of kernels:
// [KernelDesc.Reference].
const RunsReferences = runsReferences
