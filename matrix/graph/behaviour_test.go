// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// 5.4 graphcuadd: C = A + B with a sticky scalar, several pushes in order, results in the order of the pushes.
func TestAdd(t *testing.T) {
	everywhere(t, func(r *rig) {
		one := r.Template("one", 1, 1, dtype.Float32)
		add := r.Task("add", graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] {
			return matrix.MulElem(matrix.Add(in("a"), in("b")), in("scale"))
		}), graph.In("a", r.m), graph.In("b", r.m), graph.Sticky("scale", one), graph.Out("c", r.m))
		a, b := r.Input("a", add.Port("a")), r.Input("b", add.Port("b"))
		c := r.Output("c", add.Port("c"))
		check(r.t, graph.SetValues(add.Port("scale"), float32(2)))
		check(r.t, r.Run(r.ctx))
		for i := float32(0); i < 20; i++ {
			r.push(a, r.full(i))
			r.push(b, r.full(100*i))
			if i >= 3 {
				r.wants(c, 2*101*(i-3))
			}
		}
		r.wants(c, 2*101*17, 2*101*18, 2*101*19)
		r.none(c)
	})
}

// 5.4 initports: an initialiser's zeros and a sticky 10 make all 10, as long as there is room.
func TestInitialiser(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("ten", add(), graph.Init("x", r.m), graph.Sticky("y", r.m), graph.Out("c", r.m))
		out := r.Output("c", k.Port("c"))
		check(r.t, k.Port("y").Set(r.full(10)))
		check(r.t, r.Run(r.ctx))
		r.wants(out, 10, 10, 10, 10, 10, 10, 10)
		check(r.t, r.Stop(r.ctx)) // what needs no input from anybody does not keep the graph from stopping
		for _, c := range r.Stats().Channels {
			if c.Peak > c.Capacity {
				r.t.Errorf("%s had %d of %d", c.Name, c.Peak, c.Capacity)
			}
		}
	})
}

// An initialiser brings the template's bytes where it has some.
func TestInitialValue(t *testing.T) {
	everywhere(t, func(r *rig) {
		five := r.Template("five", 2, 3, dtype.Float32, graph.Format{Initial: matrix.Host([]float32{5, 5, 5, 5, 5, 5}).Bytes})
		k := r.Task("k", add(), graph.Init("x", five), graph.In("y", r.m), graph.Out("c", r.m))
		in, out := r.Input("y", k.Port("y")), r.Output("c", k.Port("c"))
		check(r.t, r.Run(r.ctx))
		r.push(in, r.full(1))
		r.push(in, r.full(2))
		r.wants(out, 6, 7)
	})
}

// 5.4 inout: the output's block is the input's, and the next consumer sees it changed.
func TestInPlace(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", plus(1), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
		l := r.Task("l", plus(10), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
		in := r.Input("in", k.Port("x"))
		r.Connect(k.Port("y"), l.Port("x"))
		out := r.Output("out", l.Port("y"))
		check(r.t, r.Run(r.ctx))
		for i := float32(0); i < 5; i++ {
			b := r.full(i)
			r.push(in, b)
			c := must[*graph.Block](r.t)(out.Pull(r.ctx))
			if c != b {
				r.t.Error("another block came out")
			}
			v := must[[]float32](r.t)(graph.Values[float32](r.ctx, c))
			if v[0] != i+11 {
				r.t.Errorf("%v, want %v", v[0], i+11)
			}
			c.Release()
		}
		if n := r.Stats().Clones; n != 0 {
			r.t.Errorf("%d clones", n)
		}
	})
}

// 5.2 output fan-out and 5.4 tee: readers share one block; writers get clones, all of them if anybody reads, all but one if not.
func TestFanOut(t *testing.T) {
	for _, c := range []struct {
		name             string
		readers, writers int
		suppress         bool
		clones           uint64
	}{
		{"readers", 3, 0, false, 0},
		{"a writer", 0, 1, false, 0},
		{"writers", 0, 3, false, 2},
		{"both", 1, 1, false, 1},
		{"many", 2, 2, false, 2},
		{"suppressed", 1, 1, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(r *rig) {
				opts := []graph.PortConfig{}
				if c.suppress {
					opts = append(opts, graph.PortConfig{SuppressClones: true})
				}
				tee := r.Task("tee", pass(), graph.In("x", r.m), graph.Out("y", r.m, opts...))
				in := r.Input("in", tee.Port("x"))
				var outs []*graph.Output
				var blocks []*graph.Block
				for i := range c.readers {
					outs = append(outs, r.Output("read"+string(rune('0'+i)), tee.Port("y")))
				}
				for i := range c.writers {
					k := r.Task("write"+string(rune('0'+i)), plus(float32(i+1)), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
					r.Connect(tee.Port("y"), k.Port("x"))
					outs = append(outs, r.Output("written", k.Port("y")))
				}
				check(r.t, r.Run(r.ctx))
				r.push(in, r.full(1))
				for i, o := range outs {
					b := must[*graph.Block](r.t)(o.Pull(r.ctx))
					blocks = append(blocks, b)
					want := float32(1)
					if i >= c.readers {
						want += float32(i - c.readers + 1)
					}
					if v := must[[]float32](r.t)(graph.Values[float32](r.ctx, b)); v[5] != want && !c.suppress {
						r.t.Errorf("output %d has %v, want %v", i, v[5], want)
					}
					b.Release()
				}
				for i := range blocks {
					for j := range i {
						if same := blocks[i] == blocks[j]; same != (i < c.readers || c.suppress) {
							r.t.Errorf("outputs %d and %d have one block: %v", j, i, same)
						}
					}
				}
				if n := r.Stats().Clones; n != c.clones {
					r.t.Errorf("%d clones, want %d", n, c.clones)
				}
			})
		})
	}
}

// 5.4 deferredports: a described port has the size of another input's block before the task runs, or another property.
func TestDescribed(t *testing.T) {
	everywhere(t, func(r *rig) {
		made := uint32(0)
		rows := r.Template("rows", 2, 3, dtype.Float32, graph.Format{Records: true, Create: func(*graph.Block) any {
			made++
			return []uint32{made, 0x04030201, 5}
		}})
		flag := func(s graph.Signals) func(*graph.Block) []uint32 {
			return func(b *graph.Block) []uint32 { return []uint32{uint32(b.Signals()&s) / uint32(s)} }
		}
		names := map[string]func(*graph.Block) []uint32{
			"size": func(b *graph.Block) []uint32 { rows, cols := b.Dims(); return []uint32{uint32(4 * rows * cols)} },
			"dims": func(b *graph.Block) []uint32 { rows, cols := b.Dims(); return []uint32{uint32(rows), uint32(cols)} },
			"eof":  flag(graph.EOF), "bof": flag(graph.BOF),
			"code":     func(b *graph.Block) []uint32 { return []uint32{uint32(b.Signals())} },
			"uid":      func(b *graph.Block) []uint32 { return b.Context().([]uint32)[:1] },
			"meta":     func(b *graph.Block) []uint32 { return b.Context().([]uint32)[1:] },
			"template": func(*graph.Block) []uint32 { return []uint32{2, 3, 1} }, // a closure knows the template
		}
		words := r.Template("words", 1, 1, dtype.Uint32, graph.Format{Records: true})
		opts := []graph.TaskOption{graph.In("x", rows), graph.Out("y", r.m)}
		for n, f := range names {
			opts = append(opts, graph.Described(n, words, "x", f))
		}
		got := map[string][]uint32{}
		k := r.Task("k", graph.Host(func(d *graph.Dispatch) error {
			for n := range names {
				err := d.View(n, func(mem []byte) error {
					got[n] = nil
					for ; len(mem) > 0; mem = mem[4:] {
						got[n] = append(got[n], binary.LittleEndian.Uint32(mem))
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		}), opts...)
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(r.t, r.Run(r.ctx))
		b := must[*graph.Block](r.t)(graph.FromSlice(rows, make([]float32, 15)))
		r.push(in, b, graph.EOF|graph.EndIteration)
		r.wants(out, 0)
		for n, want := range map[string][]uint32{
			"size": {60}, "dims": {5, 3}, "eof": {1}, "bof": {0}, "code": {uint32(graph.EOF | graph.EndIteration)},
			"uid": {1}, "meta": {0x04030201, 5}, "template": {2, 3, 1},
		} {
			if len(got[n]) != len(want) {
				r.t.Fatalf("%s: %v, want %v", n, got[n], want)
			}
			for i := range want {
				if got[n][i] != want[i] {
					r.t.Errorf("%s: %v, want %v", n, got[n], want)
				}
			}
		}
	})
}

// 5.4 metaports: the allocation size makes the output's block; and the iterators call the body as often as they say.
func TestMeta(t *testing.T) {
	everywhere(t, func(r *rig) {
		rows := r.Template("rows", 2, 3, dtype.Float32, graph.Format{Records: true})
		triple := r.Template("triple", 3, 1, dtype.Uint32)
		var seen []int
		k := r.Task("k", graph.Host(func(d *graph.Dispatch) error {
			seen = append(seen, d.Iteration())
			return nil
		}), graph.In("bytes", r.word, graph.PortConfig{Sizes: "y"}), graph.In("loop", triple, graph.PortConfig{Iterates: true}), graph.Out("y", rows))
		size, loop := r.Input("bytes", k.Port("bytes")), r.Input("loop", k.Port("loop"))
		out := r.Output("y", k.Port("y"))
		n := 0
		l := r.Task("l", graph.Host(func(*graph.Dispatch) error { n++; return nil }),
			graph.Sticky("n", r.word, graph.PortConfig{Iterates: true}), graph.In("x", r.m), graph.Out("y", r.m))
		in, counted := r.Input("x", l.Port("x")), r.Output("counted", l.Port("y"))
		check(r.t, l.Port("n").Set(r.scalar(4)))
		check(r.t, r.Run(r.ctx))

		r.push(size, r.scalar(7*12))
		r.push(loop, must[*graph.Block](r.t)(graph.FromSlice(triple, []uint32{3, 10, 4})))
		b := must[*graph.Block](r.t)(out.Pull(r.ctx))
		if rows, cols := b.Dims(); rows != 7 || cols != 3 {
			r.t.Errorf("%dx%d", rows, cols)
		}
		b.Release()
		if len(seen) != 2 || seen[0] != 3 || seen[1] != 7 {
			r.t.Errorf("iterations %v", seen)
		}
		r.push(in, r.full(1))
		r.push(in, r.full(1))
		r.wants(counted, 0, 0)
		if n != 8 {
			r.t.Errorf("%d calls", n)
		}

		r.push(size, r.scalar(13)) // no whole rows
		r.push(loop, must[*graph.Block](r.t)(graph.FromSlice(triple, []uint32{0, 1, 1})))
		r.fails(out, graph.ErrTemplate)
	})
}

// 5.4 gatedports: blocks leave only when the controller's first word is not 0 or it is the end of the stream; and the opposite.
func TestGates(t *testing.T) {
	everywhere(t, func(r *rig) {
		words := graph.Host(func(d *graph.Dispatch) error {
			b, err := d.Block("gate")
			if err != nil {
				return err
			}
			v, err := graph.Values[uint32](d.Context(), b)
			if err != nil {
				return err
			}
			n := v[0]
			put := func(port string, v uint32) error {
				return d.Update(port, func(mem []byte) error { binary.LittleEndian.PutUint32(mem, v); return nil })
			}
			return errors.Join(put("flag", n), put("y", n+10), put("z", n+20))
		})
		k := r.Task("k", words, graph.In("gate", r.word), graph.Out("flag", r.word, graph.PortConfig{Optional: true}),
			graph.Out("y", r.word, graph.PortConfig{OpenedBy: "flag"}), graph.Out("z", r.word, graph.PortConfig{ClosedBy: "flag"}))
		in := r.Input("gate", k.Port("gate"))
		y, z := r.Output("y", k.Port("y")), r.Output("z", k.Port("z"))
		check(r.t, r.Run(r.ctx))
		for _, v := range []uint32{0, 1, 0, 2} {
			r.push(in, r.scalar(v))
		}
		r.push(in, r.scalar(0), graph.EOF)
		pull := func(o *graph.Output, want uint32) {
			r.t.Helper()
			b := must[*graph.Block](r.t)(o.Pull(r.ctx))
			defer b.Release()
			if v := must[[]uint32](r.t)(graph.Values[uint32](r.ctx, b)); v[0] != want {
				r.t.Errorf("%d, want %d", v[0], want)
			}
		}
		pull(y, 11)
		pull(y, 12)
		pull(y, 10) // the end of the stream opens it
		pull(z, 20)
		pull(z, 20)
		check(r.t, r.Stop(r.ctx))
		r.none(y)
		r.none(z)
	})
}

// 5.4 channelpredication: CLOSE_ON_EOF drops the end of the stream, OPEN_ON_EOF passes only it, and so on for all predicates,
// at both ends of channels.
func TestPredicates(t *testing.T) {
	signals := []graph.Signals{0, graph.BOF, graph.EOF, graph.BeginIteration, graph.EndIteration, graph.DevNull}
	for _, c := range []struct {
		p    graph.Predicate
		want []float32 // which of the signals pass
	}{
		{graph.Predicate{}, []float32{0, 1, 2, 3, 4}},
		{graph.Predicate{OpenOn: graph.BOF}, []float32{1}},
		{graph.Predicate{CloseOn: graph.BOF}, []float32{0, 2, 3, 4}},
		{graph.Predicate{OpenOn: graph.EOF}, []float32{2}},
		{graph.Predicate{CloseOn: graph.EOF}, []float32{0, 1, 3, 4}},
		{graph.Predicate{OpenOn: graph.BeginIteration}, []float32{3}},
		{graph.Predicate{CloseOn: graph.BeginIteration}, []float32{0, 1, 2, 4}},
		{graph.Predicate{OpenOn: graph.EndIteration}, []float32{4}},
		{graph.Predicate{CloseOn: graph.EndIteration}, []float32{0, 1, 2, 3}},
		{graph.Predicate{OpenOn: graph.DevNull}, nil},
		{graph.Predicate{Ask: func(b *graph.Block) bool { return b.Signals()&graph.BOF != 0 || b.Signals()&graph.EOF != 0 }}, []float32{1, 2}},
		{graph.Predicate{Ask: func(*graph.Block) bool { panic("no") }}, nil},
	} {
		t.Run(graph.PredicateName(c.p), func(t *testing.T) {
			for _, end := range []func(graph.Predicate) graph.Channel{
				func(p graph.Predicate) graph.Channel { return graph.Channel{Push: p, Capacity: 10} },
				func(p graph.Predicate) graph.Channel { return graph.Channel{Pull: p, Capacity: 10} },
			} {
				everywhere(t, func(r *rig) {
					k := r.Task("k", pass(), graph.In("x", r.m), graph.Out("y", r.m))
					in := r.Input("x", k.Port("x"), end(c.p))
					out := r.Output("y", k.Port("y"), graph.Channel{Capacity: 10})
					check(r.t, r.Run(r.ctx))
					for i, s := range signals {
						r.push(in, r.full(float32(i)), s)
					}
					check(r.t, r.Stop(r.ctx))
					for _, want := range c.want {
						if v, s := r.pull(out); v != want || s != signals[int(want)] {
							r.t.Errorf("%v with %v, want %v", v, s, want)
						}
					}
					r.none(out)
				})
			}
		})
	}
}

// A block that does not pass can be held, with all behind it, until it does.
func TestHold(t *testing.T) {
	everywhere(t, func(r *rig) {
		open := make(chan bool, 100)
		pass := false
		k := r.Task("k", plus(0), graph.In("x", r.m), graph.Out("y", r.m))
		in := r.Input("x", k.Port("x"))
		out := r.Output("y", k.Port("y"), graph.Channel{Pull: graph.Predicate{Ask: func(*graph.Block) bool {
			select {
			case pass = <-open:
			default:
			}
			return pass
		}}, Hold: true})
		open <- false
		check(r.t, r.Run(r.ctx))
		r.push(in, r.full(1))
		r.push(in, r.full(2))
		check(r.t, r.Stop(r.ctx))
		if n := out.Len(); n != 2 {
			r.t.Fatalf("%d blocks", n)
		}
		_, err := out.Pull(r.ctx)
		isError(r.t, err, graph.ErrStopped)
		open <- true
		r.Reconsider()
		r.wants(out, 1, 2)
	})
}

// A push that has waited does not go by what a predicate said before: a block is not held for a reason that is gone.
func TestHoldAfterWait(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	var open atomic.Bool
	k := r.Task("k", pass(), graph.In("x", r.m), graph.Out("y", r.m))
	in := r.Input("x", k.Port("x"), graph.Channel{
		Capacity: 1, Pull: graph.Predicate{Ask: func(*graph.Block) bool { return open.Load() }}, Hold: true,
	})
	out := r.Output("y", k.Port("y"))
	check(t, r.Run(r.ctx))
	r.push(in, r.full(1)) // held, so that the channel is full
	pushed := make(chan error)
	b := r.full(2)
	go func() { pushed <- in.Push(r.ctx, b) }()
	for range 100 {
		runtime.Gosched()
	}
	open.Store(true)
	r.Reconsider()
	check(t, <-pushed)
	r.wants(out, 1, 2)
}

// 5.4 permanentblocks: a block that is pinned once serves in all dispatches, and nobody releases it. A task that would write
// it writes a clone.
func TestPermanent(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", add(), graph.In("x", r.m), graph.In("y", r.m), graph.Out("z", r.m))
		w := r.Task("w", plus(1), graph.In("x", r.m), graph.In("go", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
		in, start := r.Input("x", k.Port("x")), r.Input("go", w.Port("go"))
		out, written := r.Output("z", k.Port("z")), r.Output("y", w.Port("y"))
		b := r.full(7)
		check(r.t, k.Port("y").Set(b.Retain()))
		check(r.t, w.Port("x").Set(b.Retain()))
		check(r.t, r.Run(r.ctx))
		for i := float32(0); i < 6; i++ {
			r.push(in, r.full(i))
			r.push(start, r.full(i))
			r.wants(out, i+7)
			r.wants(written, 8)
		}
		check(r.t, r.Stop(r.ctx))
		if b.Refs() != 3 {
			r.t.Errorf("%d holders", b.Refs())
		}
		if v := must[[]float32](r.t)(graph.Values[float32](r.ctx, b)); v[0] != 7 {
			r.t.Errorf("it was written: %v", v)
		}
		check(r.t, k.Port("y").Set(nil))
		check(r.t, w.Port("x").Set(nil))
		if b.Refs() != 1 {
			r.t.Errorf("%d holders", b.Refs())
		}
		b.Release()
	})
}

// 5.1 sticky: the last block stays until another one comes, by the channel or by Set.
func TestSticky(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", add(), graph.In("x", r.m), graph.Sticky("y", r.m), graph.Out("z", r.m))
		x, y := r.Input("x", k.Port("x")), r.Input("y", k.Port("y"))
		out := r.Output("z", k.Port("z"))
		check(r.t, r.Run(r.ctx))
		r.push(y, r.full(10))
		for i := float32(0); i < 3; i++ {
			r.push(x, r.full(i))
			r.wants(out, i+10)
		}
		r.push(y, r.full(20))
		r.push(x, r.full(1))
		r.wants(out, 21)
		check(r.t, k.Port("y").Set(r.full(30)))
		r.push(x, r.full(1))
		r.wants(out, 31)
	})
}
