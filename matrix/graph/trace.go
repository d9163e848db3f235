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

// WriteTrace writes the dispatches that [Config].Trace asks for in Chrome's trace-event format, which Perfetto and
// chrome://tracing open: a row for each device and one for the host.
//
// The format is that of Google's document "Trace Event Format".
func (g *Graph) WriteTrace(w io.Writer) error {
	if g == nil || w == nil {
		return fail("WriteTrace", gpu.ErrInvalid, "nil argument")
	}
	g.lock()
	events := slices.Clone(g.trace.all())
	g.unlock()
	var s strings.Builder
	s.WriteString(`{"displayTimeUnit":"ms","traceEvents":[` + "\n")
	for i := range len(g.devices) + 1 {
		s.WriteString(`{"ph":"M","pid":1,"tid":` + itoa(i) + `,"name":"thread_name","args":{"name":` + jsonString(g.workerName(i)) + "}},\n")
	}
	for _, d := range events {
		d.trace(&s)
	}
	s.WriteString(`{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"graph"}}` + "\n]}\n")
	_, err := io.WriteString(w, s.String())
	return err
}

func (d *Dispatch) trace(s *strings.Builder) {
	args := `{"block":` + strconv.FormatUint(d.number, 10) + `,"waited_us":` + micros(d.waited)
	if d.err != nil {
		args += `,"error":` + jsonString(d.err.Error())
	}
	s.WriteString(`{"ph":"X","pid":1,"tid":` + itoa(d.where()) + `,"name":` + jsonString(d.t.name) + `,"cat":"` + d.t.body.kind +
		`","ts":` + micros(d.begun) + `,"dur":` + micros(max(d.ended-d.begun, 0)) + `,"args":` + args + "}},\n")
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
