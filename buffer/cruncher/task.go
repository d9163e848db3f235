// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// ErrCallback is the error of a task in a pool.
var ErrCallback = fault.New("ErrCallback", "the callback panicked")

// TaskType says what is special about a task in a [DevicePool]. Types are joined by |, and have the values of Cekirdekler's
// ClTaskType. Outside of a pool only TransferOnly has an effect.
type TaskType uint8

// The types.
const (
	SelectBegin     TaskType = 1 << iota // this task and the following ones run on one device, that with the least to do
	SelectEnd                            // this is the last one of them
	GlobalSyncFirst                      // all earlier tasks are complete before this one begins
	GlobalSyncLast                       // this task and all earlier ones are complete before later ones begin
	Broadcast                            // runs on every device, also on those added while its pool is under way
	TransferOnly                         // moves what the task would and runs no kernel
	SerialBegin                          // like SelectBegin; besides, a task begins when the callback of the one before has returned
	SerialEnd                            // this is the last one of them
)

// Task is a call of [Cruncher.Compute] to be made later. What the call is told is what was true when the task was made: flags
// of arrays and elements per item that change afterwards have no effect on it. A task does not change and can be
// computed any number of times, also by several goroutines at once if its arrays allow that.
//
// It is ClTask of Cekirdekler, https://github.com/tugrul512bit/Cekirdekler, file ClPipeline.cs.
type Task struct {
	id      int
	kernels string
	r       Range
	params  *group
	opts    TaskOptions
}

// TaskOptions are what else [NewTask] is told. The zero value is a task with nothing special about it.
type TaskOptions struct {
	Type TaskType
	// Callback is called each time that the task has ended, with the error of its computation or nil. In a pool the device has
	// no other task before it returns: it must not wait for the pool. A callback there that panics is [ErrCallback].
	Callback func(error)
}

// NewTask makes a task of [Cruncher.Compute] with the parameters, of which [Params] joins several.
func NewTask(id int, kernels string, r Range, p Param, opts TaskOptions) (*Task, error) {
	const op = "NewTask"
	r.Inner = slices.Clone(r.Inner)
	t := &Task{id: id, kernels: kernels, r: r, params: newGroup(p), opts: opts}
	list, err := gather([]Param{t.params})
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(splitNames(kernels)) == 0 {
		return nil, fail(op, kernel.ErrKernel, "none is named")
	}
	for i := range list {
		if opts.Type&Broadcast != 0 && list[i].flags.Write {
			return nil, fail(op, gpu.ErrInvalid, "a task for all devices would write ", list[i].name)
		}
	}
	t.r.TransferOnly = t.r.TransferOnly || opts.Type&TransferOnly != 0
	return t, nil
}

// Compute makes the call, on all devices of the cruncher, then the task's callback.
func (t *Task) Compute(ctx context.Context, cr *Cruncher) error {
	if t == nil || t.params == nil {
		return fail("Task", gpu.ErrInvalid, "no task")
	}
	err := t.compute(ctx, cr)
	if t.opts.Callback != nil {
		t.opts.Callback(err)
	}
	return err
}

func (t *Task) compute(ctx context.Context, cr *Cruncher) error {
	return cr.Compute(ctx, t.id, t.kernels, t.r, t.params)
}

// needs reports whether the task reads what only a cruncher's devices have.
func (t *Task) needs(cr *Cruncher) bool {
	return slices.ContainsFunc(t.params.list, func(p param) bool {
		if p.array == nil || p.flags.goesUp() || p.flags.WriteOnly {
			return false
		}
		holders, _ := p.array.stale(p.array.all())
		return slices.Contains(holders, cr)
	})
}
