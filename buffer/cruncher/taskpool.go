// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of tasks in pools.
var (
	ErrCallback = fault.New("ErrCallback", "the callback panicked")
	ErrStopped  = fault.New("ErrStopped", "an earlier task failed")
)

// TaskPool is a list of tasks for a [DevicePool], or for a loop over [TaskPool.Next]. Its zero value is empty. Its methods may
// be called from several goroutines.
//
// It is ClTaskPool of Cekirdekler.
type TaskPool struct {
	mu   sync.Mutex
	list []*Task
	next int
}

// Feed adds tasks at the end.
func (p *TaskPool) Feed(tasks ...*Task) error {
	if p == nil {
		return fail("Feed", gpu.ErrInvalid, "nil pool")
	}
	for _, t := range tasks {
		if t == nil || t.group == nil {
			return fail("Feed", gpu.ErrInvalid, "nil task")
		}
	}
	p.mu.Lock()
	p.list = append(p.list, tasks...)
	p.mu.Unlock()
	return nil
}

// Next returns the next task, or nil after the last one.
func (p *TaskPool) Next() *Task {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next >= len(p.list) {
		return nil
	}
	p.next++
	return p.list[p.next-1]
}

// Reset makes Next begin again with the first task.
func (p *TaskPool) Reset() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.next = 0
	p.mu.Unlock()
}

// Remaining returns how many tasks Next has not returned yet.
func (p *TaskPool) Remaining() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list) - p.next
}

// Len returns how many tasks there are in all.
func (p *TaskPool) Len() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list)
}
