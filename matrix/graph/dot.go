// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"io"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
)

// WriteDOT writes the graph for Graphviz: tasks with their ports, and channels with their capacity, what is in them, and
// their predicates.
func (g *Graph) WriteDOT(w io.Writer) error {
	if g == nil || w == nil {
		return fail("WriteDOT", gpu.ErrInvalid, "nil argument")
	}
	_, err := io.WriteString(w, g.dot())
	return err
}

func (g *Graph) dot() string {
	var s strings.Builder
	g.lock()
	defer g.unlock()
	s.WriteString("digraph graph_ {\n\trankdir=LR;\n\tnode [shape=record];\n")
	for _, t := range g.tasks {
		t.dot(&s)
	}
	for i, c := range g.channels {
		from, to := "", ""
		switch {
		case c.from.port != nil:
			from = node(c.from.port)
		default:
			from = "in" + itoa(i)
			s.WriteString("\t" + from + " [shape=cds, label=\"" + quoted(strings.TrimSuffix(c.name, "-"+c.to.label())) + "\"];\n")
		}
		if c.to != nil {
			to = node(c.to)
		} else {
			to = "out" + itoa(i)
			s.WriteString("\t" + to + " [shape=cds, label=\"" + quoted(c.name) + "\"];\n")
		}
		s.WriteString("\t" + from + " -> " + to + " [label=\"" + c.label() + "\"" + channelStyles[c.kind] + "];\n")
	}
	s.WriteString("}\n")
	return s.String()
}

// How DOT shows kinds of channels.
var (
	channelKinds  = [...]string{initialChannel: "initializer", nullChannel: "devnull"}
	channelStyles = [...]string{initialChannel: ", style=dashed", nullChannel: ", style=dotted"}
)

func (c *channel) label() string {
	parts := []string{itoa(len(c.queue)) + "/" + itoa(c.Capacity)}
	if kind := channelKinds[c.kind]; kind != "" {
		parts[0] = kind
	}
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
		label := "<p" + itoa(p.index) + "> " + recordQuoted(p.name)
		if p.kind == outputPort {
			out = append(out, label)
		} else {
			in = append(in, label)
		}
	}
	s.WriteString("\ttask" + itoa(t.index) + " [label=\"{{" + strings.Join(in, "|") + "}|" + recordQuoted(t.name) + "\\n" + t.body.kind +
		"|{" + strings.Join(out, "|") + "}}\"];\n")
}

func node(p *Port) string { return "task" + itoa(p.task.index) + ":p" + itoa(p.index) }

var (
	quoter       = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "")
	recordQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "",
		"{", `\{`, "}", `\}`, "|", `\|`, "<", `\<`, ">", `\>`)
)

func quoted(s string) string       { return quoter.Replace(s) }
func recordQuoted(s string) string { return recordQuoter.Replace(s) }
