// SPDX-License-Identifier: Apache-2.0

package graph

// lane is a line of tasks that are ready, those that have waited longest in front.
type lane struct {
	list []*Task
	head int
}

func (l *lane) len() int { return len(l.list) - l.head }

func (l *lane) at(i int) *Task { return l.list[l.head+i] }

func (l *lane) add(t *Task) {
	if l.head > 0 && len(l.list) == cap(l.list) {
		n := copy(l.list, l.list[l.head:])
		clear(l.list[n:])
		l.list, l.head = l.list[:n], 0
	}
	l.list = append(l.list, t)
}

// remove takes a task out, and moves those on the shorter side of it.
func (l *lane) remove(i int) {
	i += l.head
	if i-l.head < len(l.list)-i {
		copy(l.list[l.head+1:i+1], l.list[l.head:i])
		l.list[l.head] = nil
		l.head++
		return
	}
	copy(l.list[i:], l.list[i+1:])
	l.list[len(l.list)-1] = nil
	l.list = l.list[:len(l.list)-1]
}

// lanes are the lines of a graph: for tasks of devices and of the host, by priority where that counts.
type lanes [2][HighestPriority + 1]lane

// lane returns a task's line.
func (g *Graph) lane(t *Task) *lane {
	class, level := 0, 0
	if t.body.host {
		class = 1
	}
	if g.ranked() {
		level = t.priority
	}
	return &g.ready[class][level]
}

func (g *Graph) ranked() bool { return g.conf.mode == PriorityFirst || g.conf.mode == DataAware }

// each calls fn for every task that is ready until it returns false.
func (g *Graph) each(fn func(*Task) bool) {
	for class := range g.ready {
		for level := range g.ready[class] {
			l := &g.ready[class][level]
			for _, t := range l.list[l.head:] {
				if !fn(t) {
					return
				}
			}
		}
	}
}
