// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
)

// Lend brings results back as [Buffer.Sync] does and returns the host's side, for somebody who uses it while no kernel
// does: the caller's own memory if it was wrapped, the host's half of a pair otherwise. It stays where it is until the
// last share is closed, so whoever lends it on keeps one. After writing into it say [Buffer.Touch]. A buffer without a
// host side is [gpu.ErrUnsupported].
func (b *Buffer) Lend(ctx context.Context) (gpu.Host, error) {
	const op = "Lend"
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(op); err != nil {
		return gpu.Host{}, err
	}
	if !b.HasHost() {
		return gpu.Host{}, fail(op, gpu.ErrUnsupported, "there is no host memory")
	}
	if err := b.download(ctx); err != nil {
		return gpu.Host{}, err
	}
	return b.host, nil
}
