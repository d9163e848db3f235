// SPDX-License-Identifier: Apache-2.0

package software

import (
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// timed is a program that says how long it takes.
type timed struct {
	testProgram
	takes time.Duration
}

func (p timed) Takes(*Dispatch) time.Duration { return p.takes }

// Where there are threads, who submits brief work that waits for nothing does it itself; other work it leaves to another goroutine.
func TestBriefWithThreads(t *testing.T) {
	for takes, inline := range map[time.Duration]bool{0: false, time.Microsecond: true, time.Millisecond: false} {
		ran, gate := make(chan struct{}, 2), make(chan struct{})
		d := prepared(t, 1<<20, 0, func() {
			if !inline {
				<-gate
			}
			ran <- struct{}{}
		})
		d.queue.burst = manyBrief
		k := d.kernels[1]
		k.program = timed{k.program.(testProgram), takes}
		d.kernels[1] = k
		check(t, d.Wait(t.Context()))
		d.launch(t, 2)
		if len(ran) == 2 != inline {
			t.Errorf("of work of %v, %d kernels ran in Submit", takes, len(ran))
		}
		close(gate)
		check(t, d.Wait(t.Context()))
		if len(ran) != 2 {
			t.Errorf("of work of %v, %d kernels ran", takes, len(ran))
		}
		check(t, d.Close())
	}
}

// A kernel that panics in the call that submits it loses the device, as others do.
func TestBriefPanics(t *testing.T) {
	d := prepared(t, 1<<20, 0, func() { panic("broken") })
	d.queue.burst = manyBrief
	k := d.kernels[1]
	k.program = timed{k.program.(testProgram), time.Microsecond}
	d.kernels[1] = k
	check(t, d.Wait(t.Context()))
	d.launch(t, 1)
	select {
	case <-d.Lost():
	default:
		t.Error("the device is not lost")
	}
	if err := d.Submit(&driver.CommandList{}); err == nil {
		t.Error("it takes work")
	}
}
