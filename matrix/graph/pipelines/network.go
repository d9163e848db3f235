// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

type (
	expr = matrix.AnyExpr
	with = graph.Operands
	body = func(in graph.Operands) matrix.AnyExpr
)

func add(x, y expr) expr { return matrix.AnyMap(fuse.OpAdd, x, y) }
func sub(x, y expr) expr { return matrix.AnyMap(fuse.OpSub, x, y) }
func mul(x, y expr) expr { return matrix.AnyMap(fuse.OpMul, x, y) }

func number(v float64) expr { return matrix.AnyScalar(matrix.Float32, math.Float32bits(float32(v))) }

func sum(x expr, along matrix.Axis) expr { return x.Reduce(matrix.ReduceSum, along) }

// templates are those of the network's matrices. What begins a stream is the initial value of the weights'.
type templates struct {
	x, labels, h, z, one *graph.Template
	weights, gradients   [4]*graph.Template
}

var partNames = [...]string{"W1", "b1", "W2", "b2"}

func (t *Train) templates() templates {
	g, c := t.g, t.c
	in, out := c.Data.Inputs, c.Data.Classes
	m := func(name string, rows, cols int, opts ...graph.TemplateOption) *graph.Template {
		return g.Template(name, rows, cols, matrix.Float32, opts...)
	}
	s := templates{
		x: m("x", c.Batch, in), labels: m("labels", c.Batch, out), h: m("h", c.Batch, c.Hidden),
		z: m("z", c.Batch, out), one: m("one", 1, 1, graph.PoolSize(4*c.InFlight)),
	}
	for i, size := range [...][2]int{{in, c.Hidden}, {1, c.Hidden}, {c.Hidden, out}, {1, out}} {
		s.weights[i] = m(partNames[i], size[0], size[1], graph.Initial(matrix.Host(c.Weights.parts()[i]).Bytes))
		s.gradients[i] = m("g"+partNames[i], size[0], size[1])
	}
	return s
}

// through are the ports of weights that a task reads and passes on. Their blocks keep the signals of the step.
func through(name string, t *graph.Template, step string) []graph.TaskOption {
	return []graph.TaskOption{graph.In(name, t), graph.Out(name+"'", t, graph.InPlace(name), graph.SignalsFrom(step))}
}

// node makes a task of expressions, one for each output. Those of weights that are passed on are nil.
func (t *Train) node(name string, exprs []body, ports ...[]graph.TaskOption) *graph.Task {
	var all []graph.TaskOption
	for _, p := range ports {
		all = append(all, p...)
	}
	return t.g.Task(name, graph.Expr(exprs...), all...)
}

type ports = []graph.TaskOption

// build adds the tasks.
func (t *Train) build() {
	g, s := t.g, t.templates()
	scale := 1 / float64(t.c.Batch)
	order := g.Template("order", t.c.Batch, 1, matrix.Uint32)
	read := g.Task("Read", graph.Host(t.read), graph.In("order", order), graph.Out("x", s.x), graph.Out("labels", s.labels))

	hidden := t.node("ForwardHidden", []body{
		func(in with) expr { return matrix.AnyMap(fuse.OpTanh, add(in("x").Mul(in("W1")), in("b1"))) }, nil, nil,
	}, ports{graph.In("x", s.x), graph.Out("h", s.h, graph.SignalsFrom("x"))}, through("W1", s.weights[0], "x"), through("b1", s.weights[1], "x"))
	output := t.node("ForwardOutput", []body{
		func(in with) expr { return add(in("h").Mul(in("W2")), in("b2")) }, nil, nil,
	}, ports{graph.In("h", s.h), graph.Out("z", s.z, graph.SignalsFrom("h"))}, through("W2", s.weights[2], "h"), through("b2", s.weights[3], "h"))
	loss := t.node("ForwardLoss", []body{
		func(in with) expr {
			return mul(sum(mul(in("labels"), in("z").Softmax(true)), matrix.AxisAll), number(-scale))
		},
		func(in with) expr { // another class has a higher score
			right, best := sum(mul(in("labels"), in("z")), matrix.AxisRows), in("z").Reduce(matrix.ReduceMax, matrix.AxisRows)
			return mul(sum(matrix.AnyMap(fuse.OpLt, right, best), matrix.AxisAll), number(scale))
		},
		func(in with) expr { return in("z").Softmax(false) },
	}, ports{
		graph.In("z", s.z), graph.In("labels", s.labels),
		graph.Out("loss", s.one), graph.Out("errors", s.one), graph.Out("probabilities", s.z),
	})

	backLoss := t.node("BackpropLoss", []body{
		func(in with) expr { return mul(sub(in("z").Softmax(false), in("labels")), number(scale)) },
	}, ports{graph.In("z", s.z), graph.In("labels", s.labels), graph.Out("dz", s.z)})
	backHidden := t.node("BackpropHidden", []body{
		func(in with) expr {
			return mul(in("dz").Mul(in("W2").T()), sub(number(1), matrix.AnyMap(fuse.OpSquare, in("h"))))
		}, nil,
	}, ports{graph.In("dz", s.z), graph.In("h", s.h), graph.Out("dh", s.h, graph.SignalsFrom("dz"))}, through("W2", s.weights[2], "dz"))
	outputW, outputB := t.gradients("BackpropOutput", "h", s.h, s.z, s.gradients[2], s.gradients[3])
	hiddenW, hiddenB := t.gradients("BackpropHidden", "x", s.x, s.h, s.gradients[0], s.gradients[1])

	room := graph.Capacity(t.c.InFlight)
	t.in = g.Input("order", read.Port("order"), room)
	for _, to := range []*graph.Task{hidden, hiddenW} {
		g.Connect(read.Port("x"), to.Port("x"))
	}
	for _, to := range []*graph.Task{loss, backLoss} {
		g.Connect(read.Port("labels"), to.Port("labels"))
		g.Connect(output.Port("z"), to.Port("z"))
	}
	for _, to := range []*graph.Task{output, backHidden, outputW} {
		g.Connect(hidden.Port("h"), to.Port("h"))
	}
	for _, to := range []*graph.Task{backHidden, outputW, outputB} {
		g.Connect(backLoss.Port("dz"), to.Port("dz"))
	}
	for _, to := range []*graph.Task{hiddenW, hiddenB} {
		g.Connect(backHidden.Port("dh"), to.Port("dz"))
	}
	t.loss, t.errors = g.Output("loss", loss.Port("loss"), room), g.Output("errors", loss.Port("errors"), room)
	g.Discard(loss.Port("probabilities")) // what the network is for; nobody asks while it learns
	t.round(0, s, hiddenW, hidden)
	t.round(1, s, hiddenB, hidden)
	t.round(2, s, outputW, output, backHidden)
	t.round(3, s, outputB, output)
}

// gradients adds the tasks for the gradients of a layer's weights, from what came into the layer and the gradient of what left it.
func (t *Train) gradients(name, input string, in, dz, w, b *graph.Template) (forW, forB *graph.Task) {
	forW = t.node(name+"W", []body{
		func(x with) expr { return x(input).T().Mul(x("dz")) },
	}, ports{graph.In(input, in), graph.In("dz", dz), graph.Out("g", w, graph.SignalsFrom("dz"))})
	forB = t.node(name+"B", []body{
		func(x with) expr { return sum(x("dz"), matrix.AxisCols) },
	}, ports{graph.In("dz", dz), graph.Out("g", b)})
	return forW, forB
}

// round adds the update of one of the matrices of weights, and the channels in which its block goes round: from its first user
// through the others to the update and back.
func (t *Train) round(i int, s templates, gradient *graph.Task, users ...*graph.Task) {
	g, name := t.g, partNames[i]
	update := t.node("Update"+name, []body{
		func(in with) expr { return sub(in(name), mul(in("rate"), in("g"))) },
	}, ports{
		graph.In(name, s.weights[i]), graph.In("g", s.gradients[i]), graph.Sticky("rate", s.one),
		graph.Out(name+"'", s.weights[i], graph.InPlace(name), graph.SignalsFrom("g")),
	})
	t.rates = append(t.rates, update.Port("rate"))
	g.Connect(gradient.Port("g"), update.Port("g"))
	for k, from := range users {
		to := update
		if k+1 < len(users) {
			to = users[k+1]
		}
		g.Connect(from.Port(name+"'"), to.Port(name))
	}
	first := users[0]
	step := first.Port("x")
	if step == nil {
		step = first.Port("h")
	}
	g.Initialize(first.Port(name), graph.AsControl(), graph.WhenPulled(graph.OpenOnBOF), graph.ControlledBy(step))
	g.Connect(update.Port(name+"'"), first.Port(name), graph.WhenPushed(graph.CloseOnEOF))
	t.saved[i] = g.Output(name, update.Port(name+"'"), graph.Capacity(t.c.InFlight), graph.WhenPushed(graph.Ask(func(b *graph.Block) bool {
		return b.Signals()&(graph.EOF|graph.EndIteration) != 0
	})))
}
