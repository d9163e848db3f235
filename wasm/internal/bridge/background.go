// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"sync"
)

// background runs something that waits for the device in a goroutine of its own, which then settles the ticket. It
// returns when the other has begun to wait: what it queues is then ahead of everything that comes later.
func (b *Bridge) background(ticket uint32, run func(context.Context) error) {
	b.answer(ticket, func(ctx context.Context) (any, error) { return nil, run(ctx) })
}

// answer is background for what reports a value.
func (b *Bridge) answer(ticket uint32, run func(context.Context) (any, error)) {
	began := &beginning{Context: context.Background(), done: make(chan struct{})}
	ours := 0
	if !b.reaches() {
		ours = 1
	}
	b.count(ours)
	b.waiting.Go(func() {
		var value any
		err := guard(began, func(ctx context.Context) (err error) {
			value, err = run(ctx)
			return err
		})
		began.begin()
		b.count(-ours)
		b.settle(ticket, value, err)
	})
	<-began.done
}

// count counts the answers that only this program works on.
func (b *Bridge) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked += n
}

func guard(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = internal(p)
		}
	}()
	return run(ctx)
}

// beginning is a context that notices when somebody begins to wait: nobody else asks for Done.
type beginning struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func (c *beginning) begin() { c.once.Do(func() { close(c.done) }) }

// Done implements [context.Context].
func (c *beginning) Done() <-chan struct{} {
	c.begin()
	return nil
}
