// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// span is which rows or columns an index names. Negative numbers count from the end.
type span struct {
	first, last int // last is not among them
	step        int
	from, to    bool // first and last were given
	one         bool // only the first
}

var every = span{step: 1}

func single(i int) span { return span{first: i, step: 1, from: true, one: true} }
func between(first, last int) span {
	return span{first: first, last: last, step: 1, from: true, to: true}
}

// of resolves the span for a dimension of n: count elements from first on.
func (s span) of(n int) (first, count int, ok bool) {
	first, last := s.first, s.last
	if first < 0 {
		first += n
	}
	if last < 0 {
		last += n
	}
	if s.one {
		return first, 1, first >= 0 && first < n
	}
	lowest, highest := 0, n // of first and last
	if s.step < 0 {
		lowest, highest = -1, n-1
	}
	if !s.from {
		first = lowest
		if s.step < 0 {
			first = highest
		}
	}
	if !s.to {
		last = highest
		if s.step < 0 {
			last = lowest
		}
	}
	if s.step < 0 {
		count = (first - last - s.step - 1) / -s.step
	} else {
		count = (last - first + s.step - 1) / s.step
	}
	within := func(v int, given bool) bool { return !given || v >= max(lowest, 0) && v <= highest }
	return first, max(count, 0), within(first, s.from) && within(last, s.to) && (!s.from || !s.to || s.step < 0 || first <= last)
}

func (s span) String() string {
	if s.one {
		return itoa(s.first)
	}
	text := ":"
	if s.from {
		text = itoa(s.first) + text
	}
	if s.to {
		text += itoa(s.last)
	}
	if s.step != 1 {
		text += ":" + itoa(s.step)
	}
	return text
}

// sliceOf is the part of a node that spans name: a view of a matrix where that is possible.
func sliceOf(x *node, rows, cols span) *node {
	const op = "Slice"
	if x.Err != nil {
		return x
	}
	i, height, ok := rows.of(x.Rows)
	j, width, fits := cols.of(x.Cols)
	if !ok || !fits {
		return expr.Failed(fail(op, buffer.ErrIndex, "rows ", rows.String(), ", columns ", cols.String(), " of ", x.Shape().String()))
	}
	if m, is := x.Source.(*core); is && rows.step == 1 && cols.step == 1 {
		v := m.lentView(op, window(op, i, i+height, j, j+width)) // which nobody could close
		return v.operand("Eval")
	}
	s := &shaping{op: op, t: x.Type}
	down, along := s.at(height, width)
	scaled := func(index *node, step, first int) *node {
		if step != 1 {
			index = s.apply(fuse.OpMul, index, s.n(step))
		}
		return s.plus(index, first)
	}
	n := s.gather(x, scaled(down, rows.step, i), scaled(along, cols.step, j))
	if s.err != nil {
		return expr.Failed(s.err)
	}
	return n
}

// index reads what stands in brackets behind an operand: rows, or rows and columns.
func (e *evaluator) index(start int, x *node, depth int) *node {
	e.open++
	spans := [2]span{every, every}
	for k := range spans {
		spans[k] = e.span(depth)
		if k > 0 || !e.accept(',') {
			break
		}
	}
	if e.err == nil && !e.accept(']') {
		return e.malformed()
	}
	e.open--
	switch {
	case e.err != nil:
		return expr.Failed(e.err)
	case isNumber(x):
		return e.fail(start, ErrSyntax, "an index of a number")
	}
	n := sliceOf(x, spans[0], spans[1])
	if n.Err != nil {
		return expr.Failed(e.placed(start, n.Err))
	}
	return n
}

// span reads a number, or first:last:step, of which all may be left out.
func (e *evaluator) span(depth int) span {
	s := every
	ends := func() bool { return strings.IndexByte(":,]", e.scan.Char(e.next)) >= 0 && e.scan.Char(e.next) != 0 }
	if !ends() {
		s.first, s.from = e.whole(depth), true
	}
	if !e.accept(':') {
		if !s.from {
			e.malformed()
		}
		s.one = true
		return s
	}
	if !ends() {
		s.last, s.to = e.whole(depth), true
	}
	if e.accept(':') && !ends() {
		if s.step = e.whole(depth); s.step == 0 {
			e.malformed("a step of 0")
		}
	}
	return s
}

// whole reads a number without a fraction.
func (e *evaluator) whole(depth int) int {
	at := e.next
	x := e.binary(0, depth+1)
	if e.err != nil {
		return 0
	}
	if !isNumber(x) || x.Value != float64(int32(x.Value)) {
		e.next = at
		e.malformed("an index is a whole number")
		return 0
	}
	return int(x.Value)
}

// lineEnds reports whether the next token is in another line than the one before it, outside of brackets.
func (e *evaluator) lineEnds() bool {
	if e.open > 0 || e.next == 0 {
		return false
	}
	return strings.ContainsAny(e.scan.Text[e.scan.Pos(e.next-1):e.scan.Pos(e.next)], "\n\r")
}

// statements reads all of them and returns the value of the last one.
func (e *evaluator) statements() *node {
	var x *node
	for e.err == nil {
		for e.accept(';') {
		}
		if e.next == len(e.scan.Tokens) && x != nil {
			break
		}
		name, start := "", e.next
		if e.scan.IsWord(start) && e.scan.Char(start+1) == '=' && !strings.HasPrefix(e.scan.Text[e.scan.Pos(start+1):], "==") {
			name = e.scan.At(start)
			e.next += 2
		}
		x = e.binary(0, 0)
		switch {
		case e.err != nil:
		case e.next < len(e.scan.Tokens) && e.scan.Char(e.next) != ';' && !e.lineEnds():
			e.malformed()
		case name != "":
			if e.define != nil {
				x = e.define(name, x)
			}
			if e.names == nil {
				e.names = map[string]*node{}
			}
			e.names[name] = x
		}
	}
	return x
}

// evaluatorOf reads texts of matrices.
func evaluatorOf[T Elem](vars map[string]*Dense[T]) *evaluator {
	return &evaluator{t: typeOf[T](), matrix: func(name string) *node {
		if m, ok := vars[name]; ok {
			return m.core().operand("Eval")
		}
		return nil
	}}
}
