// SPDX-License-Identifier: Apache-2.0

//go:build !js

package gpu

func foreignWriter(op string, _ Host) (func(src []byte), error) {
	return nil, fail(op, ErrUnsupported, "memory that is not Go's")
}

func foreignPlace(Host) (space uint64, at int, ok bool) { return 0, 0, false }
