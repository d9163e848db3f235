// SPDX-License-Identifier: Apache-2.0

package software

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// TestIdleRefused has a list refused. The device is not idle until a call has returned that.
func TestIdleRefused(t *testing.T) {
	d := prepared(t, 0, time.Hour, func() {})
	check(t, d.Wait(t.Context()))
	if !d.Idle() {
		t.Error("at work when everything is done")
	}
	d.refuse(&work{number: 1}, "a", fault.Fail("test", fault.ErrLimit))
	if d.Idle() {
		t.Error("idle with an error that nobody knows")
	}
	if err := d.Submit(new(driver.CommandList)); !errors.Is(err, fault.ErrLimit) || !d.Idle() {
		t.Errorf("%v, idle: %v", err, d.Idle())
	}
	check(t, d.Close())
	if d.Idle() {
		t.Error("idle after it was closed")
	}
}

// timedEngine has programs that know how long they take.
type timedEngine struct {
	testEngine
	takes *time.Duration
}

func (e timedEngine) Compile(_ context.Context, k *driver.Kernel) (Program, error) {
	return timedProgram{testProgram{k.Reference}, e.takes}, nil
}

type timedProgram struct {
	testProgram
	takes *time.Duration
}

func (p timedProgram) Takes(*Dispatch) time.Duration { return *p.takes }

// TestBrief looks who runs works where there is one thread: the call that submits them, unless they take long or nobody knows, and now
// and then a goroutine, which lets the page have its turn.
func TestBrief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		var d *Device
		gate := make(chan struct{}) // closed when goroutines may go on
		close(gate)
		run := func() {
			if !d.queue.brief.runs {
				<-gate
			}
			ran++
		}
		d = prepared(t, 0, time.Hour, run)
		var takes time.Duration
		d.engine, d.queue.burst = timedEngine{takes: &takes}, 1
		check(t, d.NewKernel(t.Context(), 2, &driver.Kernel{Source: "-", Entry: "-", Reference: func([3]uint32, []byte, [][]byte) { run() }}))
		for _, c := range []struct {
			takes  time.Duration
			launch int // so many, each in a list of its own
			want   int // that have run when Submit returns
		}{{0, 1, 0}, {time.Millisecond, 5, 5}, {time.Second, 1, 0}, {time.Millisecond, 12, 9}} {
			check(t, d.Wait(t.Context()))
			synctest.Wait()
			ran, takes = 0, c.takes
			d.queue.brief.since = 0
			gate = make(chan struct{})
			for range c.launch {
				var list driver.CommandList
				list.Dispatch(2, 1, [3]uint32{1, 1, 1}, nil)
				check(t, d.Submit(&list))
			}
			if ran != c.want || d.Idle() != (c.want == c.launch) {
				t.Errorf("%d of %d lists of %v have run, want %d; idle: %v", ran, c.launch, c.takes, c.want, d.Idle())
			}
			close(gate)
		}
		check(t, d.Wait(t.Context()))
		if ran != 12 || !d.Idle() {
			t.Errorf("%d of 12 lists have run", ran)
		}
		into := make([]byte, 8)
		check(t, d.Read(t.Context(), driver.Transfer{Buffer: 1, Width: 8, Pitch: 8, Count: 1, Host: driver.HostBytes(into)}))
		check(t, d.Close())
	})
}
