// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// NewKernel implements [driver.Device]. The id is taken only when the kernel is compiled, so that nothing can dispatch
// it before.
func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) (err error) {
	const op = "browser: NewKernel"
	defer rescue(op, &err)
	if k == nil {
		return fault.Fail(op, fault.ErrInvalid, "no kernel")
	}
	module, w, err := d.startKernel(id, k)
	if err != nil {
		return err
	}
	pipeline, err := d.promises.await(ctx, op, w)
	if errors.Is(err, fault.ErrCompile) {
		return d.compileError(ctx, op, k, module, err)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.AddKernel(id, k); err != nil {
		return err
	}
	d.engine.addKernel(id, pipeline)
	return nil
}

func (d *device) startKernel(id driver.KernelID, k *driver.Kernel) (module js.Value, w *wait, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.objects.AddKernel(id, k); err != nil {
		return js.Undefined(), nil, err
	}
	d.objects.DropKernel(id)
	// The error scope keeps the page's console clean: the pipeline's promise tells of all errors.
	d.handle.Call("pushErrorScope", "validation")
	module = d.handle.Call("createShaderModule", map[string]any{"label": k.Label, "code": k.Source})
	made := d.handle.Call("createComputePipelineAsync", map[string]any{
		"label":   k.Label,
		"layout":  d.engine.pipelineLayout(k.Layout),
		"compute": map[string]any{"module": module, "entryPoint": k.Entry},
	})
	d.promises.follow(d.handle.Call("popErrorScope"), d.promises.expect(func(outcome) {}))
	w = d.promises.wait()
	d.promises.follow(made, w.ticket)
	return module, w, nil
}

// compileError adds to a compiler's error which kernel it is about and which lines are to blame.
func (d *device) compileError(ctx context.Context, op string, k *driver.Kernel, module js.Value, err error) error {
	e, _ := errors.AsType[*fault.OpError](err)
	detail := e.Detail
	w := d.promises.wait()
	d.promises.follow(module.Call("getCompilationInfo"), w.ticket)
	if info, err := d.promises.await(ctx, op, w); err == nil {
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
	lines := strings.Split(source, "\n")
	var list []string
	for i := range messages.Length() {
		m := messages.Index(i)
		if text(m, "type") != "error" {
			continue
		}
		line, column := int(number(m, "lineNum")), int(number(m, "linePos"))
		s := "line " + strconv.Itoa(line) + ":" + strconv.Itoa(column) + ": " + text(m, "message")
		if line >= 1 && line <= len(lines) {
			s += "\n\t" + strings.TrimSpace(lines[line-1])
		}
		list = append(list, s)
	}
	return strings.Join(list, "\n")
}

func (d *device) FreeKernel(id driver.KernelID) {
	var err error
	defer rescue("browser: FreeKernel", &err) // nothing of WebGPU's throws here
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.objects.DropKernel(id) {
		d.engine.freeKernel(id)
	}
}
