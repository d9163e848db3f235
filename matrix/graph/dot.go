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
			s.WriteString("\t" + outside + " [shape=cds, label=\"" + quoter.Replace(c.name) + "\"];\n")
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
		label := "<p" + itoa(p.index) + "> " + quoter.Replace(p.name)
		switch p.kind {
		case outputPort:
			out = append(out, label)
		case initialPort:
			in = append(in, label+" (initializer)")
		default:
			in = append(in, label)
		}
	}
	s.WriteString("\ttask" + itoa(t.index) + " [label=\"{{" + strings.Join(in, "|") + "}|" + quoter.Replace(t.name) + "\\n" +
		t.body.kind + "|{" + strings.Join(out, "|") + "}}\"];\n")
}

func node(p *Port, outside string) string {
	if p == nil {
		return outside
	}
	return "task" + itoa(p.task.index) + ":p" + itoa(p.index)
}

// quoter quotes text in labels, those of records too.
var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "",
	"{", `\{`, "}", `\}`, "|", `\|`, "<", `\<`, ">", `\>`)
