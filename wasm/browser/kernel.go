// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"errors"
	"strings"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// NewKernel implements [driver.Device]. The id is taken only when the kernel is compiled, so that nothing can dispatch
// it before.
func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	const op = "browser: NewKernel"
	var module js.Value
	pipeline, err := d.await(ctx, op, func(ticket int) error {
		if err := d.AddKernel(id, k); err != nil {
			return err
		}
		d.DropKernel(id)
		module = d.helper.call("compile", ticket, uint32(k.Layout), uint32(k.Layout>>32), k.Label, k.Source, k.Entry)
		return nil
	})
	if errors.Is(err, fault.ErrCompile) && !module.IsUndefined() {
		return compileError(ctx, op, k, module, err)
	}
	if err != nil {
		return err
	}
	return d.locked(op, func() error {
		err := d.AddKernel(id, k)
		if err == nil {
			d.helper.call("addKernel", uint32(id), pipeline)
		}
		return err
	})
}

// compileError adds to a compiler's error which kernel it is about and which lines are to blame.
func compileError(ctx context.Context, op string, k *driver.Kernel, module js.Value, err error) (all error) {
	defer rescue(op, &all)
	e, _ := errors.AsType[*fault.OpError](err)
	detail := e.Detail
	if info, err := awaitPromise(ctx, op, module.Call("getCompilationInfo")); err == nil {
		if lines := diagnostics(info.Get("messages"), k.Source); lines != "" {
			detail = lines
		}
	}
	if k.Label != "" {
		detail = k.Label + ": " + detail
	}
	return fault.Fail(op, fault.ErrCompile, detail)
}

// diagnostics lists the errors among the messages of a compiler, each with the line that it is about.
func diagnostics(messages js.Value, source string) string {
	var list []string
	for i := range messages.Length() {
		if m := messages.Index(i); text(m, "type") == "error" {
			d := wgsl.Diagnostic{Line: int(number(m, "lineNum")), Column: int(number(m, "linePos")), Text: text(m, "message")}
			line, _ := wgsl.LineOf(source, d.Line)
			list = append(list, d.Show(line))
		}
	}
	return strings.Join(list, "\n")
}
