// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// A WGSL kernel works on blocks where they are: arrays, scalars of sticky and described ports, in place, over any range.
func TestKernel(t *testing.T) {
	for _, drivers := range [][]string{{wgsl}, {wgsl, wgsl}, {"cpu", wgsl}} {
		if _, ok := possible(drivers...); !ok {
			continue
		}
		r := newRig(t, drivers)
		one := r.Template("one", 1, 1, dtype.Float32)
		rows := r.Template("rows", 2, 3, dtype.Float32, graph.Format{Records: true})
		half := r.Template("half", 2, 2, dtype.Float16)
		raw := r.Template("raw", 16, 1, dtype.Uint8)
		pair := r.Template("pair", 1, 2, dtype.Int32)
		k := r.Task("k", graph.Kernel(`fn f(i: u32) { y[i] = x[i] * scale + f32(size) + f32(w[i & 1u]); }`, "f", nil),
			graph.In("x", rows), graph.Sticky("scale", one), graph.Described("size", r.word, "x", func(b *graph.Block) []uint32 { rows, cols := b.Dims(); return []uint32{uint32(4 * rows * cols)} }),
			graph.In("w", pair), graph.Out("y", r.m))
		l := r.Task("l", graph.Kernel(`fn g(i: u32) { if (i == 1u) { x[i] = -x[i]; } }`, "g", func(*graph.Dispatch) [3]int { return [3]int{3} }),
			graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
		n := r.Task("n", graph.Kernel(`fn h(i: u32) { out[i] = sublet_load_a(i) * 2.0 + f32(b[i]); }`, "h", func(*graph.Dispatch) [3]int { return [3]int{4} }),
			graph.In("a", half), graph.In("b", raw), graph.Out("out", r.m))
		x, w := r.Input("x", k.Port("x")), r.Input("w", k.Port("w"))
		r.Connect(k.Port("y"), l.Port("x"))
		out := r.Output("out", l.Port("y"))
		a, b, c := r.Input("a", n.Port("a")), r.Input("b", n.Port("b")), r.Output("c", n.Port("out"))
		check(t, graph.SetValues(k.Port("scale"), float32(10)))
		check(t, r.Run(r.ctx))
		for i := float32(0); i < 6; i++ {
			check(t, x.Push(r.ctx, must[*graph.Block](t)(graph.FromSlice(rows, []float32{i, i, i, i, i, i}))))
			check(t, w.Push(r.ctx, must[*graph.Block](t)(graph.FromSlice(pair, []int32{1, -1}))))
			got := must[*graph.Block](t)(out.Pull(r.ctx))
			v := must[[]float32](t)(graph.Values[float32](r.ctx, got))
			got.Release()
			if v[0] != 10*i+25 || v[1] != -(10*i+23) || v[5] != 10*i+23 {
				t.Errorf("%v: %v", i, v)
			}
		}
		halves := matrix.HalfSlice([]uint16{0x3c00, 0x4000, 0x4200, 0x4400}) // 1, 2, 3, 4
		check(t, a.Push(r.ctx, must[*graph.Block](t)(graph.FromSlice(half, halves))))
		check(t, b.Push(r.ctx, must[*graph.Block](t)(raw.From([]byte{5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0}))))
		got := must[*graph.Block](t)(c.Pull(r.ctx))
		v := must[[]float32](t)(graph.Values[float32](r.ctx, got))
		got.Release()
		for i, want := range []float32{7, 10, 13, 16, 0, 0} { // what the kernel does not write is zero
			if v[i] != want {
				t.Errorf("%v", v)
			}
		}
	}
}

// A task of a cruncher spreads its kernel over the cruncher's own devices.
func TestCruncher(t *testing.T) {
	if _, ok := possible(wgsl); !ok {
		return
	}
	devs := open(t, wgsl, wgsl)
	cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), devs, "fn f(i: u32) { y[i] = x[i] + add; z[i] = z[i] * 2.0; }"))
	defer cr.Close()
	r := newRig(t, []string{wgsl})
	big := r.Template("big", 100, 100, dtype.Float32)
	one := r.Template("one", 1, 1, dtype.Float32)
	var names []string
	k := r.Task("k", graph.Cruncher(cr, 1, "f", func(*graph.Dispatch) cruncher.Range { return cruncher.Range{Global: 10000} },
		func(a *cruncher.Any) { names = append(names, a.Name()) }),
		graph.In("x", big), graph.Sticky("add", one), graph.In("z", big), graph.Out("y", big), graph.Out("zz", big, graph.PortConfig{InPlace: "z"}))
	before := r.Task("before", plus(1), graph.In("x", big), graph.Out("y", big))
	in := r.Input("x", before.Port("x"))
	r.Connect(before.Port("y"), k.Port("x"))
	z := r.Input("z", k.Port("z"))
	y, zz := r.Output("y", k.Port("y")), r.Output("zz", k.Port("zz"))
	check(t, graph.SetValues(k.Port("add"), float32(7)))
	check(t, r.Run(r.ctx))
	data := make([]float32, 10000)
	for i := range data {
		data[i] = float32(i)
	}
	for range 3 {
		check(t, in.Push(r.ctx, must[*graph.Block](t)(graph.FromSlice(big, data))))
		check(t, z.Push(r.ctx, must[*graph.Block](t)(graph.FromSlice(big, data))))
		for o, want := range map[*graph.Output]func(float32) float32{
			y: func(x float32) float32 { return x + 8 }, zz: func(x float32) float32 { return 2 * x },
		} {
			b := must[*graph.Block](t)(o.Pull(r.ctx))
			for i, v := range must[[]float32](t)(graph.Values[float32](r.ctx, b)) {
				if v != want(data[i]) {
					t.Fatalf("element %d is %v", i, v)
				}
			}
			b.Release()
		}
	}
	if len(names) != 9 {
		t.Errorf("%v", names)
	}
	if up := cr.Traffic().Up; up == 0 {
		t.Error("the cruncher did nothing")
	}
}

// 5.3: the shell: one matrix for each block and device, external, pointed at the block's memory anew by each dispatch, with the
// rows of the block's own header, and never freeing anything.
func TestShells(t *testing.T) {
	everywhere(t, func(r *rig) {
		rows := r.Template("rows", 2, 3, dtype.Float32, graph.Format{Records: true, Pool: 1})
		type seen struct {
			m    *matrix.Dense[float32]
			rows int
		}
		var shells []seen
		k := r.Task("k", graph.Func(func(d *graph.Dispatch) error {
			m, err := graph.Matrix[float32](d, "x")
			if err != nil {
				return err
			}
			again, err := graph.Matrix[float32](d, "y")
			if err != nil {
				return err
			}
			if m != again {
				return errors.New("two shells for one block")
			}
			b, err := d.Block("x")
			if err != nil {
				return err
			}
			n, cols := m.Dims()
			if want, _ := b.Dims(); n != want || cols != 3 || !m.External() || m.Device() != d.Device() {
				return errors.New("the shell is not the block's")
			}
			shells = append(shells, seen{m, n})
			return m.Assign(matrix.Add(m, matrix.Fill[float32](1, 1, 1)))
		}), graph.In("x", rows), graph.Out("y", rows, graph.PortConfig{InPlace: "x"}), graph.Require(r.devs[0]))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(r.t, r.Run(r.ctx))
		for i, n := range []int{2, 1, 2, 0, 2} {
			b := must[*graph.Block](r.t)(graph.FromSlice(rows, make([]float32, 3*n)))
			check(r.t, in.Push(r.ctx, b))
			b = must[*graph.Block](r.t)(out.Pull(r.ctx))
			check(r.t, b.Err())
			for _, v := range must[[]float32](r.t)(graph.Values[float32](r.ctx, b)) {
				if v != 1 {
					r.t.Errorf("dispatch %d: %v", i, v)
				}
			}
			if s := b.State(r.devs[0]); s != "SHARED" {
				r.t.Error(s)
			}
			b.Release()
		}
		for i := range shells { // the pool keeps one block's memory, and its shell
			if shells[i].m != shells[0].m {
				r.t.Errorf("dispatch %d has another shell", i)
			}
		}
	})
}

// An expression's result sizes a stream of records, and one of another size is an error.
func TestExpressionSizes(t *testing.T) {
	everywhere(t, func(r *rig) {
		rows := r.Template("rows", 2, 3, dtype.Float32, graph.Format{Records: true})
		square := r.Template("square", 3, 3, dtype.Float32)
		turn := func(in graph.Operands[float32]) matrix.Operand[float32] { return in("x").T().Mul(in("x")) }
		k := r.Task("k", graph.Expr(turn, turn, turn), graph.In("x", rows), graph.Out("a", rows), graph.Out("b", square), graph.Out("c", square, graph.PortConfig{Optional: true}))
		l := r.Task("l", graph.Expr(turn), graph.In("x", rows), graph.Out("y", r.m))
		n := r.Task("n", graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] { return in("oops") }), graph.In("x", rows), graph.Out("y", r.m))
		ins := []*graph.Input{r.Input("k", k.Port("x")), r.Input("l", l.Port("x")), r.Input("n", n.Port("x"))}
		a, b := r.Output("a", k.Port("a")), r.Output("b", k.Port("b"))
		wrong, missing := r.Output("wrong", l.Port("y")), r.Output("missing", n.Port("y"))
		check(r.t, r.Run(r.ctx))
		x := must[*graph.Block](r.t)(graph.FromSlice(rows, []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}))
		for _, in := range ins {
			r.push(in, x.Retain())
		}
		x.Release()
		for _, o := range []*graph.Output{a, b} {
			c := must[*graph.Block](r.t)(o.Pull(r.ctx))
			check(r.t, c.Err())
			if n, _ := c.Dims(); n != 3 {
				r.t.Errorf("%d rows", n)
			}
			v := must[[]float32](r.t)(graph.Values[float32](r.ctx, c))
			if len(v) != 9 || v[8] != 5 {
				r.t.Error(v)
			}
			c.Release()
		}
		r.fails(wrong, graph.ErrTemplate)
		r.fails(missing, graph.ErrName)
	})
}

// Planes and pitch reach the shell.
func TestLayouts(t *testing.T) {
	everywhere(t, func(r *rig) {
		wide := r.Template("wide", 2, 3, dtype.Float32, graph.Format{Planes: 2, Pitch: 4})
		k := r.Task("k", plus(1), graph.In("x", wide), graph.Out("y", wide))
		l := r.Task("l", plus(1), graph.In("x", wide), graph.Out("y", wide, graph.PortConfig{InPlace: "x"}))
		in := r.Input("x", k.Port("x"))
		r.Connect(k.Port("y"), l.Port("x"))
		out := r.Output("y", l.Port("y"))
		check(r.t, r.Run(r.ctx))
		data := make([]float32, 16)
		for i := range data {
			data[i] = float32(i)
		}
		r.push(in, must[*graph.Block](r.t)(graph.FromSlice(wide, data)))
		b := must[*graph.Block](r.t)(out.Pull(r.ctx))
		defer b.Release()
		for i, v := range must[[]float32](r.t)(graph.Values[float32](r.ctx, b)) {
			if want := float32(i + 2); i%4 < 3 && v != want {
				r.t.Errorf("element %d is %v", i, v)
			}
		}
	})
}

// What a body may ask for, and what it gets for asking wrongly.
func TestDispatch(t *testing.T) {
	everywhere(t, func(r *rig) {
		rows := r.Template("rows", 2, 3, dtype.Float32, graph.Format{Records: true})
		var kept *graph.Dispatch
		raw := r.Template("raw", 5, 1, dtype.Uint8)
		errs := map[string]error{}
		var hostErrs [2]error
		body := func(d *graph.Dispatch) error {
			kept = d
			_, errs["name"] = d.Block("none")
			_, errs["matrix of bytes"] = graph.Matrix[float32](d, "raw")
			errs["update of an input"] = d.Update("x", func([]byte) error { return nil })
			errs["signals of an input"] = d.SetSignals("x", graph.EOF)
			errs["failed"] = d.SetSignals("y", graph.Failed)
			errs["nil"] = d.View("x", nil)
			b, err := d.Block("x")
			errs["signals"] = b.SetSignals(graph.EOF)
			v, ferr := graph.Values[float32](d.Context(), b)
			if len(v) == 0 || v[0] != 3 || d.Context() == nil {
				ferr = errors.New("the dispatch is another's")
			}
			return errors.Join(err, ferr, d.Update("y", func([]byte) error { return nil }))
		}
		k := r.Task("k", graph.Func(body), graph.In("x", r.m), graph.In("raw", raw), graph.Out("y", rows), graph.Out("m", r.m))
		h := r.Task("h", graph.Host(func(d *graph.Dispatch) error {
			_, hostErrs[0] = graph.Matrix[float32](d, "x")
			_, hostErrs[1] = graph.Matrix[float32](d, "y")
			if d.Device() != nil {
				return errors.New("a device")
			}
			return nil
		}), graph.In("x", r.m), graph.Out("y", r.m))
		x, hx := r.Input("x", k.Port("x")), r.Input("hx", h.Port("x"))
		in, y, m := r.Input("raw", k.Port("raw")), r.Output("y", k.Port("y")), r.Output("m", k.Port("m"))
		hy := r.Output("hy", h.Port("y"))
		check(r.t, r.Run(r.ctx))
		held := r.full(3)
		r.push(x, held.Retain())
		r.push(hx, held.Retain())
		r.push(in, must[*graph.Block](r.t)(raw.From([]byte("12345"))))
		r.wants(y, 0)
		r.wants(m, 0)
		r.wants(hy, 0)
		held.Release()
		for what, want := range map[string]error{
			"name": graph.ErrName, "matrix of bytes": graph.ErrTemplate, "update of an input": gpu.ErrReadOnly,
			"signals of an input": gpu.ErrInvalid, "failed": gpu.ErrInvalid, "nil": gpu.ErrInvalid, "signals": graph.ErrShared,
		} {
			if !errors.Is(errs[what], want) {
				r.t.Errorf("%s: %v, want %v", what, errs[what], want)
			}
		}
		for _, err := range hostErrs {
			isError(r.t, err, gpu.ErrUnsupported)
		}
		_, err := graph.Matrix[float32](kept, "x")
		isError(r.t, err, graph.ErrState)
		isError(r.t, kept.SetSignals("y", 0), graph.ErrState)
	})
}

// An output in place of an input that has no expression passes the block on as it is.
func TestExprPasses(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] { return matrix.Add(in("x"), in("y")) }, nil),
			graph.In("x", r.m), graph.In("y", r.m), graph.Out("sum", r.m), graph.Out("same", r.m, graph.PortConfig{InPlace: "y"}))
		x, y := r.Input("x", k.Port("x")), r.Input("y", k.Port("y"))
		sum, same := r.Output("sum", k.Port("sum")), r.Output("same", k.Port("same"))
		check(r.t, r.Run(r.ctx))
		for i := float32(1); i < 4; i++ {
			r.push(x, r.full(i))
			b := r.full(10 * i)
			r.push(y, b)
			r.wants(sum, 11*i)
			out := must[*graph.Block](r.t)(same.Pull(r.ctx))
			v := must[[]float32](r.t)(graph.Values[float32](r.ctx, out))
			if out != b || v[0] != 10*i || v[5] != 10*i {
				r.t.Errorf("%v, want %v, or another block", v, 10*i)
			}
			out.Release()
		}
	})
	r := newRig(t, []string{"cpu"})
	k := r.Task("k", graph.Expr[float32](nil), graph.In("x", r.m), graph.Out("y", r.m))
	r.Input("x", k.Port("x"))
	r.Output("y", k.Port("y"))
	isError(t, r.Finalize(), gpu.ErrInvalid)
}

// Expressions read the inputs as they came, whichever outputs are made in place of these.
func TestExprInPlace(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", graph.Eval[float32]("x+y", "x-y", "x%y"), graph.In("x", r.m), graph.In("y", r.m),
			graph.Out("sum", r.m, graph.PortConfig{InPlace: "x"}), graph.Out("difference", r.m, graph.PortConfig{InPlace: "y"}), graph.Out("product", r.m))
		x, y := r.Input("x", k.Port("x")), r.Input("y", k.Port("y"))
		sum, difference, product := r.Output("sum", k.Port("sum")), r.Output("difference", k.Port("difference")), r.Output("product", k.Port("product"))
		check(r.t, r.Run(r.ctx))
		for i := float32(1); i < 4; i++ {
			r.push(x, r.full(10))
			r.push(y, r.full(i))
			r.wants(sum, 10+i)
			r.wants(difference, 10-i)
			r.wants(product, 10*i)
		}
	})
}

// Expressions of users have all operations of package matrix, as text and as Go.
func TestEval(t *testing.T) {
	everywhere(t, func(r *rig) {
		square := r.Template("square", 2, 2, dtype.Float32)
		one := r.Template("one", 1, 1, dtype.Float32)
		ports := []graph.TaskOption{
			graph.In("x", r.m), graph.Sticky("w", r.Template("w", 3, 2, dtype.Float32)), graph.Sticky("b", one),
			graph.Out("y", square), graph.Out("same", r.m, graph.PortConfig{InPlace: "x", Optional: true}),
		}
		text := r.Task("text", graph.Eval[float32]("relu(x*w + b)", ""), ports...)
		code := r.Task("code", graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] {
			return in("x").Mul(in("w")).Add(in("b")).Relu()
		}, nil), ports...)
		ins := []*graph.Input{r.Input("text", text.Port("x")), r.Input("code", code.Port("x"))}
		for _, k := range []*graph.Task{text, code} {
			check(r.t, graph.SetValues[float32](k.Port("w"), 1, 0, 0, 1, 1, -1))
			check(r.t, graph.SetValues[float32](k.Port("b"), -1))
		}
		outs := []*graph.Output{r.Output("text", text.Port("y")), r.Output("code", code.Port("y"))}
		check(r.t, r.Run(r.ctx))
		for i, out := range outs {
			r.push(ins[i], r.block(1, 2, 3, 4, 5, 6))
			b := must[*graph.Block](r.t)(out.Pull(r.ctx))
			check(r.t, b.Err())
			v := must[[]float32](r.t)(graph.Values[float32](r.ctx, b))
			if !slices.Equal(v, []float32{3, 0, 9, 0}) {
				r.t.Error(v)
			}
			b.Release()
		}
	})
	g := must[*graph.Graph](t)(graph.New(open(t, "cpu")))
	m := g.Template("m", 1, 1, dtype.Float32)
	k := g.Task("k", graph.Eval[float32]("x +"), graph.In("x", m), graph.Out("y", m))
	wrong := g.Task("wrong", graph.Eval[float32]("nobody + x"), graph.In("x", m), graph.Out("y", m))
	g.Input("x", k.Port("x"))
	g.Output("y", k.Port("y"))
	isError(t, g.Finalize(), matrix.ErrSyntax)
	check(t, g.Teardown())
	_ = wrong
}
