// SPDX-License-Identifier: Apache-2.0

package dlpack

import (
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package, beside those of package gpu.
var (
	ErrVersion = fault.New("ErrVersion", "unknown version of DLPack")
	ErrType    = fault.New("ErrType", "impossible element type")
	ErrShape   = fault.New("ErrShape", "impossible shape")
	ErrMemory  = fault.New("ErrMemory", "impossible address")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("dlpack: "+op, err, detail...)
}
