// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// workbench makes operands for plans, each in a memory of its own.
type workbench struct {
	memories []plan.Memory
	numbers  []uint32
}

func (w *workbench) operand(t fuse.Type, rows, cols int) plan.Operand {
	w.memories = append(w.memories, plan.Memory{Size: rows * cols * t.Size(), Vectors: true})
	return plan.Operand{Layout: expr.Layout{Rows: rows, Cols: cols, Stride: cols}, Type: t, Mem: len(w.memories) - 1}
}

func (w *workbench) leaf(op plan.Operand) *expr.Node {
	return &expr.Node{Kind: expr.Leaf, Type: op.Type, Rows: op.Rows, Cols: op.Cols, Source: op}
}

func (w *workbench) matrix(rows, cols int) *expr.Node { return w.leaf(w.operand(fuse.F32, rows, cols)) }

func (w *workbench) number(v float64) *expr.Node {
	n := expr.Number(fuse.F32, 1, 1, v)
	w.numbers = append(w.numbers, n.Bits())
	return n
}

var hardware = plan.Device{
	Binding: 1 << 27, Buffer: 1 << 28, Storage: 8, Device: kernels.Portable,
}

func (w *workbench) plan(d plan.Device, to plan.Operand, n *expr.Node) (*plan.Plan, error) {
	if n.Err != nil {
		return nil, n.Err
	}
	return plan.New(plan.Input{
		Device: d, Root: n, To: to, Memories: w.memories,
		Operand: func(n *expr.Node) plan.Operand { return n.Source.(plan.Operand) }, Numbers: w.numbers,
	})
}

func binary(op fuse.Op, a, b *expr.Node) *expr.Node { return expr.NewMap("test", op, a, b) }
func unary(op fuse.Op, a *expr.Node) *expr.Node     { return expr.NewMap("test", op, a) }
func sumOf(axis fuse.Axis, a *expr.Node) *expr.Node {
	return expr.NewReduction("test", fuse.ReduceSum, axis, 0, a)
}
func transposeOf(a *expr.Node) *expr.Node { return expr.NewTranspose("test", a) }
func product(a, b *expr.Node) *expr.Node  { return expr.NewProduct("test", a, b) }

// cases are expressions whose plans and kernels are kept as golden files.
var cases = map[string]struct {
	rows, cols int
	tree       func(w *workbench, to plan.Operand) *expr.Node
}{
	"chain": {16, 16, func(w *workbench, _ plan.Operand) *expr.Node {
		return unary(fuse.OpTanh, binary(fuse.OpAdd, binary(fuse.OpMul, w.matrix(16, 16), w.number(2)), w.matrix(1, 16)))
	}},
	"product with tail": {8, 12, func(w *workbench, _ plan.Operand) *expr.Node {
		return unary(fuse.OpRelu, binary(fuse.OpAdd, product(w.matrix(8, 20), w.matrix(20, 12)), w.matrix(1, 12)))
	}},
	"long product": {4, 4, func(w *workbench, _ plan.Operand) *expr.Node {
		return product(w.matrix(4, 4096), w.matrix(4096, 4))
	}},
	"product of products": {8, 8, func(w *workbench, _ plan.Operand) *expr.Node {
		return product(product(w.matrix(8, 8), w.matrix(8, 8)), w.matrix(8, 8))
	}},
	"product of products and a column": {16, 1, func(w *workbench, _ plan.Operand) *expr.Node {
		return product(product(w.matrix(16, 12), binary(fuse.OpMul, w.matrix(12, 8), w.number(2))), w.matrix(8, 1))
	}},
	"rows of a product": {3, 16, func(w *workbench, _ plan.Operand) *expr.Node {
		i, j := expr.NewIndex("test", 3, 1, fuse.AxisRows), expr.NewIndex("test", 1, 16, fuse.AxisCols)
		i.Value = 4
		return expr.NewGather("test", product(w.matrix(16, 12), w.matrix(12, 16)), i, j)
	}},
	"product into a factor": {8, 8, func(w *workbench, to plan.Operand) *expr.Node {
		return product(w.leaf(to), w.matrix(8, 8))
	}},
	"transpose in place": {8, 8, func(w *workbench, to plan.Operand) *expr.Node {
		return binary(fuse.OpAdd, w.leaf(to), transposeOf(w.leaf(to)))
	}},
	"rows from an odd element": {8, 8, func(w *workbench, _ plan.Operand) *expr.Node {
		from := w.operand(fuse.F32, 9, 8)
		from.Rows, from.Offset = 8, 1
		return binary(fuse.OpAdd, w.leaf(from), w.matrix(8, 8))
	}},
	"sum of all": {1, 1, func(w *workbench, _ plan.Operand) *expr.Node {
		return sumOf(fuse.AxisAll, unary(fuse.OpSquare, w.matrix(512, 512)))
	}},
	"sum of rows of a transpose": {64, 1, func(w *workbench, _ plan.Operand) *expr.Node {
		return sumOf(fuse.AxisRows, transposeOf(w.matrix(32, 64)))
	}},
	"softmax": {8, 100, func(w *workbench, _ plan.Operand) *expr.Node {
		return expr.NewSoftmax("test", false, binary(fuse.OpMul, w.matrix(8, 100), w.number(3)))
	}},
	"float16": {5, 7, func(w *workbench, _ plan.Operand) *expr.Node {
		return expr.NewConversion("test", fuse.F32, w.leaf(w.operand(fuse.F16, 5, 7)))
	}},
}

// TestGolden holds plans and kernels to what they were; -update accepts what they are.
func TestGolden(t *testing.T) {
	for name, c := range cases {
		for device, software := range map[string]bool{"hardware": false, "software": true} {
			t.Run(name+" on "+device, func(t *testing.T) {
				w := &workbench{}
				to := w.operand(fuse.F32, c.rows, c.cols)
				d := hardware
				d.Software = software
				p, err := w.plan(d, to, c.tree(w, to))
				if err != nil {
					t.Fatal(err)
				}
				golden(t, strings.ReplaceAll(name, " ", "-")+"-"+device, text(t, p))
			})
		}
	}
}

// text is a plan and the text of its kernels, without comments.
func text(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(launches(p))
	for _, s := range p.Steps {
		k := s.Program(s.Func)
		b.WriteString("\n// " + k.Name + "\n")
		for line := range strings.Lines(k.Source) {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") && strings.TrimSpace(line) != "" {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run go test -update and look at what changed. It is now:\n%s", file, got)
	}
}

// TestBlocks plans a sum over a matrix of four times what a kernel can bind.
func TestBlocks(t *testing.T) {
	w := &workbench{}
	to := w.operand(fuse.F32, 1, 1)
	d := hardware
	d.Binding = 1 << 12
	a := w.matrix(64, 64)
	p, err := w.plan(d, to, sumOf(fuse.AxisAll, a))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, s := range p.Steps {
		for _, b := range s.Bindings {
			bytes := (b.Hi - b.Lo) * b.Type.Size()
			if bytes > 1<<12 {
				t.Errorf("a step binds elements %d to %d:\n%s", b.Lo, b.Hi, launches(p))
			}
			if b.Intent == buffer.Reads {
				read += bytes
			}
		}
	}
	if len(p.Steps) < 5 || read < 64*64*4 {
		t.Error(launches(p))
	}
}

// TestPure makes the same plan twice, and the same one for other numbers.
func TestPure(t *testing.T) {
	make := func(v float64) string {
		w := &workbench{}
		to := w.operand(fuse.F32, 16, 16)
		p, err := w.plan(hardware, to, binary(fuse.OpMul, w.matrix(16, 16), w.number(v)))
		if err != nil {
			t.Fatal(err)
		}
		return text(t, p)
	}
	if a := make(2); a != make(2) || a != make(3) {
		t.Error(a)
	}
}

// TestTooMany refuses a function of more matrices than a kernel can bind.
func TestTooMany(t *testing.T) {
	w := &workbench{}
	to := w.operand(fuse.F32, 4, 4)
	args := []*expr.Node{}
	for range 6 {
		args = append(args, w.matrix(4, 4))
	}
	d := hardware
	d.Storage = 4
	call := &fuse.Call{Name: "f", Arity: 6, WGSL: "fn f(a: f32, b: f32, c: f32, d: f32, e: f32, g: f32) -> f32 { return a; }"}
	if _, err := w.plan(d, to, expr.NewCall("test", call, args...)); err == nil {
		t.Error("no error")
	}
}

// launches lists the launches of a plan, a line for each with what it binds.
func launches(p *plan.Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		words := []string{"reserve"}
		if s.Launch != nil {
			words = []string{s.Name(), "in"}
			for _, g := range s.Groups {
				words = append(words, strconv.Itoa(int(g)))
			}
		}
		for _, w := range s.Bindings {
			window := fmt.Sprintf("m%d[%d:%d]x%d", w.Mem, w.Lo, w.Hi, w.Type.Size())
			words = append(words, [...]string{"reads", "writes", "replaces"}[w.Intent%3], window)
		}
		b.WriteString(strings.Join(words, " ") + ", " + strconv.Itoa(len(s.Numbers)) + " numbers\n")
	}
	return b.String()
}

// TestNarrow multiplies whole numbers of 8 bits in float32 where that is worth it and there is room for it.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		m, k, n int
		free    uint64
		want    bool
	}{
		{256, 256, 256, 0, true},
		{64, 5000, 64, 0, true},
		{256, 256, 256, 1 << 22, true},
		{4096, 4096, 4096, 0, true},
		{8192, 4096, 8192, 0, false},
		{64, 64, 64, 0, false},
		{1, 4096, 4096, 0, false},
		{256, 256, 256, 3 << 20, false},
	} {
		w := &workbench{}
		to := w.operand(fuse.I8, c.m, c.n)
		n := product(w.leaf(w.operand(fuse.I8, c.m, c.k)), w.leaf(w.operand(fuse.I8, c.k, c.n)))
		p, err := plan.New(plan.Input{
			Device: hardware, Root: n, To: to, Memories: w.memories, Free: c.free,
			Operand: func(n *expr.Node) plan.Operand { return n.Source.(plan.Operand) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Func.Type == fuse.F32 }); got != c.want {
			t.Errorf("%v: in float32 %t:\n%s", c, got, launches(p))
		}
	}
}
