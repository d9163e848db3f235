// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/matrix/internal/exec"
)

// WithProgress returns a context under which [Dense.AssignContext], and what else evaluates, tells how far it is with matrices that the
// device has ranges of only: done of total launches are queued, of which the last few may still be computed. tell is called by the
// goroutine of the evaluation and must not use the device. It is not called for an evaluation that needs no ranges, nor in a page.
func WithProgress(ctx context.Context, tell func(done, total int)) context.Context {
	return exec.WithProgress(ctx, tell)
}
