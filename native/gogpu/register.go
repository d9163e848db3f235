// SPDX-License-Identifier: Apache-2.0

package gogpu

import "github.com/sublet-gpu/sublet/gpu"

// Who imports the package has the driver.
func init() { _ = gpu.Register(New()) } // fails where the program has registered another of this name
