// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// tracer keeps the last dispatches.
type tracer struct {
	limit  int
	events []event
	next   int
}

type event struct {
	t     *Task
	where int
	uid   uint64 // of the first input
	err   string
	timing
}

func (r *tracer) add(d *Dispatch, where int) {
	if r.limit == 0 {
		return
	}
	e := event{t: d.t, where: where, uid: d.uid, timing: d.timing}
	if d.err != nil {
		e.err = d.err.Error()
	}
	if len(r.events) < r.limit {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % r.limit
}

// WriteTrace writes the dispatches that [WithTrace] kept in Chrome's trace-event format, which Perfetto and
// chrome://tracing open: a row for each device and one for the host.
//
// The format is that of Google's document "Trace Event Format".
func (g *Graph) WriteTrace(w io.Writer) error {
	if g == nil || w == nil {
		return fail("WriteTrace", gpu.ErrInvalid, "nil argument")
	}
	g.lock()
	events := append(append([]event{}, g.trace.events[g.trace.next:]...), g.trace.events[:g.trace.next]...)
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
	args := `{"block":` + strconv.FormatUint(e.uid, 10) + `,"waited_us":` + micros(e.waited)
	if e.err != "" {
		args += `,"error":` + jsonString(e.err)
	}
	part := func(name, cat string, from, to time.Duration) {
		s.WriteString(`{"ph":"X","pid":1,"tid":` + itoa(e.where) + `,"name":` + jsonString(name) + `,"cat":"` + cat +
			`","ts":` + micros(from) + `,"dur":` + micros(max(to-from, 0)) + `,"args":` + args + "}},\n")
	}
	part(e.t.name, e.t.body.kind, e.begun, e.ended)
	if e.prepared > e.begun {
		part("bind", "bind", e.begun, e.prepared)
	}
}

func micros(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Microsecond), 'f', 3, 64)
}

// jsonString quotes text. strconv.Quote writes escapes that JSON does not have.
func jsonString(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s { // bytes that are not UTF-8 become U+FFFD
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20:
			b.WriteString(`\u00`)
			b.WriteByte(hex[r>>4])
			b.WriteByte(hex[r&15])
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
