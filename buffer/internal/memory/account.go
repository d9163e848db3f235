// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Place is a device, or one of several that it stands for.
type Place struct {
	Device *gpu.Device
	Slot   int
	Map    bool // the CPU may reach memory that it can reach, as nothing else does at the time
}

// Account counts what arrays take on each device, which may be limited, and what they move: from the host, and from replica to replica.
type Account struct {
	Limit     uint64
	Up, Moved atomic.Int64

	mu   sync.Mutex
	used map[int]uint64 // by slot
}

func (a *Account) take(slot int, n uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Limit > 0 && a.used[slot]+n > a.Limit {
		return fault.Fail("cruncher: Compute", gpu.ErrNoMemory, strconv.FormatUint(a.used[slot]+n, 10),
			" bytes of arrays on one device, the limit is ", strconv.FormatUint(a.Limit, 10))
	}
	if a.used == nil {
		a.used = map[int]uint64{}
	}
	a.used[slot] += n
	return nil
}

func (a *Account) give(slot int, n uint64) {
	a.mu.Lock()
	a.used[slot] -= n
	a.mu.Unlock()
}
