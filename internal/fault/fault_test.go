// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

func TestOpError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fault.OpError{Op: "matrix: Mul", Shapes: []fault.Shape{{3, 4}, {5, 6}}, Err: fault.ErrInvalid}, "matrix: Mul: 3x4 by 5x6: invalid argument"},
		{&fault.OpError{Op: "matrix: Inv", Shapes: []fault.Shape{{3, 4}}, Err: fault.ErrInvalid, Detail: "not square"}, "matrix: Inv: 3x4: invalid argument: not square"},
		{&fault.OpError{Op: "gpu: Open"}, "gpu: Open"},
		{fault.Fail("gpu: Open", fault.ErrNoAdapter), "gpu: Open: no adapter"},
		{fault.Fail("gpu: Open", fault.ErrNoAdapter, "of ", "3"), "gpu: Open: no adapter: of 3"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	for n, want := range map[int]string{0: "x needs 0 rows", 1: "x needs 1 row", 2: "x needs 2 rows"} {
		if got := fault.Needs("x", n, "row"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	err := fmt.Errorf("loading: %w", fault.Fail("buffer: Read", fault.ErrClosed))
	if !errors.Is(err, fault.ErrClosed) || errors.Is(err, fault.ErrMapped) {
		t.Error("the sentinel is lost")
	}
	if op, ok := errors.AsType[*fault.OpError](err); !ok || op.Op != "buffer: Read" {
		t.Error("the operation is lost")
	}
}

func TestCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "Error"},
		{errors.New("other"), "Error"},
		{fault.ErrDeviceLost, "ErrDeviceLost"},
		{fault.Fail("gpu: Open", fault.ErrNoAdapter), "ErrNoAdapter"},
		{fmt.Errorf("%w, and before that %w", fault.ErrLimit, fault.ErrClosed), "ErrLimit"},
		{fault.New("ErrMine", "mine"), "ErrMine"},
	} {
		if got := fault.Code(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
	if fault.ErrNoMemory.Code() != "ErrNoMemory" || fault.ErrNoMemory.Error() != "out of device memory" {
		t.Errorf("got %q and %q", fault.ErrNoMemory.Code(), fault.ErrNoMemory.Error())
	}
}

type wicked struct{}

func (wicked) Error() string { panic("again") }

func TestPanic(t *testing.T) {
	for want, cause := range map[string]any{"": nil, "text": "text", "closed": fault.New("x", "closed"), "7": 7, "unknown reason": wicked{}} {
		if got := fault.Panic(cause); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if fault.Panic("") == "" {
		t.Error("a panic without a text is none")
	}
}

// TestTextsOfCallers has names in errors that are no text, or long.
func TestTextsOfCallers(t *testing.T) {
	err := fault.Fail("x: Y", fault.ErrInvalid, fault.Short("\x00a\xff\x1b[31m\u009b\n"), fault.Short(strings.Repeat("ä", 1000)))
	want := "x: Y: invalid argument: \ufffda\ufffd\ufffd[31m\ufffd\n" + strings.Repeat("ä", 30) + "..."
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
