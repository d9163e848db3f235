// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// typedError wants an error that programs can tell: an OpError with a sentinel.
func typedError(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*gpu.OpError](err); !ok || fault.Code(err) == "Error" {
		t.Fatalf("%s: the error %v has no type or no code", what, err)
	}
}

// hostileTexts want too much: of the parser, of the planner, or of the memory. Large ones are not for the fuzzer, which looks long for
// their smallest form.
var hostileTexts = []string{
	"S*S", "S%A - S", "T(S)+S*2", "S*A*S", "sumcols(S/S)", "S[1, 0]", "inv(S)", "A*A", "tanh(A*T(A)+1)", "where(A>1,A,-A)", "slice(A,0,1,0,1)", "((((", "1e999*A", "A.T.T*R.T", "A % 0b2", "A + 1__0", "A*R", "R*A", "X+A",
	"fill(1099511627776, 1, 1)", "fill(1, 18446744073709551616, 1)", "fill(-1,-1,1)", "fill(0,4294967295,1)", "fill(65535,65537,1)",
	"fill(0x7fffffffffffffff, 2, 1) * A", "slice(A, 0, 9223372036854775807, 0, 1)", "row(A, -9223372036854775808)", "col(A, 1e18)",
	"A+0x1p-1074", "A*1e308*1e308", "\xff\xfeA", "A\x00", "\u202eA", "A // B", "A /* ", "é+A", "sum(E)", "E*T(E)", "softmax(E)", "maxrows(E)",
	"fill(0,0,0)+E", "prod(R)", "A == A", "A[-1, :]", "A[1, 1][0]", "(A*A)[0:2, -1:]", "A[9223372036854775807]", "A[-9223372036854775808:]", "A[::2]", "A[",
	"A[0,0,0]", "E[0:0]", "A**2**A", "-A**-1", "A ^ 2", "A @ A.T", "A < A < A", "B = A*A; B + 1", "B = A\nC = B", "rowindex(2, 1e10)", "gather(A, A, A)",
	"int8(A) + 1", "bool(A)", "mean_cols(A)", "np.exp(A)", "rowindex(2, 3) + 0.5", "fill(3, 2, 1)[1]", "A = 1", "; ;", "slice(A, -1, -5, 0, 1)",
	"A" + strings.Repeat("[0:2]", 300), "A" + strings.Repeat("[0:2, 0:2]", 6000), "(A+1)" + strings.Repeat("[:, 0:1]", 13000)[:9000], strings.Repeat("A[", 20000),
	strings.Repeat("2**", 20000) + "A", strings.Repeat("X1 = A;", 9000), "A[" + strings.Repeat("0,", 30000),
	"A" + strings.Repeat("+A", 900), "A" + strings.Repeat("*A", 500), "A" + strings.Repeat("+A", 20000), strings.Repeat("T(", 900) + "A" + strings.Repeat(")", 900),
	strings.Repeat("(", 30000) + "A" + strings.Repeat(")", 30000), strings.Repeat("-", 900) + "A", strings.Repeat("!", 60000) + "A",
	"A" + strings.Repeat(".T", 20000), "max(" + strings.Repeat("A,", 30000) + "A)", strings.Repeat("max(A,", 900) + "A" + strings.Repeat(")", 900),
	"A" + strings.Repeat("-(A", 400) + strings.Repeat(")", 400), strings.Repeat("A", 65536), strings.Repeat("A ", 40000), strings.Repeat("9", 60000),
	strings.Repeat("softmax(", 900) + "A" + strings.Repeat(")", 900),
}

// large finds expressions with a fill of many elements, which may take long because they are to: those are not run.
var large = regexp.MustCompile(`(?i)fill.*(\d{3}|\de|\dx|\dp)|(\d{3}|\de|\dx|\dp).*fill`)

// evalMatrices are what texts are about: X is closed.
func evalMatrices(t testing.TB) map[string]arg {
	dev, err := gpu.Open(background, gpu.WithDriver("cpu"), gpu.WithMemory(64<<20))
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })
	m := map[string]arg{
		"A": must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4})),
		"R": must[*dense](t)(matrix.FromSlice(dev, 1, 3, []float32{-1, 0.5, 1e30})),
		"E": must[*dense](t)(matrix.New[float32](dev, 0, 3)),
		"X": must[*dense](t)(matrix.New[float32](dev, 2, 2)),
		"S": must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 2, []float32{1, -2, 3}, []int32{0, 1, 1}, []int32{0, 2, 3})),
	}
	check(t, m["X"].(*dense).Close())
	return m
}

// evalTwice wants a text to be an expression or a typed error, and evaluating it twice to give the same bits or the same error.
func evalTwice(t *testing.T, text string, matrices map[string]arg) {
	t.Helper()
	e := matrix.Eval(text, matrices)
	r, c := e.Dims()
	if err := e.Err(); err != nil {
		typedError(t, text, err)
		return
	}
	if r < 0 || c < 0 {
		t.Errorf("%q: %dx%d without an error", text, r, c)
	}
	if large.MatchString(text) {
		return
	}
	first, err := e.Read(background)
	again, err2 := matrix.Eval(text, matrices).Read(background)
	if (err == nil) != (err2 == nil) || err != nil && fault.Code(err) != fault.Code(err2) {
		t.Fatalf("%q: %v, then %v", text, err, err2)
	}
	if err != nil {
		typedError(t, text, err)
	} else if !slices.EqualFunc(first, again, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }) {
		t.Fatalf("%q: %v, then %v", text, first, again)
	}
}

// TestEvalHostile also bounds what a text may allocate: some hundred bytes for each of its own.
func TestEvalHostile(t *testing.T) {
	matrices := evalMatrices(t)
	for _, text := range hostileTexts {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = matrix.Eval(text, matrices)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16+1000*uint64(len(text)) {
			t.Errorf("%.40q: %d bytes for a text of %d", text, n, len(text))
		}
		evalTwice(t, text, matrices)
	}
}

func FuzzEval(f *testing.F) {
	matrices := evalMatrices(f)
	for _, s := range hostileTexts {
		if len(s) < 50 {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, text string) { evalTwice(t, text, matrices) })
}

// extremes are numbers at which sums, products and conversions go wrong.
var extremes = []int{
	-1, math.MinInt, math.MaxInt, math.MinInt + 1, math.MaxInt - 1, 1 << 31, 1 << 32, 1<<32 - 1, -1 << 31, 1 << 62, 1 << 59, -1 << 62,
	math.MaxInt / 2, math.MaxInt / 4, math.MaxInt / 16, math.MaxInt/16 + 1, 1 << 40,
}

// numbers reads a fuzzer's bytes as numbers, most of them small.
type numbers []byte

func (n *numbers) byte() byte {
	if len(*n) == 0 {
		return 0
	}
	b := (*n)[0]
	*n = (*n)[1:]
	return b
}

func (n *numbers) int() int {
	b := int(n.byte())
	if b >= 256-len(extremes) {
		return extremes[b-256+len(extremes)]
	}
	return b % 10
}

// viewModel is a view as the documentation says: its elements are those of memory at offset + i*down + j*along.
type viewModel struct {
	rows, cols, offset, down, along int
	colMajor                        bool
}

func (v viewModel) at(i, j int) int { return v.offset + i*v.down + j*v.along }

func (v viewModel) turned() viewModel {
	return viewModel{v.cols, v.rows, v.offset, v.along, v.down, !v.colMajor}
}

// window is Slice, or not ok where it leaves the matrix.
func (v viewModel) window(i, k, j, l int) (viewModel, bool) {
	if i < 0 || k < i || k > v.rows || j < 0 || l < j || l > v.cols {
		return v, false
	}
	v.rows, v.cols, v.offset = k-i, l-j, v.at(i, j)
	return v, true
}

// count is window for n rows or columns from start on, without overflow.
func count(start, n int) (end int, ok bool) {
	e := new(big.Int).Add(big.NewInt(int64(start)), big.NewInt(int64(n)))
	return start + n, e.IsInt64() && e.Int64() <= math.MaxInt
}

// reshaped is Reshape. Elements without gaps lie in a row.
func (v viewModel) reshaped(rows, cols int) (viewModel, bool) {
	n := new(big.Int).Mul(big.NewInt(int64(rows)), big.NewInt(int64(cols)))
	if rows < 0 || cols < 0 || n.Cmp(big.NewInt(int64(v.rows*v.cols))) != 0 {
		return v, false
	}
	minor, major, stride := v.cols, v.rows, v.down
	if v.colMajor {
		minor, major, stride = v.rows, v.cols, v.along
	}
	if major > 1 && stride != minor {
		return v, false
	}
	if v.colMajor {
		return viewModel{rows, cols, v.offset, 1, rows, true}, true
	}
	return viewModel{rows, cols, v.offset, cols, 1, false}, true
}

// viewMemory is how many elements the wrapped slice has; as many guards lie on both sides of it.
const viewMemory = 80

// made is what Wrap with the options is, by its documentation and without overflow.
func made(rows, cols int, o matrix.Options) (viewModel, bool) {
	v := viewModel{rows, cols, o.Offset, cols, 1, o.ColMajor}
	minor, major := cols, rows
	if o.ColMajor {
		minor, major = rows, cols
	}
	if rows < 0 || cols < 0 || o.Offset < 0 || o.Stride < 0 {
		return v, false
	}
	stride := minor
	if o.Stride != 0 {
		stride = o.Stride
	}
	up := new(big.Int).Mul(big.NewInt((int64(minor)+3)/4), big.NewInt(4))
	if int64(minor) > math.MaxInt64-3 {
		return v, false
	}
	large := func(x, y int) *big.Int { return new(big.Int).Mul(big.NewInt(int64(x)), big.NewInt(int64(y))) }
	need := new(big.Int)
	if rows != 0 && cols != 0 {
		need = large(major-1, stride)
		need.Add(need, big.NewInt(int64(minor)))
	}
	if o.Padded {
		need = large(major, stride)
	}
	need.Add(need, big.NewInt(int64(o.Offset)))
	limit := large(max(major, 1), max(stride, 1))
	limit.Add(limit, big.NewInt(int64(o.Offset)))
	switch {
	case stride < minor, o.Padded && big.NewInt(int64(stride)).Cmp(up) < 0, o.Aligned && (o.Offset%4 != 0 || stride%4 != 0):
		return v, false
	case need.Cmp(big.NewInt(viewMemory)) > 0, limit.Cmp(big.NewInt(math.MaxInt/16)) > 0, large(rows, cols).Cmp(big.NewInt(math.MaxInt/16)) > 0:
		return v, false
	}
	v.down, v.along = stride, 1
	if o.ColMajor {
		v.down, v.along = 1, stride
	}
	return v, true
}

// step takes a view of a view, of the matrix and of the model.
func (v viewModel) step(m *dense, n *numbers) (*dense, viewModel, bool) {
	kind := n.byte() % 9
	a, b, c, d := n.int(), n.int(), n.int(), n.int()
	var ok bool
	switch kind {
	case 0:
		v, ok = v.window(a, b, c, d)
		return m.Slice(a, b, c, d), v, ok
	case 1:
		if end, fits := count(a, 1); fits {
			v, ok = v.window(a, end, 0, v.cols)
		}
		return m.Row(a), v, ok
	case 2:
		if end, fits := count(a, 1); fits {
			v, ok = v.window(0, v.rows, a, end)
		}
		return m.Col(a), v, ok
	case 3:
		if end, fits := count(a, b); fits {
			v, ok = v.window(0, v.rows, a, end)
		}
		return m.ColumnSlice(a, b), v, ok
	case 4:
		if end, fits := count(a, b); fits {
			v, ok = v.window(a, end, 0, v.cols)
		}
		return m.RowSlice(a, b), v, ok
	case 5:
		v, ok = v.reshaped(a, b)
		return m.Reshape(a, b), v, ok
	case 6:
		diagonal := viewModel{1, v.rows, v.offset, 1, v.down + v.along, true}
		return m.DiagView(), diagonal, v.rows == v.cols
	case 7:
		return m.Alias(), v, true
	}
	return m.T(), v.turned(), true
}

// FuzzViews: a matrix in wrapped memory with any options, and views of views of it with any numbers, are errors or have exactly the
// elements that the documentation says, for reading and for writing, and leave the memory around them alone.
func FuzzViews(f *testing.F) {
	dev, err := gpu.Open(background, gpu.WithDriver("cpu"))
	check(f, err)
	f.Add([]byte{3, 4, 2, 5, 0, 0, 0, 3, 1, 2, 8, 6, 5, 2, 2})
	f.Add([]byte{4, 4, 0, 0, 1, 6, 0, 0, 0, 0, 7, 8, 1, 3})
	f.Add([]byte{3, 3, 4, 4, 7, 3, 1, 2, 0, 0, 6})
	f.Add([]byte{2, 6, 0, 0, 0, 5, 3, 4, 0, 0, 5, 255, 255, 0, 0})
	f.Add([]byte{0, 245, 3, 0, 0, 4, 0, 0, 0, 0, 5, 0, 250, 0, 0})
	f.Add([]byte{1, 1, 242, 1, 2, 3, 241, 241, 0, 0})
	f.Add([]byte{250, 250, 0, 0, 0})
	f.Add([]byte{243, 0, 8, 8, 7}) // so many rows that a padded column cannot be counted
	f.Add([]byte{2, 2, 248, 0, 4})
	f.Add([]byte{2, 2, 0, 248, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := numbers(data)
		rows, cols := n.int(), n.int()
		o := matrix.Options{Offset: n.int(), Stride: n.int()}
		flags := n.byte()
		o.ColMajor, o.Aligned, o.Padded = flags&1 != 0, flags&2 != 0, flags&4 != 0
		all := make([]float32, 3*viewMemory)
		for i := range all {
			all[i] = float32(i + 1)
		}
		mem := all[viewMemory : 2*viewMemory : 2*viewMemory]
		v, want := made(rows, cols, o)
		m, err := matrix.Wrap(dev, rows, cols, mem, o)
		if (err == nil) != want {
			t.Fatalf("%dx%d with %+v: %v, want success: %v", rows, cols, o, err, want)
		}
		if err != nil {
			typedError(t, "Wrap", err)
			return
		}
		defer m.Close()
		wanted := slices.Clone(all) // with pads, which are zero
		if o.Padded {
			clearPads(wanted[viewMemory:], v)
		}
		views := []*dense{m}
		for len(n) > 0 && len(views) < 12 {
			next, w, ok := v.step(views[len(views)-1], &n)
			defer next.Close()
			if (next.Err() == nil) != ok {
				t.Fatalf("view %d of %+v: %v, want success: %v", len(views), v, next.Err(), ok)
			}
			if !ok {
				typedError(t, "view", next.Err())
				break
			}
			v = w
			views = append(views, next)
		}
		checkView(t, views[len(views)-1], v, all, wanted)
	})
}

// clearPads sets what lies between rows (columns) to zero.
func clearPads(mem []float32, v viewModel) {
	minor, major, stride := v.cols, v.rows, v.down
	if v.colMajor {
		minor, major, stride = v.rows, v.cols, v.along
	}
	for i := 0; i < major && stride > 0; i++ {
		clear(mem[v.offset+i*stride+minor : v.offset+(i+1)*stride])
	}
}

// checkView reads a view and writes it, and compares its elements and those around it.
func checkView(t *testing.T, m *dense, v viewModel, all, wanted []float32) {
	t.Helper()
	if r, c := m.Dims(); r != v.rows || c != v.cols {
		t.Fatalf("%dx%d, want %+v", r, c, v)
	}
	if v.rows == 0 || v.cols == 0 {
		return
	}
	var want []float32
	for i := range v.rows {
		for j := range v.cols {
			want = append(want, wanted[viewMemory+v.at(i, j)])
		}
	}
	same(t, "read", must[[]float32](t)(m.Read(background)), want)
	for i := range v.rows {
		for j := range v.cols {
			wanted[viewMemory+v.at(i, j)] = -float32(i*v.cols + j + 1)
			want[i*v.cols+j] = -float32(i*v.cols + j + 1)
		}
	}
	check(t, m.SetSlice(want))
	check(t, m.Sync(background))
	same(t, "memory", all, wanted)
}
