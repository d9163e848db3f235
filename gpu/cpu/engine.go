// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/internal/software"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// references is the engine that runs kernels through their reference implementations.
type references struct{}

// Allocate makes the memory of words, not of bytes, so that a reference may use it as any element type.
func (references) Allocate(size uint64) ([]byte, error) {
	return host.BytesOf(make([]uint64, (size+7)/8))[:size:size], nil
}

func (references) Free([]byte) {}

func (references) Compile(_ context.Context, k *driver.Kernel) (software.Program, error) {
	if k.Reference == nil {
		return nil, fail("NewKernel", fault.ErrUnsupported, "the Go oracle runs the library's own kernels only; open a device with FeatureWGSL")
	}
	return reference(k.Reference), nil
}

// Stop does nothing: nobody can stop Go code.
func (references) Stop() {}

func (references) Close(bool, [][]byte) {}

type reference func(groups [3]uint32, params []byte, storage [][]byte)

func (r reference) Run(d *software.Dispatch) error {
	r(d.Groups, d.Params, slices.Clone(d.Storage))
	return nil
}

func (reference) Close() {}
