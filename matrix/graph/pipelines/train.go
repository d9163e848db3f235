// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// TrainConfig says what [Train] learns, and how. The examples must not change while they are in use.
type TrainConfig struct {
	Features  []float32   // of the examples, as many for each, example by example
	Labels    []uint8     // of each example, below Classes
	Classes   int         // from 2 to 256
	Hidden    int         // units of the hidden layer; 0 stands for 64
	Batch     int         // examples of a step; 0 stands for 64, or all if there are fewer
	Rate      float32     // the learning rate; 0 stands for 0.1
	Seed      uint64      // of the order of the examples, and of the weights
	Weights   [][]float32 // to begin with, as in [Step]; random ones without
	SaveEvery int         // steps after which the weights are given out; 0 stands for the last one only
	InFlight  int         // how many steps are on their way at once, up to 64; 0 stands for 4
}

// Train trains a network of two layers by stochastic gradient descent, as CNTK's builder for PTask maps a network: a task for each
// node's forward and backward computation and for each update, with matrices that are pointed at the blocks on each dispatch.
//
//	order -> Read -> x, labels                                  the host gathers the examples of a step
//	ForwardHidden  h = tanh(x*W1 + b1)                          BackpropLoss     dz = (softmax(z) - labels) / batch
//	ForwardOutput  z = h*W2 + b2                                BackpropOutputW  gW2 = T(h) * dz
//	ForwardLoss    loss, errors, probabilities -> /dev/null     BackpropOutputB  gb2 = sums of dz's columns
//	UpdateW1 ...   W1 = W1 - rate*gW1                           BackpropHidden   dh = (dz*T(W2)) % (1 - h%h)
//	                                                            BackpropHiddenW, BackpropHiddenB: gW1, gb1
//
// Each of W1, b1, W2 and b2 is one block that goes round: from the task that reads it through the others, which pass it on, to its
// update, which changes it in place and feeds it back. An initialiser begins with its first value at the begin of a stream. At the
// end of one, or where [TrainConfig].SaveEvery says, the updated blocks leave for the caller. The learning rate is sticky.
type Train struct {
	pipeline
	Epoch int // how many steps see all examples once
	c     TrainConfig
	sizes [4][2]int // of the weights
	order *graph.Template
	rates []*graph.Port
	outs  []*graph.Output // loss, errors and the four matrices of weights
	open  bool            // a stream has begun and not ended
}

// Step is what came of a step.
type Step struct {
	Number int
	Loss   float32 // cross entropy, the mean of the step's examples before the update
	Errors float32 // the share of them whose class was not found

	// Weights are those after the update, if they were to be given out, and the caller's: W1, inputs x hidden, B1, 1 x hidden, W2,
	// hidden x classes, and B2, 1 x classes, row by row. Scores are tanh(x*W1 + B1)*W2 + B2.
	Weights [][]float32
}

// maxUnits bounds the sizes of the layers.
const maxUnits = 1 << 14

// NewTrain makes the pipeline on the devices, which stay the caller's. What does not fit together, or makes no sense, is
// [gpu.ErrInvalid].
func NewTrain(devices []*gpu.Device, c TrainConfig, config ...graph.Config) (*Train, error) {
	const op = "NewTrain"
	examples := len(c.Labels)
	c.Hidden, c.Batch = cmp.Or(c.Hidden, 64), cmp.Or(c.Batch, min(64, examples))
	c.Rate, c.InFlight = cmp.Or(c.Rate, 0.1), cmp.Or(c.InFlight, defaultInFlight)
	if len(c.Weights) == 4 {
		c.Hidden = len(c.Weights[1])
	}
	inputs := len(c.Features) / max(examples, 1)
	switch {
	case inputs < 1 || len(c.Features) != inputs*examples || c.Classes < 2 || c.Classes > 256:
		return nil, fail(op, gpu.ErrInvalid, itoa(len(c.Features)), " features for ", itoa(examples), " labels of ", itoa(c.Classes), " classes")
	case int(slices.Max(c.Labels)) >= c.Classes:
		return nil, fail(op, gpu.ErrInvalid, "a label that is no class")
	case c.Batch < 1 || c.Batch > examples:
		return nil, fail(op, gpu.ErrInvalid, "batches of ", itoa(c.Batch), " of ", itoa(examples), " examples")
	case !(c.Rate > 0 && c.Rate <= math.MaxFloat32):
		return nil, fail(op, gpu.ErrInvalid, "a rate that is not positive")
	case c.SaveEvery < 0 || c.InFlight < 1 || c.InFlight > maxInFlight:
		return nil, fail(op, gpu.ErrInvalid, itoa(c.InFlight), " steps in flight, weights every ", itoa(c.SaveEvery))
	case inputs > maxUnits || c.Hidden < 1 || c.Hidden > maxUnits:
		return nil, fail(op, gpu.ErrInvalid, itoa(inputs), " inputs and ", itoa(c.Hidden), " hidden units")
	}
	t := &Train{c: c, Epoch: examples / c.Batch, sizes: [...][2]int{{inputs, c.Hidden}, {1, c.Hidden}, {c.Hidden, c.Classes}, {1, c.Classes}}}
	if c.Weights == nil {
		t.c.Weights = t.randomWeights()
	}
	fits := func(a []float32, size [2]int) bool { return len(a) == size[0]*size[1] }
	if len(t.c.Weights) != len(t.sizes) || !slices.EqualFunc(t.c.Weights, t.sizes[:], fits) {
		return nil, fail(op, gpu.ErrInvalid, "weights that do not fit")
	}
	t.inFlight = c.InFlight
	t.prepare = t.restart
	if err := t.init(devices, config, t.build); err != nil {
		return nil, err
	}
	return t, nil
}

// newWeights makes weights that are zero.
func (t *Train) newWeights() (w [][]float32) {
	for _, size := range t.sizes {
		w = append(w, make([]float32, size[0]*size[1]))
	}
	return w
}

// randomWeights makes random weights: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// AISTATS 2010. The same seed gives the same.
func (t *Train) randomWeights() [][]float32 {
	r, w := rand.New(rand.NewPCG(t.c.Seed, 3)), t.newWeights()
	for _, i := range [...]int{0, 2} {
		limit := math.Sqrt(6 / float64(t.sizes[i][0]+t.sizes[i][1]))
		for k := range w[i] {
			w[i][k] = float32(limit * (2*r.Float64() - 1))
		}
	}
	return w
}

// restart ends a stream that somebody stopped, whose weights are still on their way round, and gives the updates their learning rate.
func (t *Train) restart() error {
	var errs []error
	if t.open {
		errs = append(errs, t.Graph.Teardown())
	}
	for _, p := range t.rates {
		errs = append(errs, graph.SetValues(p, t.c.Rate))
	}
	return errors.Join(errs...)
}

// read is the task that gathers the examples of a step.
func (t *Train) read(d *graph.Dispatch) error {
	order, err := words(d, "order")
	if err != nil {
		return err
	}
	inputs := t.sizes[0][0]
	x, labels := make([]float32, 0, len(order)*inputs), make([]float32, len(order)*t.c.Classes)
	for i, n := range order {
		x = append(x, t.c.Features[int(n)*inputs:int(n+1)*inputs]...)
		labels[i*t.c.Classes+int(t.c.Labels[n])] = 1
	}
	return errors.Join(update(d, "x", x), update(d, "labels", labels))
}

// dealer deals the numbers of examples in batches, which are valid until the next one. Each epoch has all of them in another order, but
// for those that make no whole batch.
func dealer(examples int, seed uint64) func(batch int) []uint32 {
	order, rng := make([]uint32, examples), rand.New(rand.NewPCG(seed, 2))
	for i := range order {
		order[i] = uint32(i)
	}
	at := examples
	return func(batch int) []uint32 {
		if at+batch > examples {
			rng.Shuffle(examples, func(i, j int) { order[i], order[j] = order[j], order[i] })
			at = 0
		}
		at += batch
		return order[at-batch : at]
	}
}

// Run trains for so many steps, or until show has seen enough, and then stops the graph. Each Run is a stream of its own, which
// begins with the first weights again; to go on with others, give them to [NewTrain]. show gets the steps in their order and
// reports whether it wants more; the last one has the weights. An error of its, or of a task, ends it. One Run at a time: else it
// is [graph.ErrBusy].
func (t *Train) Run(ctx context.Context, steps int, show func(Step) (bool, error)) error {
	if t == nil || t.Graph == nil || ctx == nil || show == nil || steps < 1 {
		return fail("Run", gpu.ErrInvalid, "no argument may be nil, no step is none")
	}
	deal, last := dealer(len(t.c.Labels), t.c.Seed), -1
	var saves []bool // of the steps that are on their way
	send := func(n int, stop bool) (*graph.Block, bool, error) {
		var s graph.Signals
		if n == 0 {
			s |= graph.BOF
		}
		if stop || n == steps-1 {
			s |= graph.EOF
			last = n
		}
		if t.c.SaveEvery > 0 && (n+1)%t.c.SaveEvery == 0 {
			s |= graph.EndIteration
		}
		b, err := graph.FromSlice(t.order, deal(t.c.Batch))
		if err != nil {
			return nil, false, err
		}
		t.open = true
		saves = append(saves, s&(graph.EOF|graph.EndIteration) != 0)
		return b, last < 0, b.SetSignals(s)
	}
	return t.stream(ctx, send, func(n int) (bool, error) {
		step, numbers := Step{Number: n}, make([]float32, 2)
		parts := [][]float32{numbers[:1], numbers[1:]}
		if saves[0] {
			step.Weights = t.newWeights()
			parts = append(parts, step.Weights...)
		}
		for i, part := range parts {
			if err := pull(ctx, t.outs[i], matrix.Host(part).Bytes); err != nil {
				return false, err
			}
		}
		step.Loss, step.Errors = numbers[0], numbers[1]
		t.open, saves = n != last, saves[1:]
		return show(step)
	})
}

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
	initial := map[string][]byte{}
	for i, name := range partNames {
		sizes[name], sizes["g"+name], initial[name] = t.sizes[i], t.sizes[i], matrix.Host(t.c.Weights[i]).Bytes
	}
	list := map[string]*graph.Template{}
	for name, size := range sizes {
		format := graph.Format{Initial: initial[name], Pool: 4 * t.c.InFlight}
		list[name] = t.Graph.Template(name, size[0], size[1], dtype.Float32, format)
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
