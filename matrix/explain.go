// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// Plan is how an expression is computed: the launches of kernels, in their order.
type Plan struct {
	Launches       []Launch
	Temporaries    int // matrices in between
	TemporaryBytes int
}

// Launch is one launch of a kernel.
type Launch struct {
	Kernel       string // the family and the variant, such as "product/tile 8 4 2"
	Groups       [3]uint32
	Rows, Cols   int // of what is written
	DType        DType
	BytesRead    int // of the operands' memory, each part of it counted once
	BytesWritten int
	WGSL         string
}

// Explain returns the plan of the rewritten expression on its device, with a new matrix as the destination. Nothing is computed or
// compiled. A launch may use another kernel than the plan says while that is not compiled yet.
func (e *Expr[T]) Explain(ctx context.Context) (*Plan, error) {
	const op = "Explain"
	n := e.expr(op).n.Typed(fuse.F32)
	switch {
	case n.Err != nil:
		return nil, n.Err
	case n.Dev == nil:
		return nil, fail(op, gpu.ErrInvalid, "the expression has no device")
	}
	if err := fault.Ended(ctx, "matrix: ", op); err != nil {
		return nil, err
	}
	p, err := exec.Of(n.Dev).Explain(ctx, n)
	if err != nil {
		return nil, named(op, err)
	}
	return explained(p), nil
}

func explained(p *plan.Plan) *Plan {
	out := &Plan{}
	written, sources := map[int]bool{0: true}, map[string]string{}
	for _, s := range p.Steps {
		if s.Launch == nil {
			continue
		}
		l := Launch{Kernel: s.Name(), Groups: s.Groups, Rows: s.To.Rows, Cols: s.To.Cols, DType: s.To.Type}
		if sources[s.Key] == "" {
			sources[s.Key] = s.Program(s.Func).Source
		}
		l.WGSL = sources[s.Key]
		l.BytesWritten = s.To.Rows * s.To.Cols * s.To.Type.Size()
		for _, b := range s.Bindings {
			if b.Intent == buffer.Reads {
				l.BytesRead += (b.Hi - b.Lo) * b.Type.Size()
			}
		}
		if to := s.To.Mem; !written[to] {
			written[to] = true
			out.Temporaries++
			out.TemporaryBytes += p.Memories[to].Size
		}
		out.Launches = append(out.Launches, l)
	}
	return out
}

// String returns a line for each launch and one with their sums.
func (p *Plan) String() string {
	if p == nil {
		return "no plan"
	}
	var b strings.Builder
	read, wrote := 0, 0
	for i, l := range p.Launches {
		read, wrote = read+l.BytesRead, wrote+l.BytesWritten
		b.WriteString(itoa(i+1) + ": " + l.Kernel + " -> " + itoa(l.Rows) + "x" + itoa(l.Cols) + " " + l.DType.String() + ", groups " +
			itoa(int(l.Groups[0])) + "x" + itoa(int(l.Groups[1])) + ", reads " + itoa(l.BytesRead) + " bytes, writes " + itoa(l.BytesWritten) + "\n")
	}
	b.WriteString("kernels: " + itoa(len(p.Launches)) + ", bytes read: " + itoa(read) + ", bytes written: " + itoa(wrote) +
		", temporaries: " + itoa(p.Temporaries) + " of " + itoa(p.TemporaryBytes) + " bytes")
	return b.String()
}
