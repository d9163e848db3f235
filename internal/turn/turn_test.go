// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, order := New(), []int{}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Take(ended); err != nil {
			t.Error("a free lock:", err)
		}
		if l.Try() {
			t.Error("somebody else has it")
		}
		if err := l.Take(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		waits, leave := context.WithCancel(t.Context())
		for i, ctx := range []context.Context{t.Context(), waits, t.Context()} {
			go func() {
				if err := l.Take(ctx); err != nil {
					return
				}
				order = append(order, i)
				l.Give()
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		l.Give()
		synctest.Wait()
		if len(order) != 2 || order[0] != 0 || order[1] != 2 {
			t.Error("the lock went to", order)
		}
		if !l.Try() {
			t.Error("nobody has it")
		}
	})
}

// Many who want the lock, some of whom stop waiting at any moment.
func TestLockContended(t *testing.T) {
	l, held, count := New(), 0, 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2000 {
				ctx, cancel := context.WithCancel(context.Background())
				if i%2 == 0 {
					go cancel()
				}
				if err := l.Take(ctx); err == nil {
					if held++; held != 1 {
						t.Error("two have the lock")
					}
					count++
					held--
					l.Give()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if free := l.Try(); count < 8000 || !free {
		t.Error("the lock was had", count, "times, and is free at the end:", free)
	}
}
