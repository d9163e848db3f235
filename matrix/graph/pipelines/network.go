// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

type (
	with    = graph.Operands[float32]
	operand = matrix.Operand[float32]
	body    = func(in with) operand
	ports   = []graph.TaskOption
)

// templates are those of the network's matrices. The initial values of the weights' are those that a stream begins with.
type templates struct {
	x, labels, h, z, one *graph.Template
	weights, gradients   [4]*graph.Template
}

var partNames = [...]string{"W1", "b1", "W2", "b2"}

func (t *Train) templates() templates {
	c := t.c
	m := func(name string, rows, cols int, format ...graph.Format) *graph.Template {
		return t.Graph.Template(name, rows, cols, dtype.Float32, format...)
	}
	s := templates{
		x: m("x", c.Batch, t.sizes[0][0]), labels: m("labels", c.Batch, c.Classes), h: m("h", c.Batch, c.Hidden),
		z: m("z", c.Batch, c.Classes), one: m("one", 1, 1, graph.Format{Pool: 4 * c.InFlight}),
	}
	for i, size := range t.sizes {
		s.weights[i] = m(partNames[i], size[0], size[1], graph.Format{Initial: matrix.Host(c.Weights[i]).Bytes})
		s.gradients[i] = m("g"+partNames[i], size[0], size[1])
	}
	return s
}

// out is an output whose blocks get the signals of one input.
func out(name string, t *graph.Template, from string) graph.TaskOption {
	return graph.Out(name, t, graph.PortConfig{SignalsFrom: []string{from}})
}

// weights are the ports of weights that a task reads and passes on. Their blocks get the signals of the step.
func weights(name string, t *graph.Template, step string) ports {
	return ports{graph.In(name, t), graph.Out(name+"'", t, graph.PortConfig{InPlace: name, SignalsFrom: []string{step}})}
}

// firstWeights are those of the task that reads the weights first, which begins a stream with their first value.
func firstWeights(name string, t *graph.Template, step string) ports {
	p := weights(name, t, step)
	p[0] = graph.Init(name, t, graph.PortConfig{Of: step, On: graph.BOF})
	return p
}

// node adds a task of expressions, one for each output. Those of weights that are passed on are nil.
func (t *Train) node(name string, exprs []body, options ...ports) *graph.Task {
	return t.Graph.Task(name, graph.Expr(exprs...), slices.Concat(options...)...)
}

// build adds the tasks.
func (t *Train) build() {
	g, s := t.Graph, t.templates()
	t.order = g.Template("order", t.c.Batch, 1, dtype.Uint32)
	read := g.Task("Read", graph.Host(t.read), graph.In("order", t.order), graph.Out("x", s.x), graph.Out("labels", s.labels))
	hidden, output, loss := t.forward(s)
	backLoss := t.node("BackpropLoss", []body{
		func(in with) operand { return in("z").Softmax().Sub(in("labels")).Scale(t.share()) },
	}, ports{graph.In("z", s.z), graph.In("labels", s.labels), graph.Out("dz", s.z)})
	backHidden := t.node("BackpropHidden", []body{
		func(in with) operand { // the derivative of tanh is 1-h*h
			return in("dz").Mul(in("W2").T()).MulElem(in("h").Square().Neg().AddScalar(1))
		}, nil,
	}, ports{graph.In("dz", s.z), graph.In("h", s.h), out("dh", s.h, "dz")}, weights("W2", s.weights[2], "dz"))
	outputW, outputB := t.gradients("BackpropOutput", "h", s.h, s.z, s.gradients[2], s.gradients[3])
	hiddenW, hiddenB := t.gradients("BackpropHidden", "x", s.x, s.h, s.gradients[0], s.gradients[1])

	flight := graph.Channel{Capacity: t.c.InFlight}
	t.in = g.Input("order", read.Port("order"), flight)
	connect := func(from *graph.Port, to string, tasks ...*graph.Task) {
		for _, k := range tasks {
			g.Connect(from, k.Port(to))
		}
	}
	connect(read.Port("x"), "x", hidden, hiddenW)
	connect(read.Port("labels"), "labels", loss, backLoss)
	connect(output.Port("z"), "z", loss, backLoss)
	connect(hidden.Port("h"), "h", output, backHidden, outputW)
	connect(backLoss.Port("dz"), "dz", backHidden, outputW, outputB)
	connect(backHidden.Port("dh"), "dz", hiddenW, hiddenB)
	t.outs = []*graph.Output{g.Output("loss", loss.Port("loss"), flight), g.Output("errors", loss.Port("errors"), flight)}
	t.round(0, s, hiddenW, hidden)
	t.round(1, s, hiddenB, hidden)
	t.round(2, s, outputW, output, backHidden)
	t.round(3, s, outputB, output)
}

// share is what an example contributes to a mean.
func (t *Train) share() float32 { return 1 / float32(t.c.Batch) }

func (t *Train) forward(s templates) (hidden, output, loss *graph.Task) {
	hidden = t.node("ForwardHidden", []body{
		func(in with) operand { return in("x").Mul(in("W1")).Add(in("b1")).Tanh() }, nil, nil,
	}, ports{graph.In("x", s.x), out("h", s.h, "x")}, firstWeights("W1", s.weights[0], "x"), firstWeights("b1", s.weights[1], "x"))
	output = t.node("ForwardOutput", []body{
		func(in with) operand { return in("h").Mul(in("W2")).Add(in("b2")) }, nil, nil,
	}, ports{graph.In("h", s.h), out("z", s.z, "h")}, firstWeights("W2", s.weights[2], "h"), firstWeights("b2", s.weights[3], "h"))
	loss = t.node("ForwardLoss", []body{
		func(in with) operand { return in("labels").MulElem(matrix.LogSoftmax(in("z"))).Sum().Scale(-t.share()) },
		func(in with) operand { // another class has a higher score
			right := in("labels").MulElem(in("z")).SumRows()
			return matrix.Less(right, matrix.MaxRows(in("z"))).Sum().Scale(t.share())
		},
		func(in with) operand { return in("z").Softmax() },
	}, ports{
		graph.In("z", s.z), graph.In("labels", s.labels),
		graph.Out("loss", s.one), graph.Out("errors", s.one),
		graph.Out("probabilities", s.z, graph.PortConfig{Optional: true}), // what the network is for; nobody asks while it learns
	})
	return hidden, output, loss
}

// gradients adds the tasks for the gradients of a layer's weights, from what came into the layer and the gradient of what left it.
func (t *Train) gradients(name, input string, in, dz, w, b *graph.Template) (forW, forB *graph.Task) {
	forW = t.node(name+"W", []body{
		func(x with) operand { return x(input).T().Mul(x("dz")) },
	}, ports{graph.In(input, in), graph.In("dz", dz), out("g", w, "dz")})
	forB = t.node(name+"B", []body{
		func(x with) operand { return x("dz").SumCols() },
	}, ports{graph.In("dz", dz), graph.Out("g", b)})
	return forW, forB
}

// round adds the update of one of the matrices of weights, and the channels in which its block goes round: from its first user
// through the others to the update and back.
func (t *Train) round(i int, s templates, gradient *graph.Task, users ...*graph.Task) {
	g, name := t.Graph, partNames[i]
	update := t.node("Update"+name, []body{
		func(in with) operand { return in(name).Sub(in("g").MulElem(in("rate"))) },
	}, ports{graph.In("g", s.gradients[i]), graph.Sticky("rate", s.one)}, weights(name, s.weights[i], "g"))
	t.rates = append(t.rates, update.Port("rate"))
	g.Connect(gradient.Port("g"), update.Port("g"))
	users = append(users, update)
	for k, to := range users[1:] {
		g.Connect(users[k].Port(name+"'"), to.Port(name))
	}
	g.Connect(update.Port(name+"'"), users[0].Port(name), graph.Channel{Push: graph.Predicate{CloseOn: graph.EOF}})
	t.outs = append(t.outs, g.Output(name, update.Port(name+"'"), graph.Channel{
		Capacity: t.c.InFlight, Push: graph.Predicate{OpenOn: graph.EOF | graph.EndIteration},
	}))
}
