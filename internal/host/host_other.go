// SPDX-License-Identifier: Apache-2.0

//go:build !js

package host

import "github.com/sublet-gpu/sublet/internal/fault"

func (m Memory) foreignWriter(op string) (write func(src []byte), err error) {
	return nil, fault.Fail(op, fault.ErrUnsupported, "memory that is not Go's")
}

func (m Memory) foreignCopier() Copier { return nil }

func (m Memory) foreignPlace() (space uint64, at int, ok bool) { return 0, 0, false }
