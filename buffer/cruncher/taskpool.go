// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"
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
	list []entry
	next int
}

// entry is a task in a pool, with what its group adds to its types.
type entry struct {
	task  *Task
	types TaskType
	group *TaskGroup // whose tasks run on the same device each time
}

// Feed adds tasks at the end.
func (p *TaskPool) Feed(tasks ...*Task) error {
	list, err := entries("Feed", p != nil, tasks)
	if err == nil {
		p.add(list)
	}
	return err
}

func entries(op string, ok bool, tasks []*Task) ([]entry, error) {
	if !ok {
		return nil, fail(op, gpu.ErrInvalid, "nil pool or group")
	}
	var list []entry
	for _, t := range tasks {
		if t == nil || t.group == nil {
			return nil, fail(op, gpu.ErrInvalid, "nil task")
		}
		list = append(list, entry{task: t, types: t.types})
	}
	return list, nil
}

func (p *TaskPool) add(list []entry) {
	p.mu.Lock()
	p.list = append(p.list, list...)
	p.mu.Unlock()
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
	return p.list[p.next-1].task
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

// GroupType says how the tasks of a [TaskGroup] run. The values are those of Cekirdekler's ClTaskGroupType, whose groups do
// nothing yet.
type GroupType uint8

// The types of groups.
const (
	GroupComplete         GroupType = 0  // all devices work for the group alone until it is complete
	GroupAsync            GroupType = 1  // the tasks run as they would without a group
	GroupSameDevice       GroupType = 2  // on one device, as between SelectBegin and SelectEnd
	GroupRepeatSameDevice GroupType = 4  // and on the same one whenever the group is fed again
	GroupInOrder          GroupType = 8  // on one device, one after the other, as between SerialBegin and SerialEnd
	GroupRepeatInOrder    GroupType = 16 // and on the same one whenever the group is fed again
)

// TaskGroup is tasks that run in the same way. It is made by [NewTaskGroup].
type TaskGroup struct {
	kind GroupType
	mu   sync.Mutex
	list []entry
}

// NewTaskGroup makes a group without tasks.
func NewTaskGroup(kind GroupType) (*TaskGroup, error) {
	switch kind {
	case GroupComplete, GroupAsync, GroupSameDevice, GroupRepeatSameDevice, GroupInOrder, GroupRepeatInOrder:
		return &TaskGroup{kind: kind}, nil
	}
	return nil, fail("NewTaskGroup", gpu.ErrInvalid, "unknown type")
}

// Add adds tasks at the end. Tasks with types of their own that begin or end a section are refused.
func (g *TaskGroup) Add(tasks ...*Task) error {
	list, err := entries("Add", g != nil, tasks)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.types&sectionTypes != 0 {
			return fail("Add", gpu.ErrInvalid, "a section within a group")
		}
	}
	g.mu.Lock()
	g.list = append(g.list, list...)
	g.mu.Unlock()
	return nil
}

// FeedGroup adds the tasks of a group at the end.
func (p *TaskPool) FeedGroup(g *TaskGroup) error {
	if p == nil || g == nil {
		return fail("FeedGroup", gpu.ErrInvalid, "nil pool or group")
	}
	g.mu.Lock()
	list := slices.Clone(g.list)
	g.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	first, last := &list[0], &list[len(list)-1]
	switch g.kind {
	case GroupComplete:
		first.types |= GlobalSyncFirst
		last.types |= GlobalSyncLast
	case GroupSameDevice, GroupRepeatSameDevice:
		first.types |= SelectBegin
		last.types |= SelectEnd
	case GroupInOrder, GroupRepeatInOrder:
		first.types |= SerialBegin
		last.types |= SerialEnd
	}
	if g.kind == GroupRepeatSameDevice || g.kind == GroupRepeatInOrder {
		for i := range list {
			list[i].group = g
		}
	}
	p.add(list)
	return nil
}
