// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares what people read with testdata/name: a difference is to be looked at, and then taken over with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		devtest.Check(t, os.WriteFile(path, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	devtest.Check(t, err)
	got, old := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(old)) {
		if line, was := at(got, i), at(old, i); line != was {
			t.Errorf("line %d of %s\n got %s\nwant %s", i+1, path, line, was)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// messages collects what failed calls say.
type messages struct {
	t    *testing.T
	text bytes.Buffer
}

func (m *messages) section(name string) { m.text.WriteString("\n" + name + "\n") }

// add notes what a call says, which has to fail. Names that depend on the machine are left out.
func (m *messages) add(call string, err error) {
	m.t.Helper()
	if err == nil {
		m.t.Errorf("%s: no error", call)
		return
	}
	text := strings.ReplaceAll(err.Error(), "Go on "+runtime.GOARCH, "Go on ARCH")
	if fits := strings.Index(text, "nothing fits"); fits >= 0 {
		before, _, _ := strings.Cut(text[fits:], "; there are: ")
		text = text[:fits] + before + "; there are: ADAPTERS"
	}
	m.text.WriteString("  " + call + "\n    " + fault.Code(err) + " | " + strings.ReplaceAll(text, "\n", "\n      ") + "\n")
}

// after notes what the last of two values says.
func after[V any](m *messages) func(call string) func(_ V, err error) {
	return func(call string) func(V, error) { return func(_ V, err error) { m.add(call, err) } }
}

type (
	dense  = *matrix.Dense[float32]
	sparse = *matrix.Sparse[float32]
)

// TestMessages looks at what people read when a call of theirs fails: which one, with what, why, and what would fit.
func TestMessages(t *testing.T) {
	m := &messages{t: t}
	limited := []gpu.Option{gpu.WithMaxBuffer(1 << 20), gpu.WithMemory(4 << 20)}
	one, two := devtest.Open(t, devtest.Native(), limited...), devtest.Open(t, "cpu", limited...)
	m.ofDevices(one, two)
	m.ofKernels(one, two)
	m.ofMatrices(one, two)
	m.ofChanges(one, two)
	m.ofSparse(one)
	m.ofArrays(one)
	m.ofFiles(one)
	m.ofCrunchers(one, two)
	m.ofGraphs(one)
	golden(t, "messages.txt", strings.TrimSpace(m.text.String())+"\n")
}

func closed(t *testing.T) *gpu.Device {
	t.Helper()
	dev := devtest.Open(t, "cpu")
	devtest.Check(t, dev.Close())
	return dev
}

func (m *messages) ofDevices(one, two *gpu.Device) {
	m.section("package gpu: devices and buffers")
	ctx := m.t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	dev := after[*gpu.Device](m)
	dev("gpu.Open(ctx, gpu.WithDriver(\"vulcan\"))")(gpu.Open(ctx, gpu.WithDriver("vulcan")))
	dev("gpu.Open(ctx, gpu.WithMaxBuffer(100))")(gpu.Open(ctx, gpu.WithMaxBuffer(100)))
	dev("gpu.Open(ctx, gpu.WithDevice(7))")(gpu.Open(ctx, gpu.WithDevice(7)))
	dev("gpu.Open(nil)")(gpu.Open(context.Context(nil)))
	dev("gpu.Open(ended)")(gpu.Open(ended))
	after[[]*gpu.Device](m)("gpu.Select(ctx).At(70).Open(ctx)")(gpu.Select(ctx).Driver("cpu").At(70).Open(ctx))
	buf := after[*gpu.Buffer](m)
	buf("dev.NewBuffer(2<<20)")(one.NewBuffer(2 << 20))
	buf("closed.NewBuffer(16)")(closed(m.t).NewBuffer(16))
	buf("dev.ImportBuffer(7)")(one.ImportBuffer(7))
	m.add("dev.Sync(ended)", one.Sync(ended))
	m.add("closed.Sync(ctx)", closed(m.t).Sync(ctx))
	m.add("dev.Reopen(ctx)", func() error { d := closed(m.t); return d.Reopen(ctx) }())

	a, b := devtest.Must[*gpu.Buffer](m.t)(one.NewBuffer(64)), devtest.Must[*gpu.Buffer](m.t)(two.NewBuffer(64))
	m.add("buf.Write(2, 4 bytes)", a.Write(2, gpu.HostBytes(make([]byte, 4))))
	m.add("buf.Write(64, 4 bytes)", a.Write(64, gpu.HostBytes(make([]byte, 64))))
	m.add("buf.Clear(0, 1000)", a.Clear(0, 1000))
	m.add("buf.CopyFrom of another device", a.CopyFrom(0, b, 0, 16))
	m.add("buf.CopyFrom of itself", a.CopyFrom(0, a, 16, 16))
	m.add("buf.Read beyond the end", a.Read(ctx, gpu.Transfer{Offset: 32, Host: gpu.HostBytes(make([]byte, 64)), Width: 64, Count: 1}))
	m.add("buf.Read into too little", a.Read(ctx, gpu.Transfer{Host: gpu.HostBytes(make([]byte, 8)), Width: 64, Count: 1}))
	m.add("buf.Read(ended)", a.Read(ended, gpu.Transfer{Host: gpu.HostBytes(make([]byte, 8)), Width: 8, Count: 1}))
	m.add("buf.Map of what is not mappable", a.Map(ctx, 0, 8, func([]byte) error { return nil }))
	devtest.Check(m.t, a.Close())
	m.add("closedBuffer.Clear(0, 16)", a.Clear(0, 16))
	var kept []*gpu.Buffer
	for range 8 {
		k, err := two.NewBuffer(1 << 19)
		if err != nil {
			m.add("dev.NewBuffer beyond WithMemory", err)
			break
		}
		kept = append(kept, k)
	}
	for _, k := range append(kept, b) {
		devtest.Check(m.t, k.Close())
	}
}

func (m *messages) ofKernels(one, two *gpu.Device) {
	m.section("package gpu: kernels")
	ctx := m.t.Context()
	source := "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n" +
		"@compute @workgroup_size(1) fn main() { x[0] = 1.0; }"
	desc := gpu.KernelDesc{Label: "one", Source: source, Bindings: []driver.Access{driver.AccessReadWrite}}
	k := devtest.Must[*gpu.Kernel](m.t)(one.Kernel(ctx, desc))
	buf := devtest.Must[*gpu.Buffer](m.t)(one.NewBuffer(64))
	other := devtest.Must[*gpu.Buffer](m.t)(two.NewBuffer(64))
	kernel := after[*gpu.Kernel](m)
	wrong := desc
	wrong.Source = strings.Replace(source, "1.0", "1.0 + true", 1)
	kernel("dev.Kernel that does not compile")(one.Kernel(ctx, wrong))
	wrong.Source = strings.Replace(source, "@compute", "@computer", 1)
	kernel("dev.Kernel that does not parse")(one.Kernel(ctx, wrong))
	wrong = desc
	wrong.Entry = "mine"
	kernel("dev.Kernel without its entry point")(one.Kernel(ctx, wrong))
	wrong.Entry, wrong.Source = "", ""
	kernel("dev.Kernel without a source")(one.Kernel(ctx, wrong))
	wrong = desc
	wrong.Bindings = nil
	kernel("dev.Kernel without its binding")(one.Kernel(ctx, wrong))
	kernel("oracle.Kernel of WGSL")(two.Kernel(ctx, desc))
	m.add("k.Dispatch without an argument", k.Dispatch([3]uint32{1, 1, 1}, nil))
	m.add("k.Dispatch with parameters", k.Dispatch([3]uint32{1, 1, 1}, make([]byte, 16), gpu.Arg{Buffer: buf}))
	m.add("k.Dispatch of many groups", k.Dispatch([3]uint32{1 << 20, 1, 1}, nil, gpu.Arg{Buffer: buf}))
	m.add("k.Dispatch on another device's buffer", k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: other}))
	m.add("k.Dispatch at offset 8", k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: buf, Offset: 8}))
	m.add("k.Dispatch beyond the end", k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: buf, Size: 1024}))
	devtest.Check(m.t, buf.Close())
	m.add("k.Dispatch on a closed buffer", k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: buf}))
	devtest.Check(m.t, errors.Join(k.Close(), other.Close()))
	m.add("closedKernel.Dispatch", k.Dispatch([3]uint32{1, 1, 1}, nil, gpu.Arg{Buffer: buf}))
}

func (m *messages) ofMatrices(one, two *gpu.Device) {
	m.section("package matrix: constructors, expressions, elements")
	ctx := m.t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	mat, t := after[dense](m), m.t
	values := func(n int) []float32 { return make([]float32, n) }
	mat("matrix.New(nil, 2, 2)")(matrix.New[float32](nil, 2, 2))
	mat("matrix.New(closed, 2, 2)")(matrix.New[float32](closed(t), 2, 2))
	mat("matrix.New(dev, -1, 2)")(matrix.New[float32](one, -1, 2))
	mat("matrix.New(dev, 1000, 1000)")(matrix.New[float32](one, 1000, 1000))
	mat("matrix.New(dev, 1<<40, 1<<40)")(matrix.New[float32](one, 1<<40, 1<<40))
	mat("matrix.New(dev, 2, 2, {Stride: 1})")(matrix.New[float32](one, 2, 2, matrix.Options{Stride: 1}))
	mat("matrix.New(dev, 2, 2, {Type: Int32})")(matrix.New[float32](one, 2, 2, matrix.Options{Type: matrix.Int32}))
	mat("matrix.New(dev, 2, 2, {Release})")(matrix.New[float32](one, 2, 2, matrix.Options{Release: func() {}}))
	mat("matrix.FromSlice(dev, 2, 3, 5 values)")(matrix.FromSlice(one, 2, 3, values(5)))
	mat("matrix.FromSlice(dev, 2, 3, 7 values, {Offset: 2})")(matrix.FromSlice(one, 2, 3, values(7), matrix.Options{Offset: 2}))
	mat("matrix.FromSlice(dev, 2, 3, nil)")(matrix.FromSlice[float32](one, 2, 3, nil))
	mat("matrix.FromSlice(closed, 2, 3, 6 values)")(matrix.FromSlice(closed(t), 2, 3, values(6)))
	mat("matrix.Map(closed, 2, 2)")(matrix.Map[float32](closed(t), 2, 2))
	mat("matrix.Wrap(dev, 2, 3, 5 values)")(matrix.Wrap(one, 2, 3, values(5)))
	mat("matrix.Wrap(closed, 2, 3, 6 values)")(matrix.Wrap(closed(t), 2, 3, values(6)))
	mat("matrix.Wrap(dev, 2, 3, 6 values, {Aligned})")(matrix.Wrap(one, 2, 3, values(6), matrix.Options{Aligned: true}))
	mat("matrix.Wrap(dev, 2, 3, 6 values, {Padded})")(matrix.Wrap(one, 2, 3, values(6), matrix.Options{Padded: true}))
	mat("matrix.WrapBuffer(dev, 2, 2, nil)")(matrix.WrapBuffer[float32](one, 2, 2, nil))
	mat("matrix.WrapBuffer(dev, 2, 2, 7)")(matrix.WrapBuffer[float32](one, 2, 2, 7))
	mat("matrix.FromBuffer[float32](dev, 2, 2, []int32, 0)")(matrix.FromBuffer[float32](one, 2, 2, make([]int32, 4), 0))
	mat("matrix.FromBuffer[float32](dev, 2, 2, []int32, DontOwnBuffer)")(matrix.FromBuffer[float32](one, 2, 2, make([]int32, 4), buffer.DontOwnBuffer))
	mat("matrix.FromBuffer[float32](dev, 2, 2, []float32, SetValueOnDevice)")(matrix.FromBuffer[float32](one, 2, 2, values(4), buffer.SetValueOnDevice))
	mat("matrix.FromBuffer[float32](dev, 2, 2, nil, 0)")(matrix.FromBuffer[float32](one, 2, 2, nil, 0))
	mat("matrix.FromRows to many values")(matrix.FromRows(closed(t), [][]float32{{1}, {2}}))

	a, b := devtest.Must[dense](t)(matrix.New[float32](one, 2, 3)), devtest.Must[dense](t)(matrix.New[float32](one, 5, 6))
	c, far := devtest.Must[dense](t)(matrix.New[float32](one, 3, 3)), devtest.Must[dense](t)(matrix.New[float32](two, 3, 3))
	gone := devtest.Must[dense](t)(matrix.New[float32](one, 2, 3))
	devtest.Check(t, gone.Close())
	m.add("c.Mul(a, b)", c.Mul(a, b))
	m.add("c.Add(a, b)", c.Add(a, b))
	m.add("c.Assign(matrix.Add(a, b))", c.Assign(matrix.Add[float32](a, b)))
	m.add("c.Add(a, closedMatrix)", c.Add(a, gone))
	m.add("closedMatrix.Add(a, a)", gone.Add(a, a))
	m.add("c.Add(c, far)", c.Add(c, far))
	m.add("c.Add(a, nil)", c.Add(a, nil))
	m.add("c.Assign(nil)", c.Assign(nil))
	m.add("c.Mul of nil matrix", c.Mul(a, dense(nil)))
	m.add("view.Add(a, a) of another size", c.Row(0).Add(a, a))
	m.add("c.AssignContext(ended, a)", c.AssignContext(ended, a))
	after[dense](m)("matrix.Fill(2, 2, 1).Eval()")(matrix.Fill[float32](2, 2, 1).Eval())
	after[float32](m)("matrix.Sum of 2x3 .Value(ctx)")(matrix.Tanh[float32](a).Value(ctx))
	after[float32](m)("c.At(ctx, 3, 0)")(c.At(ctx, 3, 0))
	m.add("c.Set(0, 7, 1)", c.Set(0, 7, 1))
	m.add("c.SetCol(1, 2 values)", c.SetCol(1, values(2)))
	m.add("c.SetSlice(8 values)", c.SetSlice(values(8)))
	m.add("c.SetSlice(10 values)", c.SetSlice(values(10)))
	m.add("c.SetRows of 2 slices", c.SetRows([][]float32{{1}, {2}}))
	m.add("c.SetRows of a long slice", c.SetRows([][]float32{{1}, {2}, {1, 2, 3, 4}}))
	m.add("c.ReadTo(ctx, 4 values)", c.ReadTo(ctx, values(4)))
	after[[]float32](m)("c.Read(ended)")(c.Read(ended))
	after[[]float32](m)("c.Read(nil)")(c.Read(context.Context(nil)))
	after[[]float32](m)("closedMatrix.Read(ctx)")(gone.Read(ctx))
	after[[]float32](m)("c.Slice(0, 9, 0, 1).Read(ctx)")(c.Slice(0, 9, 0, 1).Read(ctx))
	after[[]float32](m)("c.Reshape(2, 5).Read(ctx)")(c.Reshape(2, 5).Read(ctx))
	after[[]float32](m)("a.DiagView().Read(ctx)")(a.DiagView().Read(ctx))
	ints := devtest.Must[*matrix.Dense[int32]](t)(matrix.New[int32](one, 2, 2))
	m.add("ints.Assign(matrix.Tanh(ints))", ints.Assign(matrix.Tanh[int32](ints)))
	after[*matrix.Dense[float32]](m)("matrix.As[float32](ints)")(matrix.As[float32](ints))
	apply := func(text string) error { return c.Assign(matrix.Apply[float32](matrix.NewFunc(text), c)) }
	m.add("c.Assign(matrix.Apply(a function that does not compile))", apply("fn f(x: f32) -> f32 {\n  return x + y;\n}"))
	m.add("c.Assign(matrix.Apply(no function))", apply("let x = 1;"))
	m.add("c.Assign(matrix.Apply(of two arguments))", apply("fn f(x: f32, y: f32) -> f32 { return x; }"))
	eval := func(text string) error {
		return c.Assign(matrix.Eval(text, map[string]matrix.Operand[float32]{"A": a, "B": b}))
	}
	for _, text := range []string{"A*B", "A +", "A*Q", "nope(A)", "tanh(A, B)", "A[0:9, 0:1]"} {
		m.add("matrix.Eval(\""+text+"\")", eval(text))
	}
	m.add("c.Access(ctx, .., nil)", c.Access(ctx, buffer.Reads, nil))
	m.add("c.Access that uses c", c.Access(ctx, buffer.Writes, func([]float32) error { return c.Fill(1) }))
	equal, err := matrix.EqualAll[float32](ctx, c, far)
	_ = equal
	m.add("matrix.EqualAll(ctx, c, far)", err)
}

func (m *messages) ofChanges(one, two *gpu.Device) {
	m.section("package matrix: sizes, views, values")
	ctx, t := m.t.Context(), m.t
	mine, two22 := make([]float32, 6), devtest.Must[dense](t)(matrix.New[float32](one, 2, 2))
	w := devtest.Must[dense](t)(matrix.Wrap(one, 2, 3, mine))
	read := devtest.Must[dense](t)(matrix.FromBuffer[float32](one, 2, 3, func() gpu.Host {
		h := matrix.Host(mine)
		h.ReadOnly = true
		return h
	}(), buffer.DontOwnBuffer))
	big := devtest.Must[dense](t)(matrix.New[float32](one, 4, 4))
	m.add("wrapped.Assign(4x4)", w.Assign(big))
	m.add("wrapped.Resize(4, 4)", w.Resize(4, 4))
	m.add("wrapped.SetValue(4x4)", w.SetValue(big))
	m.add("wrapped.SetValueFrom(4, 4, 16 values, 0)", w.SetValueFrom(4, 4, make([]float32, 16), 0))
	m.add("wrapped.SetValueFrom(2, 2, 3 values, 0)", w.SetValueFrom(2, 2, make([]float32, 3), 0))
	m.add("wrapped.SetValueFrom(2, 2, []int32, 0)", w.SetValueFrom(2, 2, make([]int32, 4), 0))
	m.add("wrapped.SetShape(4, 4)", w.SetShape(4, 4))
	m.add("wrapped.MoveTo(ctx, other)", w.MoveTo(ctx, two))
	m.add("readOnly.Fill(1)", read.Fill(1))
	m.add("readOnly.Set(0, 0, 1)", read.Set(0, 0, 1))
	view := big.Row(1)
	m.add("parent.Resize(5, 5) with a view", big.Resize(5, 5))
	m.add("parent.SetValue(2x2) with a view", big.SetValue(two22))
	m.add("view.SetValue(2x2)", view.SetValue(two22))
	m.add("view.Resize(1, 1)", view.Resize(1, 1))
	devtest.Check(t, view.Close())
	lent := big.T()
	_ = lent.Expr()
	devtest.Check(t, big.Resize(5, 5))
	after[[]float32](m)("view of what was resized .Read(ctx)")(lent.Read(ctx))
	m.add("empty.SetValueFrom", new(matrix.Dense[float32]).SetValueFrom(1, 1, make([]float32, 1), 0))
	m.add("empty.Resize(2, 2)", new(matrix.Dense[float32]).Resize(2, 2))
	after[*ndarray.Array](m)("empty.Array()")(new(matrix.Dense[float32]).Array())
	after[dense](m)("big.CopyTo(ctx, closed)")(big.CopyTo(ctx, closed(t)))
	m.add("big.MoveTo(ctx, closed)", big.MoveTo(ctx, closed(t)))
	old := devtest.Open(t, "cpu")
	x := devtest.Must[dense](t)(matrix.FromSlice(old, 1, 2, []float32{1, 2}))
	devtest.Check(t, old.Close())
	after[[]float32](m)("Read(ctx) on a closed device")(x.Read(ctx))
	m.add("Fill(1) on a closed device", x.Fill(1))
	m.add("Sync(ctx) on a closed device", x.Sync(ctx))
	m.add("Add(x, x) on a closed device", x.Add(x, x))
}

func (m *messages) ofSparse(one *gpu.Device) {
	m.section("package matrix: sparse matrices")
	ctx, t := m.t.Context(), m.t
	sp := after[sparse](m)
	from := func(rows, cols int, values []float32, indices, pointers []int32) (sparse, error) {
		return matrix.NewSparse(one, matrix.CSR, rows, cols, values, indices, pointers)
	}
	sp("matrix.NewSparse with 2 pointers for 2 rows")(from(2, 3, []float32{1}, []int32{0}, []int32{0, 1}))
	sp("matrix.NewSparse with column 7 of 3")(from(2, 3, []float32{1}, []int32{7}, []int32{0, 1, 1}))
	sp("matrix.NewSparse with fewer indices")(from(2, 3, []float32{1, 2}, []int32{0}, []int32{0, 1, 2}))
	sp("matrix.NewSparse with falling pointers")(from(2, 3, []float32{1, 2}, []int32{0, 1}, []int32{0, 2, 1}))
	sp("matrix.NewSparse(closed)")(matrix.NewSparse(closed(t), matrix.CSR, 1, 1, []float32{1}, []int32{0}, []int32{0, 1}))
	s := devtest.Must[sparse](t)(from(2, 3, []float32{1, 2}, []int32{0, 1}, []int32{0, 1, 2}))
	d := devtest.Must[dense](t)(matrix.New[float32](one, 2, 2))
	m.add("d.Mul(sparse 2x3, 2x2)", d.Mul(s, d))
	m.add("1x2.Assign(sparse 2x3)", d.Row(0).Assign(s))
	sp("matrix.Exp(sparse).Sparse()")(matrix.Exp(s).Sparse())
	m.add("matrix.Exp(sparse).With(1)", matrix.Exp(s).With(matrix.Fill[float32](1, 1, 1)).Err())
	m.add("sparse.With(1x3)", s.Expr().With(matrix.Fill[float32](1, 3, 1)).Err())
	sp("matrix.MulBlockColumn(2x3, sparse 2x3)")(matrix.MulBlockColumn(matrix.Fill[float32](2, 3, 1), s))
	sp("sparse.ToFormat(9)")(s.ToFormat(9))
	m.add("s.Append(0, 0, 1)", s.Append(0, 0, 1))
	m.add("s.Append(9, 9, 1)", s.Append(9, 9, 1))
	sp("matrix.SparseFromDense(ctx, closed)")(func() (sparse, error) { _ = d.Close(); return matrix.SparseFromDense(ctx, d, matrix.CSR) }())
	m.add("s.ColumnSlice(1, 9)", s.ColumnSlice(1, 9).Err())
}

func (m *messages) ofArrays(one *gpu.Device) {
	m.section("packages buffer and ndarray")
	ctx, t := m.t.Context(), m.t
	buf := after[*buffer.Buffer](m)
	buf("buffer.New(nil, 4)")(buffer.New(nil, 4))
	buf("buffer.New(closed, 4)")(buffer.New(closed(t), 4))
	buf("buffer.New(dev, 2<<20)")(buffer.New(one, 2<<20))
	buf("buffer.FromHost(closed, 4 bytes)")(buffer.FromHost(closed(t), gpu.HostBytes(make([]byte, 4))))
	buf("buffer.Map(closed, 4)")(buffer.Map(closed(t), 4))
	buf("buffer.WrapDevice(dev, 7)")(buffer.WrapDevice(one, 7, nil))
	b := devtest.Must[*buffer.Buffer](t)(buffer.New(one, 16))
	m.add("b.Write(8, 16 bytes)", b.Write(8, gpu.HostBytes(make([]byte, 16))))
	m.add("b.Read(.., 4 bytes)", b.Read(ctx, buffer.Range(0, 16), gpu.HostBytes(make([]byte, 4)), 0))
	m.add("b.Read beyond", b.Read(ctx, buffer.Range(8, 16), gpu.HostBytes(make([]byte, 16)), 0))
	devtest.Check(t, b.Close())
	m.add("closedBuffer.Sync", b.Sync(ctx))

	arr := after[*ndarray.Array](m)
	arr("ndarray.Alloc(dev, Float32, 2, -3)")(ndarray.Alloc(one, dtype.Float32, 2, -3))
	arr("ndarray.Alloc(dev, Float32, 1000, 1000)")(ndarray.Alloc(one, dtype.Float32, 1000, 1000))
	arr("ndarray.Alloc(closed, Float32, 2)")(ndarray.Alloc(closed(t), dtype.Float32, 2))
	arr("ndarray.FromSlice(dev, 5 values, 2, 3)")(ndarray.FromSlice(one, make([]float32, 5), 2, 3))
	arr("ndarray.FromSlice(dev, 7 values, 2, 3)")(ndarray.FromSlice(one, make([]float32, 7), 2, 3))
	arr("ndarray.FromSlice(closed, 6 values, 2, 3)")(ndarray.FromSlice(closed(t), make([]float32, 6), 2, 3))
	arr("ndarray.FromBytes(dev, Float32, 10 bytes, 2)")(ndarray.FromBytes(one, dtype.Float32, make([]byte, 10), 2))
	arr("ndarray.Wrap(dev, 5 values, [2 3])")(ndarray.Wrap(one, make([]float32, 5), []int{2, 3}, ndarray.Placement{}))
	a := devtest.Must[*ndarray.Array](t)(ndarray.FromSlice(one, make([]float32, 24), 2, 3, 4))
	o := devtest.Must[*ndarray.Array](t)(ndarray.FromSlice(one, make([]int32, 6), 2, 3))
	arr("a.Reshape(5, 5)")(a.Reshape(5, 5))
	arr("a.Transpose(0, 0, 1)")(a.Transpose(0, 0, 1))
	arr("a.Index(5)")(a.Index(5))
	arr("a.View(Int32, 4, 24)")(a.View(dtype.Int32, 4, 24))
	m.add("a.CopyFrom(ctx, int32 2x3)", a.CopyFrom(ctx, o))
	m.add("a.Assign(ctx, int32 2x3)", a.Assign(ctx, o))
	m.add("a.CopyFromBytes(ctx, 10 bytes)", a.CopyFromBytes(ctx, make([]byte, 10)))
	m.add("a.CopyToBytes(ctx, 10 bytes)", a.CopyToBytes(ctx, make([]byte, 10)))
	after[[]int32](m)("ndarray.Data[int32](ctx, float32s)")(ndarray.Data[int32](ctx, a))
	after[dense](m)("matrix.FromArray(3 dimensions)")(matrix.FromArray[float32](a))
	after[dense](m)("matrix.FromArray[float32](int32s)")(matrix.FromArray[float32](o))
	devtest.Check(t, a.Close())
	after[[]byte](m)("closedArray.Bytes(ctx)")(a.Bytes(ctx))
	arr("Params.Get(\"w\")")(ndarray.Params{}.Get("w"))
}

func (m *messages) ofFiles(one *gpu.Device) {
	m.section("files")
	ctx := m.t.Context()
	par := after[ndarray.Params](m)
	load := func(data string) (ndarray.Params, error) {
		return ndarray.LoadParams(ctx, one, strings.NewReader(data), ndarray.LoadOptions{})
	}
	par("ndarray.LoadParams(\"hello\")")(load("hello"))
	par("ndarray.LoadParams(half a header)")(load("\xf7\xe5\x8d\x4f\x05\x36\xac\xfd"))
	_, err := npy.NewReader(strings.NewReader("hello"), 5)
	m.add("npy.NewReader(\"hello\")", err)
	_, err = safetensors.NewReader(strings.NewReader("hello world"))
	m.add("safetensors.NewReader(\"hello world\")", err)
}

func (m *messages) ofCrunchers(one, two *gpu.Device) {
	m.section("package buffer/cruncher")
	ctx, t := m.t.Context(), m.t
	cru := after[*cruncher.Cruncher](m)
	inc := "fn inc(i: u32) { a[i] = a[i] + 1u; }"
	devices := []*gpu.Device{one}
	cru("cruncher.New(ctx, nil, ..)")(cruncher.New(ctx, nil, inc))
	cru("cruncher.New(ctx, closed, ..)")(cruncher.New(ctx, []*gpu.Device{closed(t)}, inc))
	cru("cruncher.New(ctx, oracle, ..)")(cruncher.New(ctx, []*gpu.Device{two}, inc))
	cru("cruncher.New(ctx, devices, no kernel)")(cruncher.New(ctx, devices, "hello"))
	cr := devtest.Must[*cruncher.Cruncher](t)(cruncher.New(ctx, devices, inc))
	a := devtest.Must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("a", 100))
	f := devtest.Must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("other", 100))
	compute := func(kernels string, r cruncher.Range, ps ...cruncher.Param) error {
		return cr.Compute(ctx, 1, kernels, r, ps...)
	}
	m.add("cr.Compute(\"dec\")", compute("dec", cruncher.Range{Global: 100}, a.As("a")))
	m.add("cr.Compute without the array", compute("inc", cruncher.Range{Global: 100}))
	m.add("cr.Compute with an array of another name", compute("inc", cruncher.Range{Global: 100}, f.As("other")))
	m.add("cr.Compute(Range{Global: -1})", compute("inc", cruncher.Range{Global: -1}, a.As("a")))
	m.add("cr.Compute(Range{Global: 101})", compute("inc", cruncher.Range{Global: 101}, a.As("a")))
	m.add("cr.Compute(Range{Global: 100, Local: 64, Strict: true})", compute("inc", cruncher.Range{Global: 100, Local: 64, Strict: true}, a.As("a")))
	m.add("arr.SetFlags({ElementsPerItem: -1})", a.SetFlags(cruncher.Flags{ElementsPerItem: -1}))
	after[uint32](m)("arr.At(100)")(a.At(100))
	_, err := cruncher.NewArray[float32]("", 1)
	m.add("cruncher.NewArray(\"\", 1)", err)
	_, err = cruncher.NewArray[float32]("x", -1)
	m.add("cruncher.NewArray(\"x\", -1)", err)
	devtest.Check(t, cr.Close())
	m.add("closedCruncher.Compute", compute("inc", cruncher.Range{Global: 100}, a.As("a")))
	bad := devtest.Must[*cruncher.Cruncher](t)(cruncher.New(ctx, devices, "fn inc(i: u32) { a[i] = a[i] + 1.5; }"))
	m.add("cr.Compute of what does not compile", bad.Compute(ctx, 1, "inc", cruncher.Range{Global: 100}, a.As("a")))
	devtest.Check(t, bad.Close())
}

func (m *messages) ofGraphs(one *gpu.Device) {
	m.section("package matrix/graph")
	ctx, t := m.t.Context(), m.t
	_, err := graph.New([]*gpu.Device{closed(t)})
	m.add("graph.New(closed)", err)
	g := devtest.Must[*graph.Graph](t)(graph.New([]*gpu.Device{one}))
	tm := g.Template("m", 2, 2, dtype.Float32)
	k := g.Task("k", graph.Eval[float32]("x*"), graph.In("x", tm), graph.Out("y", tm))
	g.Input("x", k.Port("x"))
	m.add("g.Finalize() of an unconnected port and a bad expression", g.Finalize())
	_, err = graph.FromSlice(tm, []float32{1})
	m.add("graph.FromSlice(2x2, 1 value)", err)
	devtest.Check(t, g.Teardown())
	m.add("g.Run(ctx) after Teardown", g.Run(ctx))

	g = devtest.Must[*graph.Graph](t)(graph.New([]*gpu.Device{one}))
	defer func() { _ = g.Teardown() }()
	tm = g.Template("m", 2, 3, dtype.Float32)
	k = g.Task("layer", graph.Eval[float32]("x*x"), graph.In("x", tm), graph.Out("y", tm))
	in, out := g.Input("x", k.Port("x")), g.Output("y", k.Port("y"))
	devtest.Check(t, g.Run(ctx))
	block := devtest.Must[*graph.Block](t)(graph.FromSlice(tm, make([]float32, 6)))
	devtest.Check(t, in.Push(ctx, block))
	result := devtest.Must[*graph.Block](t)(out.Pull(ctx))
	_, err = graph.Values[float32](ctx, result)
	m.add("graph.Values of a product that does not fit", err)
	result.Release()
	m.add("in.Push(ctx, nil)", in.Push(ctx, nil))
}
