// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// fakePage keeps texts and notes what is settled.
type fakePage struct {
	page.Page
	settled chan outcome
}

type outcome struct {
	ticket uint32
	value  any
	err    error
}

func (p *fakePage) Text(number uint32) string { return map[uint32]string{7: "seven"}[number] }

func (p *fakePage) Settle(ticket uint32, value any, err error) {
	p.settled <- outcome{ticket, value, err}
}

func command(c page.Command, words ...uint32) []uint32 {
	return append([]uint32{uint32(len(words)+1)<<8 | uint32(c)}, words...)
}

// TestSession reads arguments, answers at once and later, cancels, and ends.
func TestSession(t *testing.T) {
	p := &fakePage{settled: make(chan outcome, 1)}
	var s *page.Session
	table := []page.Spec[int]{
		page.CmdGet: {Now: func(program int, r *page.Reader) any {
			return []any{program, r.Int(), r.Float(), r.Bool(), r.Text(), r.Index(3), page.Handle(r, "it", map[uint32]string{5: "five"})}
		}},
		page.CmdCompute: {Later: func(int, *page.Reader) page.Work {
			return func(ctx context.Context) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}},
		page.CmdSet: {Now: func(int, *page.Reader) any { panic("a mistake") }},
		page.CmdEnd: {Run: func(int, []uint32) { s.End() }},
	}
	s = page.New(p, 42, table)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run()
	}()
	ask := func(message []uint32) outcome {
		s.Post(message)
		return <-p.settled
	}
	want := []any{42, -2, float32(1.5), true, "seven", 2, "five"}
	got := ask(command(page.CmdGet, 1, 0xfffffffe, 0xffffffff, 0x3fc00000, 1, 7, 2, 5))
	values, ok := got.value.([]any)
	for i := range want {
		if !ok || got.ticket != 1 || got.err != nil || values[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	for _, c := range []struct {
		want  error
		words []uint32
	}{
		{fault.ErrInvalid, []uint32{2, 0}},
		{fault.ErrInvalid, []uint32{2, 0, 0, 0, 0, 7, 3, 5}},
		{fault.ErrClosed, []uint32{2, 0, 0, 0, 0, 7, 0, 6}},
	} {
		if got := ask(command(page.CmdGet, c.words...)); got.ticket != 2 || !errors.Is(got.err, c.want) {
			t.Errorf("%v: %v, want %v", c.words, got, c.want)
		}
	}
	if got := ask(command(page.CmdSet, 3)); !errors.Is(got.err, page.ErrInternal) {
		t.Errorf("a panic: %v", got)
	}
	s.Post(command(page.CmdCompute, 4))
	s.Post(command(page.CmdCancel, 99))
	if got := ask(command(page.CmdCancel, 4)); got.ticket != 4 || !errors.Is(got.err, page.ErrAborted) {
		t.Errorf("cancelled: %v", got)
	}
	if got := ask(append(command(page.CmdCompute, 5), command(page.CmdEnd)...)); got.ticket != 5 || !errors.Is(got.err, page.ErrAborted) {
		t.Errorf("at the end: %v", got)
	}
	<-over
	if f := s.Untold(); f != nil {
		t.Error(f)
	}
}

// TestRests looks when a session says that nothing is left to do: not while the device or a goroutine is at work, and not before the page
// was told of an error.
func TestRests(t *testing.T) {
	p := &fakePage{settled: make(chan outcome, 1)}
	busy, end := false, make(chan struct{})
	s := page.New(p, 0, []page.Spec[int]{
		page.CmdSet: {Run: func(int, []uint32) { page.Invalid("nobody asks") }},
		page.CmdCompute: {Later: func(int, *page.Reader) page.Work {
			return func(context.Context) (any, error) { <-end; return nil, nil }
		}},
	})
	rests := func(want bool, when string) {
		t.Helper()
		if got := s.Rests(); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	rests(false, "a device of which nobody knows")
	sent := false
	s.Sent = func() bool { return sent }
	rests(false, "commands that the device did not get")
	sent = true
	rests(true, "a device that has everything")
	s.Idle = func() bool { return !busy }
	rests(true, "at first")
	go s.Run()
	s.Post(command(page.CmdCompute, 1))
	rests(false, "a goroutine at work")
	close(end)
	<-p.settled
	for s.Count(0) > 0 {
		runtime.Gosched()
	}
	rests(true, "after it")
	busy = true
	rests(false, "a device at work")
	busy = false
	s.Post(command(page.CmdSet))
	for s.Count(0) > 0 {
		runtime.Gosched()
	}
	rests(false, "an error")
	if s.Untold() == nil {
		t.Error("no error")
	}
	rests(true, "an error that was told")
}

// TestCancelBehindCommand gives up a call that the command at hand waits for, and with it what is queued.
func TestCancelBehindCommand(t *testing.T) {
	p := &fakePage{settled: make(chan outcome, 1)}
	var s *page.Session
	read, waits := make(chan struct{}), make(chan struct{})
	s = page.New(p, 0, []page.Spec[int]{
		page.CmdRead: {Later: func(int, *page.Reader) page.Work {
			return func(ctx context.Context) (any, error) {
				defer close(read)
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}},
		page.CmdSet: {Run: func(int, []uint32) {
			close(waits)
			<-read
		}},
		page.CmdEnd: {Run: func(int, []uint32) { s.End() }},
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run()
	}()
	s.Post(command(page.CmdRead, 1))
	s.Post(command(page.CmdSet))
	<-waits
	s.Post(command(page.CmdCancel, 1))
	if got := <-p.settled; got.ticket != 1 || !errors.Is(got.err, page.ErrAborted) {
		t.Errorf("cancelled: %v", got)
	}
	s.Post(command(page.CmdEnd))
	<-over
}
