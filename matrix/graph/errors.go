// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package, beside those of the packages below. A call that fails changes nothing.
var (
	ErrAffinity = fault.New("ErrAffinity", "no device of the graph may run the task")
	ErrBound    = fault.New("ErrBound", "the port has a channel already")
	ErrBusy     = fault.New("ErrBusy", "a task has not returned")
	ErrCapacity = fault.New("ErrCapacity", "a channel needs room for at least one block")
	ErrCycle    = fault.New("ErrCycle", "a cycle that nothing starts")
	ErrName     = fault.New("ErrName", "no such name, or one that is taken")
	ErrPanic    = fault.New("ErrPanic", "a task panicked")
	ErrShared   = fault.New("ErrShared", "others use the block, too")
	ErrState    = fault.New("ErrState", "not in this state of the graph")
	ErrStopped  = fault.New("ErrStopped", "the graph was stopped")
	ErrTemplate = fault.New("ErrTemplate", "blocks of another template")
	ErrTornDown = fault.New("ErrTornDown", "the graph was torn down")
	ErrUnbound  = fault.New("ErrUnbound", "a port without a channel")
)

// Faults are all the mistakes that [Graph.Finalize] found. errors.Is and errors.As look at every one.
type Faults []error

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, err := range f {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults.
func (f Faults) Unwrap() []error { return f }

func fail(op string, err error, detail ...string) error {
	return fault.Fail("graph: "+op, err, detail...)
}

// ended is an error of a graph that was torn down because the context of its Run ended: both errors at once.
type ended struct{ err, cause error }

func (e ended) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e ended) Unwrap() []error { return []error{e.err, e.cause} }

// because adds why the graph was torn down, if its caller did not ask for that.
func (g *Graph) because(err error) error {
	if g.cause == nil {
		return err
	}
	return ended{err, g.cause}
}

func itoa(i int) string { return strconv.Itoa(i) }
