// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// explanation is what --json prints for --explain.
type explanation struct {
	Kernels        []kernelUse `json:"kernels"`
	Temporaries    int         `json:"temporaries"`
	TemporaryBytes int         `json:"temporary_bytes"`
	Adapter        string      `json:"adapter"`
}

// kernelUse is one launch.
type kernelUse struct {
	Kernel       string    `json:"kernel"`
	Groups       [3]uint32 `json:"groups"`
	Rows         int       `json:"rows"`
	Cols         int       `json:"cols"`
	DType        string    `json:"dtype"`
	BytesRead    int       `json:"bytes_read"`
	BytesWritten int       `json:"bytes_written"`
	WGSL         string    `json:"wgsl,omitempty"`
}

// statements is found in texts that are no single expression.
var statements = regexp.MustCompile(`(?m)^\s*[A-Za-z_]\w*\s*=[^=]|;|\n\s*\w`)

// explained prints how the expression is computed.
func (t *task) explained(ctx context.Context, vars map[string]matrix.Operand[matrix.Any]) error {
	e := matrix.Eval(t.expr, vars)
	if errors.Is(e.Err(), matrix.ErrSyntax) && statements.MatchString(t.expr) {
		return fault.Fail("--explain", matrix.ErrSyntax, "it explains one expression, without NAME = and other statements")
	}
	if e.Err() == nil {
		e = e.On(t.dev)
	}
	p, err := e.Explain(ctx)
	if err != nil {
		return t.advised(err)
	}
	out := explanation{Temporaries: p.Temporaries, TemporaryBytes: p.TemporaryBytes, Adapter: t.dev.Info().Name}
	for _, l := range p.Launches {
		k := kernelUse{l.Kernel, l.Groups, l.Rows, l.Cols, l.DType.String(), l.BytesRead, l.BytesWritten, ""}
		if t.explain == "wgsl" {
			k.WGSL = l.WGSL
		}
		out.Kernels = append(out.Kernels, k)
	}
	return t.report(out, func(w io.Writer) error {
		for i, k := range out.Kernels {
			if k.WGSL != "" {
				fmt.Fprintf(w, "// %d: %s\n%s\n", i+1, k.Kernel, k.WGSL)
			}
		}
		_, err := fmt.Fprintln(w, p)
		return err
	})
}
