// SPDX-License-Identifier: Apache-2.0

package graph

// queue is a list that elements join at its end and leave at its beginning. Its memory serves again.
type queue[T any] struct {
	list []T
	head int // where those begin that have not left
}

func (q *queue[T]) len() int { return len(q.list) - q.head }

// all returns the elements, the first one in front, until the next push.
func (q *queue[T]) all() []T { return q.list[q.head:] }

func (q *queue[T]) push(v T) {
	if len(q.list) == cap(q.list) && q.head >= q.len() {
		n := copy(q.list, q.all())
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, v)
}

func (q *queue[T]) pop() (v T) {
	v, q.list[q.head] = q.list[q.head], v
	q.head++
	return v
}
