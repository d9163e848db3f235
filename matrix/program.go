// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
)

// Program is a list of assignments that are planned and compiled once and run any number of times, each time with the present elements of
// their operands. A run neither plans nor compiles, and submits up to 4096 launches at once. Make one with [NewProgram] and close it when
// done.
//
// To compute with other data, change the operands' elements, for example by [Dense.SetSlice], or the memory that they wrap. Use a 1x1
// matrix for a number that changes: numbers in an expression are fixed. Operands and destinations may be set to other memory and
// another layout; the next run plans their assignments again. Their sizes must be those of [NewProgram]: a run with a matrix that was
// resized or Reset is [buffer.ErrShape], which names the step, until the matrix has its size again.
//
// Several goroutines may run a program; the runs follow each other.
type Program struct {
	p       *exec.Program
	cleanup *cleanup.Cleanup // closes what nobody closed
}

// Step is an assignment of a [Program]: see [Into].
type Step struct {
	to  *core
	n   *node
	err error
}

// Into returns the assignment of x to dst, see [Dense.Assign].
func Into[T Elem](dst *Dense[T], x Operand[T]) Step {
	const op = "Into"
	to, n := dst.core(), from(op, x)
	return Step{to, n, firstError(to.usable(op), n.Err)}
}

// NewProgram plans assignments, which run in this order, and compiles their kernels; nothing is computed. All matrices must be on one
// device, else the error is [gpu.ErrForeign]. A destination has the size of its expression, or takes it as with [Dense.Assign]. Temporary
// matrices are made once, and steps share their memory. Steps with memory larger than a buffer, or whose expressions make sparse
// matrices, are planned again in every run.
func NewProgram(ctx context.Context, steps ...Step) (*Program, error) {
	const op = "NewProgram"
	if err := fault.Ended(ctx, "matrix: ", op); err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, fail(op, gpu.ErrInvalid, "no steps")
	}
	var dev *gpu.Device
	for _, s := range steps {
		switch {
		case s.err != nil:
			return nil, s.err
		case s.to == nil || s.n == nil:
			return nil, fail(op, buffer.ErrNil, "a step that nobody made")
		}
		for _, own := range []*gpu.Device{s.to.dev, s.n.Dev} {
			if dev = cmp.Or(dev, own); own != nil && own != dev {
				return nil, fail(op, gpu.ErrForeign, "steps on two devices")
			}
		}
	}
	if dev == nil {
		return nil, fail(op, gpu.ErrInvalid, "no step has a device: Expr.On chooses one")
	}
	list := make([]exec.Assignment, len(steps))
	for i, s := range steps {
		t := fuse.F32
		if s.to.typed != 0 {
			t = s.to.t
		}
		n := promoted(s.n.Typed(t), t)
		if err := s.to.store(op, dev, n.Type, n.Rows, n.Cols, func(exec.Dense) error { return nil }); err != nil {
			return nil, err
		}
		list[i] = exec.Assignment{To: s.to, Node: n}
	}
	p, err := exec.Of(dev).Record(ctx, list)
	if err != nil {
		return nil, named(op, firstError(err, p.Close()))
	}
	return &Program{p, cleanup.New(func() { _ = p.Close() })}, nil
}

// Run queues the assignments. If it fails, some of them may have been computed; the destination of one that was computed in part is
// [buffer.ErrIncomplete]. The context is used as by [Dense.AssignContext].
func (p *Program) Run(ctx context.Context) error {
	const op = "Run"
	if p == nil || p.p == nil {
		return fail(op, buffer.ErrNil, "nil program")
	}
	if err := fault.Ended(ctx, "matrix: ", op); err != nil {
		return err
	}
	return named(op, p.p.Run(ctx))
}

// Close releases the program's kernels and temporary memory. Later calls do nothing, and later runs are [gpu.ErrClosed].
func (p *Program) Close() error {
	if p == nil || p.p == nil {
		return nil
	}
	p.cleanup.Stop()
	return named("Close", p.p.Close())
}
