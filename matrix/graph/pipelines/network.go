// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

type (
	with    = graph.Operands[float32]
	operand = matrix.Operand[float32]
	exprs   = []func(in with) operand
)

// partNames are the matrices of weights.
var partNames = []string{"W1", "b1", "W2", "b2"}

// node is a task of expressions, one for each matrix that it makes. It passes on the weights that it reads, as they are unless it has
// one more expression. All that leaves it has the signals of the matrix that it reads first.
type node struct {
	name         string
	reads, makes string // names of matrices
	exprs        exprs
}

// nodes returns the network's tasks but for Read. The order is that in which they get the weights.
func (t *Train) nodes() []node {
	share := 1 / float32(t.c.Batch) // of an example in a mean
	list := []node{
		{"ForwardHidden", "x W1 b1", "h", exprs{func(in with) operand { return in("x").Mul(in("W1")).Add(in("b1")).Tanh() }}},
		{"ForwardOutput", "h W2 b2", "z", exprs{func(in with) operand { return in("h").Mul(in("W2")).Add(in("b2")) }}},
		{"ForwardLoss", "z labels", "loss errors probabilities", exprs{
			func(in with) operand { return in("labels").MulElem(matrix.LogSoftmax(in("z"))).Sum().Scale(-share) },
			func(in with) operand { // another class has a higher score
				right := in("labels").MulElem(in("z")).SumRows()
				return matrix.Less(right, matrix.MaxRows(in("z"))).Sum().Scale(share)
			},
			func(in with) operand { return in("z").Softmax() },
		}},
		{"BackpropLoss", "z labels", "dz", exprs{func(in with) operand { return in("z").Softmax().Sub(in("labels")).Scale(share) }}},
		{"BackpropHidden", "dz h W2", "dh", exprs{func(in with) operand { // the derivative of tanh is 1-h*h
			return in("dz").Mul(in("W2").T()).MulElem(in("h").Square().Neg().AddScalar(1))
		}}},
		{"BackpropOutputW", "dz h", "gW2", exprs{func(in with) operand { return in("h").T().Mul(in("dz")) }}},
		{"BackpropOutputB", "dz", "gb2", exprs{func(in with) operand { return in("dz").SumCols() }}},
		{"BackpropHiddenW", "dh x", "gW1", exprs{func(in with) operand { return in("x").T().Mul(in("dh")) }}},
		{"BackpropHiddenB", "dh", "gb1", exprs{func(in with) operand { return in("dh").SumCols() }}},
	}
	for _, w := range partNames {
		list = append(list, node{"Update" + w, "g" + w + " " + w + " rate", "", exprs{
			func(in with) operand { return in(w).Sub(in("g" + w).MulElem(in("rate"))) },
		}})
	}
	return list
}

// templates makes those of the network's matrices. The initial values of the weights are those that a stream begins with.
func (t *Train) templates() map[string]*graph.Template {
	batch, hidden, classes := t.c.Batch, t.c.Hidden, t.c.Classes
	sizes := map[string][2]int{
		"x": {batch, t.sizes[0][0]}, "labels": {batch, classes}, "h": {batch, hidden}, "dh": {batch, hidden},
		"z": {batch, classes}, "dz": {batch, classes}, "probabilities": {batch, classes}, "loss": {1, 1}, "errors": {1, 1}, "rate": {1, 1},
	}
	list := map[string]*graph.Template{}
	add := func(name string, size [2]int, initial []byte) {
		list[name] = t.Graph.Template(name, size[0], size[1], dtype.Float32, graph.Format{Initial: initial, Pool: 4 * t.c.InFlight})
	}
	for name, size := range sizes {
		add(name, size, nil)
	}
	for i, name := range partNames {
		add(name, t.sizes[i], matrix.Host(t.c.Weights[i]).Bytes)
		add("g"+name, t.sizes[i], nil)
	}
	return list
}

// build adds the tasks, and a channel for each matrix from the task that makes it to each one that reads it. Weights go round: from the
// first task that reads them through the others to their update and back.
func (t *Train) build() {
	g, templates, flight := t.Graph, t.templates(), graph.Channel{Capacity: t.c.InFlight}
	t.order = g.Template("order", t.c.Batch, 1, dtype.Uint32)
	read := g.Task("Read", graph.Host(t.read), graph.In("order", t.order), graph.Out("x", templates["x"]), graph.Out("labels", templates["labels"]))
	t.in = g.Input("order", read.Port("order"), flight)
	from := map[string]*graph.Port{"x": read.Port("x"), "labels": read.Port("labels")} // of weights, the last task that had them
	first := map[string]*graph.Port{}                                                  // what the matrices come to first
	for _, n := range t.nodes() {
		reads, makes := strings.Fields(n.reads), strings.Fields(n.makes)
		k := t.node(n, reads, makes, from, templates)
		for _, name := range reads {
			if from[name] != nil {
				g.Connect(from[name], k.Port(name))
			} else {
				first[name] = k.Port(name)
			}
			if slices.Contains(partNames, name) {
				from[name] = k.Port(name + "'")
			}
		}
		for _, name := range makes {
			from[name] = k.Port(name)
		}
		if rate := k.Port("rate"); rate != nil {
			t.rates = append(t.rates, rate)
		}
	}
	t.outs = []*graph.Output{g.Output("loss", from["loss"], flight), g.Output("errors", from["errors"], flight)}
	for _, name := range partNames {
		g.Connect(from[name], first[name], graph.Channel{Push: graph.Predicate{CloseOn: graph.EOF}})
		t.outs = append(t.outs, g.Output(name, from[name], graph.Channel{
			Capacity: t.c.InFlight, Push: graph.Predicate{OpenOn: graph.EOF | graph.EndIteration},
		}))
	}
}

// node adds a node's task. Of what comes from no task, weights begin a stream with their first value, and the rate is sticky.
func (t *Train) node(n node, reads, makes []string, from map[string]*graph.Port, templates map[string]*graph.Template) *graph.Task {
	var ports []graph.TaskOption
	step, list := reads[0], slices.Clone(n.exprs)
	for _, name := range makes {
		unused := name == "probabilities" // what the network is for; nobody asks while it learns
		ports = append(ports, graph.Out(name, templates[name], graph.PortConfig{SignalsFrom: []string{step}, Optional: unused}))
	}
	outs := len(makes)
	for _, name := range reads {
		m, part := templates[name], slices.Contains(partNames, name)
		switch {
		case from[name] != nil:
			ports = append(ports, graph.In(name, m))
		case part:
			ports = append(ports, graph.Init(name, m, graph.PortConfig{Of: step, On: graph.BOF}))
		default:
			ports = append(ports, graph.Sticky(name, m))
		}
		if part {
			ports = append(ports, graph.Out(name+"'", m, graph.PortConfig{InPlace: name, SignalsFrom: []string{step}}))
			outs++
		}
	}
	return t.Graph.Task(n.name, graph.Expr(append(list, make(exprs, outs-len(list))...)...), ports...)
}
