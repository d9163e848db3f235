// SPDX-License-Identifier: Apache-2.0

// Package fault has the errors that several packages return, and the type that tells which call failed, on what and why. Packages
// re-export those that their users meet: one name is one error everywhere.
package fault

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sentinel is an error that callers compare with [errors.Is]. Its code is the name of the variable that holds it; the
// command line and JavaScript report it.
type Sentinel struct{ code, text string }

// New makes a sentinel. Packages call it for their package-level variables only.
func New(code, text string) *Sentinel { return &Sentinel{code, text} }

// Error returns the sentinel's text.
func (s *Sentinel) Error() string { return s.text }

// Code returns the name of the variable, for example "ErrClosed".
func (s *Sentinel) Code() string { return s.code }

// Code returns the code of the outermost sentinel in err's chain, or "Error" when there is none.
func Code(err error) string {
	if s, ok := errors.AsType[*Sentinel](err); ok {
		return s.code
	}
	return "Error"
}

// The errors every driver uses.
var (
	ErrClosed      = New("ErrClosed", "use after close")
	ErrCompile     = New("ErrCompile", "kernel does not compile")
	ErrDeviceLost  = New("ErrDeviceLost", "device lost")
	ErrForeign     = New("ErrForeign", "object of another device")
	ErrInvalid     = New("ErrInvalid", "invalid argument")
	ErrLimit       = New("ErrLimit", "beyond a limit of the device")
	ErrMapped      = New("ErrMapped", "buffer is mapped")
	ErrNoAdapter   = New("ErrNoAdapter", "no adapter")
	ErrNoMemory    = New("ErrNoMemory", "out of device memory")
	ErrReadOnly    = New("ErrReadOnly", "memory is read-only")
	ErrUnsupported = New("ErrUnsupported", "not supported")
)

// Shape is the rows and columns of an operand, for messages.
type Shape [2]int

// String formats a shape as "3x4".
func (s Shape) String() string { return strconv.Itoa(s[0]) + "x" + strconv.Itoa(s[1]) }

// OpError says which operation failed, on what, and why. Err holds one of the sentinels.
type OpError struct {
	Op     string  // package and operation, for example "matrix: Mul"
	Shapes []Shape // the operands, where shapes matter
	Detail string  // what the caller needs to mend it: what would fit
	Err    error
}

// Error reads, for example, "matrix: Mul: 3x4 by 5x6: dimension mismatch: the second factor needs 4 rows".
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	for i, s := range e.Shapes {
		b.WriteString([]string{": ", " by "}[min(i, 1)] + s.String())
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return strings.Map(printable, b.String())
}

// printable replaces what is no text, which names may have that callers gave.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
		return utf8.RuneError
	}
	return r // likewise for what is not UTF-8
}

// Short bounds a text of the caller's.
func Short(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// Fail is the usual way to make an [OpError] without shapes. What an OpError underneath tells is kept, but for its operation: that of
// the outermost call is the one that a caller knows.
func Fail(op string, err error, detail ...string) error {
	e := &OpError{Op: op, Err: err, Detail: strings.Join(detail, "")}
	if under, ok := err.(*OpError); ok { //nolint:errorlint // what wraps one may have other words for it
		e.Err, e.Shapes = under.Err, under.Shapes
		e.Detail = under.Detail + e.Detail
	}
	e.Detail = strings.TrimPrefix(e.Detail, "; ") // of more to be told
	return e
}

// In names the call of a package that failed because one of a lower package did. It keeps nil.
func In(prefix, op string, err error) error {
	if err == nil {
		return nil
	}
	return Fail(prefix+op, err)
}

// Ended reports why a call that may wait should not begin: it has no context, or one that has ended. The call's name is joined only then.
func Ended(ctx context.Context, op ...string) error {
	switch {
	case ctx == nil:
		return Fail(strings.Join(op, ""), ErrInvalid, "nil context")
	case ctx.Err() != nil:
		return Fail(strings.Join(op, ""), ctx.Err())
	}
	return nil
}

// Text joins strings and numbers for the detail of an error: package fmt would be a tenth of a page's program.
func Text(parts ...any) string {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case int:
			b = strconv.AppendInt(b, int64(p), 10)
		case int64:
			b = strconv.AppendInt(b, p, 10)
		case uint32:
			b = strconv.AppendUint(b, uint64(p), 10)
		case uint64:
			b = strconv.AppendUint(b, p, 10)
		}
	}
	return string(b)
}

// Count is a number of something, for people: "1 row", "2 rows".
func Count(n int, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return strconv.Itoa(n) + " " + unit
}

// Needs says what would fit: "the second factor needs 4 rows".
func Needs(what string, n int, unit string) string { return what + " needs " + Count(n, unit) }

// Panic puts what recover returned into words, "" for nil.
func Panic(cause any) (text string) {
	if cause == nil {
		return ""
	}
	defer func() {
		_ = recover() // of a method of cause
		text = cmp.Or(text, "unknown reason")
	}()
	if err, ok := cause.(error); ok {
		return err.Error()
	}
	return Text(cause)
}
