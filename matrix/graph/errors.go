// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package, beside those of the packages below. A call that fails changes nothing.
var (
	ErrAffinity = fault.New("ErrAffinity", "no device of the graph may run the task")
	ErrBound    = fault.New("ErrBound", "a port without a channel, or with too many")
	ErrBusy     = fault.New("ErrBusy", "a task has not returned")
	ErrCycle    = fault.New("ErrCycle", "a cycle that nothing starts")
	ErrName     = fault.New("ErrName", "no such name, or one that is taken")
	ErrPanic    = fault.New("ErrPanic", "a task panicked")
	ErrShared   = fault.New("ErrShared", "the block has other references")
	ErrState    = fault.New("ErrState", "not in this state of the graph")
	ErrStopped  = fault.New("ErrStopped", "the graph was stopped")
	ErrTemplate = fault.New("ErrTemplate", "blocks of another template")
	ErrTornDown = fault.New("ErrTornDown", "the graph was torn down")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("graph: "+op, err, detail...)
}

// because adds why the graph was torn down, unless that was a call of Teardown.
func (g *Graph) because(err error) error {
	if g.cause == nil {
		return err
	}
	return errors.Join(err, g.cause)
}

func itoa(i int) string { return strconv.Itoa(i) }
