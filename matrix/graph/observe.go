// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/gpu"
)

// Work counts what a task or a device has done. Times are totals. Run is the time of dispatches with their transfers. On a device that is
// the time to queue work, unless the graph has [Config].Sync. The host runs several tasks at once, so its total may exceed the elapsed
// time.
type Work struct {
	Name       string
	Dispatches uint64
	Failures   uint64        // dispatches that failed, not counting those that only passed on a failure of their input
	Retries    uint64        // dispatches that began anew elsewhere when a device was lost
	Devices    []uint64      // a task's dispatches by device, in the order of New, and at last those of the host
	Wait       time.Duration // from ready to a worker
	Run        time.Duration // making blocks and the body
}

// ChannelStats counts the blocks of a channel.
type ChannelStats struct {
	Name     string
	Capacity int
	Len      int
	Peak     int    // the most blocks that there ever were
	Pushed   uint64 // blocks that came in
	Dropped  uint64 // blocks that its predicates refused
}

// Stats counts the work and the memory of a graph.
type Stats struct {
	Tasks     []Work
	Devices   []Work // in the order of New, and at last the host
	Channels  []ChannelStats
	Blocks    int    // with references, those of the caller included
	Pooled    int    // whose memory is kept for new ones
	Clones    uint64 // made for writers
	BytesUp   uint64 // moved from the host to devices
	BytesDown uint64 // and back
}

// Stats returns the counters as they are now.
func (g *Graph) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	g.lock()
	defer g.unlock()
	s := Stats{
		Devices: slices.Clone(g.work), Blocks: int(g.live.Load()), Clones: g.clones.Load(),
		BytesUp: g.moved.up.Load(), BytesDown: g.moved.down.Load(),
	}
	for _, t := range g.tasks {
		k := t.work
		k.Name, k.Devices = t.name, slices.Clone(k.Devices)
		s.Tasks = append(s.Tasks, k)
	}
	for i := range s.Devices {
		s.Devices[i].Name = g.workerName(i)
	}
	for _, c := range g.channels {
		k := c.stats
		k.Name, k.Capacity, k.Len = c.name, c.Capacity, c.queue.len()
		s.Channels = append(s.Channels, k)
	}
	for _, t := range g.templates {
		t.mu.Lock()
		s.Pooled += len(t.free)
		t.mu.Unlock()
	}
	return s
}

// record counts a dispatch that has ended.
func (d *Dispatch) record() {
	g, t := d.g, d.t
	if t.work.Devices == nil {
		t.work.Devices = make([]uint64, len(g.work))
	}
	d.count(&t.work)
	if d.worker != none {
		t.work.Devices[d.where()]++
		d.count(&g.work[d.where()])
	}
	if !g.conf.Deterministic { // where the order must not depend on how long anything takes
		run := d.ended - d.begun
		t.busy += (run - t.busy) / 8
		g.works += (run - g.works) / 16
	}
	if g.trace.push(d); g.trace.len() > g.conf.Trace {
		g.trace.pop()
	}
}

func (d *Dispatch) count(w *Work) {
	if d.again {
		w.Retries++
	} else if w.Dispatches++; d.err != nil && !d.passed {
		w.Failures++
	}
	w.Wait += d.waited
	w.Run += d.ended - d.begun
}

// workerName names a device by its number; the number after the last device's is the host's.
func (g *Graph) workerName(i int) string {
	if i < len(g.devices) {
		return "device " + itoa(i) + ": " + g.devices[i].Info().Name
	}
	return "host"
}

// WriteDOT writes the graph for Graphviz: tasks with their ports, and channels with their capacity, what is in them, and
// their predicates.
func (g *Graph) WriteDOT(w io.Writer) error {
	if g == nil || w == nil {
		return fail("WriteDOT", gpu.ErrInvalid, "nil argument")
	}
	var s strings.Builder
	g.lock()
	s.WriteString("digraph graph_ {\n\trankdir=LR;\n\tnode [shape=record];\n")
	for _, t := range g.tasks {
		t.dot(&s)
	}
	for i, c := range g.channels {
		if !c.whole() {
			continue
		}
		outside := "outside" + itoa(i)
		if c.kind != plainChannel {
			s.WriteString("\t" + outside + " [shape=cds, label=\"" + quoted(c.name) + "\"];\n")
		}
		s.WriteString("\t" + node(c.from, outside) + " -> " + node(c.to, outside) + " [label=\"" + c.label() + "\"];\n")
	}
	g.unlock()
	_, err := io.WriteString(w, s.String()+"}\n")
	return err
}

func (c *channel) label() string {
	parts := []string{itoa(c.queue.len()) + "/" + itoa(c.Capacity)}
	for _, p := range [...]Predicate{c.Push, c.Pull} {
		if name := p.name(); name != "" {
			parts = append(parts, name)
		}
	}
	if c.Control {
		parts = append(parts, "control")
	}
	return strings.Join(parts, " ")
}

func (t *Task) dot(s *strings.Builder) {
	var in, out []string
	for _, p := range t.ports {
		label := "<p" + itoa(p.index) + "> " + quoted(p.name)
		switch p.kind {
		case outputPort:
			out = append(out, label)
		case initialPort:
			in = append(in, label+" (initializer)")
		default:
			in = append(in, label)
		}
	}
	s.WriteString("\ttask" + itoa(t.index) + " [label=\"{{" + strings.Join(in, "|") + "}|" + quoted(t.name) + "\\n" +
		t.body.kind + "|{" + strings.Join(out, "|") + "}}\"];\n")
}

func node(p *Port, outside string) string {
	if p == nil {
		return outside
	}
	return "task" + itoa(p.task.index) + ":p" + itoa(p.index)
}

// quoted is text for labels, those of records too. What is not UTF-8, and characters that cannot be seen, become U+FFFD.
func quoted(s string) string {
	return quoter.Replace(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\r' && unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, s))
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "",
	"{", `\{`, "}", `\}`, "|", `\|`, "<", `\<`, ">", `\>`)

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
