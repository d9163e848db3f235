// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver/expected"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// reporter is what cases need of a *testing.T.
type reporter interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	FailNow()
	Failed() bool
	Logf(format string, args ...any)
	Cleanup(f func())
}

var (
	_ reporter = (*testing.T)(nil)
	_ reporter = (*recorder)(nil)
)

// recorder is the reporter of a case that may fail.
type recorder struct {
	mu       sync.Mutex
	failed   bool
	messages []string
	cleanups []func()
}

func (r *recorder) fail(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.messages = append(r.messages, message)
}

func (r *recorder) Helper()                   {}
func (r *recorder) Logf(string, ...any)       {}
func (r *recorder) Error(args ...any)         { r.fail(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.fail(fmt.Sprintf(f, a...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) FailNow() {
	r.fail("FailNow")
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// cleanUp calls the functions that Cleanup was given. One that panics does not keep the others from being called.
func (r *recorder) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		r.recovering(f)
	}
}

// recovering calls f, whose panic is a failure.
func (r *recorder) recovering(f func()) {
	defer func() {
		if p := recover(); p != nil {
			r.fail("panic: " + fault.Panic(p))
		}
	}()
	f()
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.messages, "; ")
}

// split divides cases into those that must pass and those that must fail.
func split(t reporter, cases []testCase, table []expected.Failure) (pass []testCase, fail map[string]string) {
	fail = map[string]string{}
	for _, f := range table {
		known := len(fail)
		for _, c := range cases {
			if f.Covers(c.name) {
				fail[c.name] = f.Why
			}
		}
		if len(fail) == known {
			t.Errorf("no case of its own begins with %s, which %s is expected to fail", f.Case, f.Driver)
		}
	}
	for _, c := range cases {
		if _, fails := fail[c.name]; !fails {
			pass = append(pass, c)
		}
	}
	return pass, fail
}

// expectFailure runs a case several times on a device of its own, which a hang or a panic may leave in any state. It must fail once.
func expectFailure(t reporter, open opener, c testCase, why string, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r, done := new(recorder), make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanUp()
		r.recovering(func() {
			dev := newDevice(ctx, r, open)
			for range rounds {
				round(ctx, r, dev, open, c)
			}
		})
	}()
	select {
	case <-done:
	case <-time.After(limit + limit/8): // so much later than ctx, the case does not heed it
		r.Errorf("it did not end within %v", limit)
	}
	if !r.Failed() {
		t.Errorf("%s is expected to fail (%s) and passes: remove it from the table in gpu/driver/expected", c.name, why)
		return
	}
	t.Logf("%s fails as expected (%s): %s", c.name, why, r.text())
}
