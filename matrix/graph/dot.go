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
			s.WriteString("\t" + from + " [shape=cds, label=\"" + quoted(strings.TrimSuffix(c.name, "-"+c.to.Name())) + "\"];\n")
		}
		if c.to != nil {
			to = node(c.to)
		} else {
			to = "out" + itoa(i)
			s.WriteString("\t" + to + " [shape=cds, label=\"" + quoted(c.name) + "\"];\n")
		}
		s.WriteString("\t" + from + " -> " + to + " [label=\"" + c.label() + "\"" + style[c.kind] + "];\n")
	}
	s.WriteString("}\n")
	return s.String()
}

var style = [...]string{"", "", "", ", style=dashed", ", style=dotted"}

func (c *Channel) label() string {
	parts := []string{itoa(c.len()) + "/" + itoa(c.capacity)}
	if c.kind == initialChannel || c.kind == nullChannel {
		parts[0] = channelKinds[c.kind]
	}
	for _, p := range []Predicate{c.enter, c.leave} {
		if p.name != "" {
			parts = append(parts, p.name)
		}
	}
	if c.first {
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
	s.WriteString("\ttask" + itoa(t.index) + " [label=\"{{" + strings.Join(in, "|") + "}|" + recordQuoted(t.name) + "\\n" + t.body.sort +
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
