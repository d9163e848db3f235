// SPDX-License-Identifier: Apache-2.0

package dlpack

import "github.com/sublet-gpu/sublet/gpu/driver"

// The errors of this package, beside those of package gpu.
var (
	ErrVersion = driver.NewSentinel("ErrVersion", "unknown version of DLPack")
	ErrType    = driver.NewSentinel("ErrType", "impossible element type")
	ErrShape   = driver.NewSentinel("ErrShape", "impossible shape")
	ErrMemory  = driver.NewSentinel("ErrMemory", "impossible address")
)

func fail(op string, err error, detail ...string) error {
	return driver.Fail("dlpack: "+op, err, detail...)
}
