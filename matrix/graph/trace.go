// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/gpu"
)

// tracer keeps the last dispatches.
type tracer struct {
	events []event
	next   int
}

type event struct {
	t      *Task
	where  int
	number uint64 // of the first input
	err    error
	timing
}

func (r *tracer) add(d *Dispatch, where int) {
	e := event{t: d.t, where: where, number: d.number, err: d.err, timing: d.timing}
	if limit := d.g.conf.Trace; len(r.events) < limit {
		r.events = append(r.events, e)
	} else if limit > 0 {
		r.events[r.next] = e
		r.next = (r.next + 1) % limit
	}
}

// WriteTrace writes the dispatches that [Config].Trace asks for in Chrome's trace-event format, which Perfetto and
// chrome://tracing open: a row for each device and one for the host.
//
// The format is that of Google's document "Trace Event Format".
func (g *Graph) WriteTrace(w io.Writer) error {
	if g == nil || w == nil {
		return fail("WriteTrace", gpu.ErrInvalid, "nil argument")
	}
	g.lock()
	events := slices.Concat(g.trace.events[g.trace.next:], g.trace.events[:g.trace.next])
	g.unlock()
	var s strings.Builder
	s.WriteString(`{"displayTimeUnit":"ms","traceEvents":[` + "\n")
	for i := range len(g.devices) + 1 {
		s.WriteString(`{"ph":"M","pid":1,"tid":` + itoa(i) + `,"name":"thread_name","args":{"name":` + jsonString(g.workerName(i)) + "}},\n")
	}
	for i := range events {
		events[i].write(&s)
	}
	s.WriteString(`{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"graph"}}` + "\n]}\n")
	_, err := io.WriteString(w, s.String())
	return err
}

func (e *event) write(s *strings.Builder) {
	args := `{"block":` + strconv.FormatUint(e.number, 10) + `,"waited_us":` + micros(e.waited)
	if e.err != nil {
		args += `,"error":` + jsonString(e.err.Error())
	}
	s.WriteString(`{"ph":"X","pid":1,"tid":` + itoa(e.where) + `,"name":` + jsonString(e.t.name) + `,"cat":"` + e.t.body.kind +
		`","ts":` + micros(e.begun) + `,"dur":` + micros(max(e.ended-e.begun, 0)) + `,"args":` + args + "}},\n")
}

func micros(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Microsecond), 'f', 3, 64)
}

// jsonString quotes text. strconv.Quote writes escapes that JSON does not have.
func jsonString(s string) string {
	b := []byte{'"'}
	for _, r := range s { // bytes that are not UTF-8 become U+FFFD
		if r >= ' ' && r != '"' && r != '\\' {
			b = utf8.AppendRune(b, r)
		} else {
			b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		}
	}
	return string(append(b, '"'))
}
