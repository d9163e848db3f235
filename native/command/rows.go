// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/memory"
	"github.com/sublet-gpu/sublet/matrix"
)

// longProduct is how many multiplications are long enough for the progress to be shown: some seconds of a software adapter.
var longProduct = 5e9

// blockTime is what a block of rows takes at least, once its device is known to be faster: waiting after each one costs some per cent.
const blockTime = 300 * time.Millisecond

// assigned is the name that a text gives its first statement.
var assigned = regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*=(?:[^=]|$)`)

// evaluate runs the text. A long product of matrices, with what is computed of its elements, is computed in blocks of rows to tell how
// far it is.
func (t *task) evaluate(ctx context.Context, vars map[string]matrix.Operand[matrix.Any]) (results, error) {
	if t.group != nil {
		return t.inGroup(ctx, vars)
	}
	ctx = matrix.WithProgress(ctx, func(done, total int) {
		if done == 1 {
			t.progress.enter("computing", int64(total))
		}
		t.progress.add(1)
	})
	name, text := "", strings.TrimSpace(t.expr)
	if at := assigned.FindStringSubmatchIndex(text); at != nil {
		name, text = text[at[2]:at[3]], strings.TrimSpace(text[strings.Index(text, "=")+1:])
	}
	if _, taken := vars[name]; !taken && !strings.Contains(text, "\n") { // lines are statements
		if e := matrix.Eval(text, vars); e.Err() == nil {
			e = e.On(t.dev)
			if t.vast(e) {
				m, err := t.streamed(ctx, e)
				return results{{Name: name, Matrix: m}}, err
			}
			if step := t.divided(ctx, e); step > 0 {
				m, err := t.inBlocks(ctx, e, step)
				return results{{Name: name, Matrix: m}}, err
			}
		}
	}
	return matrix.EvalAll(ctx, t.dev, t.expr, vars)
}

// vast reports whether the device has no room for the result of an expression.
func (t *task) vast(e *matrix.Expr[matrix.Any]) bool {
	if slices.ContainsFunc(t.operands, func(x *array) bool { return x.sparse != nil }) {
		return false // the result may be, too
	}
	rows, cols := e.Dims()
	most := t.dev.Info().Limits.MaxBufferSize
	if budget := t.dev.Budget(); budget > 0 {
		most = min(most, budget/4)
	}
	return cols > 0 && uint64(rows) > most/uint64(e.DType().Size())/uint64(cols)
}

// streamed computes an expression into memory of the host's.
func (t *task) streamed(ctx context.Context, e *matrix.Expr[matrix.Any]) (*matrix.Dense[matrix.Any], error) {
	rows, cols := e.Dims()
	size := rows * cols * e.DType().Size()
	if system := (memory.Meter{}); !system.Affords(uint64(size), memory.Reserve, 0) {
		return nil, fault.Fail("eval", gpu.ErrNoMemory, fmt.Sprintf("a result of %d bytes, which the system does not have", size))
	}
	mem := gpu.HostBytes(make([]byte, size))
	m, err := matrix.FromBuffer[matrix.Any](t.dev, rows, cols, mem, buffer.DontOwnBuffer, matrix.Options{Type: e.DType()})
	if err != nil {
		return nil, err
	}
	if err := m.AssignContext(ctx, e); err != nil {
		_ = m.Close() // nothing reads it
		return nil, err
	}
	return m, nil
}

// divided returns how many rows the blocks of an expression should have at least, 0 if it is not worth dividing: only what one kernel
// of a product computes divides into rows without more work. Kernels of one family add in the same order.
func (t *task) divided(ctx context.Context, e *matrix.Expr[matrix.Any]) int {
	const parts = 32
	rows, cols := e.Dims()
	elements, longest := float64(rows)*float64(cols), int64(0)
	for _, x := range t.operands {
		longest = max(longest, slices.Max(append(x.Shape, 1)))
	}
	if elements*float64(longest) < longProduct {
		return 0
	}
	all, ok := oneProduct(ctx, e)
	if !ok {
		return 0
	}
	inner := float64(all.BytesRead) / float64(all.DType.Size()) / float64(rows+cols) // or less, if more than two matrices are read
	if elements*inner < longProduct {
		return 0
	}
	for step := max((rows/parts+63)/64*64, 64); step <= rows/2; step *= 2 { // blocks of fewer rows leave a device idle
		if block, ok := oneProduct(ctx, e.Slice(0, step, 0, cols)); ok && family(block) == family(all) {
			return step
		}
	}
	return 0
}

// oneProduct returns the launch of an expression that takes one, of a kernel of products.
func oneProduct(ctx context.Context, e *matrix.Expr[matrix.Any]) (l matrix.Launch, ok bool) {
	p, err := e.Explain(ctx)
	if err != nil || len(p.Launches) != 1 {
		return l, false
	}
	l = p.Launches[0]
	return l, strings.HasPrefix(l.Kernel, "product/")
}

// family is the first word of a kernel's name, before its sizes.
func family(l matrix.Launch) string { return strings.Fields(l.Kernel)[0] }

// inBlocks computes an expression in blocks of that many rows, more where a device takes little time for them.
func (t *task) inBlocks(ctx context.Context, e *matrix.Expr[matrix.Any], step int) (*matrix.Dense[matrix.Any], error) {
	rows, cols := e.Dims()
	c, err := matrix.New[matrix.Any](t.dev, rows, cols, matrix.Options{Type: e.DType()})
	if err != nil {
		return nil, err
	}
	t.progress.enter("computing", int64(rows))
	for i := 0; i < rows; {
		k := i + step
		if rows-k < step { // the last block is no smaller than the others: fewer rows may take another kernel
			k = rows
		}
		start := time.Now()
		part := c.Slice(i, k, 0, cols)
		err := part.AssignContext(ctx, e.Slice(i, k, 0, cols))
		if err == nil {
			err = c.Sync(ctx)
		}
		_ = part.Close() // a view
		if err != nil {
			_ = c.Close() // nothing reads it
			return nil, err
		}
		t.progress.add(int64(k - i))
		if i = k; time.Since(start) < blockTime {
			step *= 4
		}
	}
	return c, nil
}
