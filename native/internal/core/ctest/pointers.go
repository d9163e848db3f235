// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

func init() {
	cases = append(cases, testCase{"Pointers", testPointers}, testCase{"FatalTexts", testFatalTexts})
}

// legalText is a program with what it computes in the first words of y, nil for one that is refused.
type legalText struct {
	name, before, body string
	want               []uint32
	modern             bool // WGSL that an old version of the library may refuse
}

const pointerHead = `struct S { a: f32, b: array<f32, 4>, c: vec4<f32>, d: T }
struct T { n: u32, m: mat2x2<f32> }
alias F = ptr<function, f32>;
var<private> s: S;
var<private> count: u32;
var<workgroup> w: array<T, 2>;
fn next() -> u32 { count += 1u; return count; }
fn assign(p: F, v: f32) { *p = v; }
fn add(p: ptr<private, f32>, v: f32) -> f32 { *p += v; return *p; }
fn swap(p: ptr<function, f32>, q: ptr<function, f32>) { let t = *p; *p = *q; *q = t; }
fn inner(p: ptr<function, S>, i: u32) { assign(&(*p).a, 3.0); assign(&(*p).b[i], 4.0); }
fn column(p: ptr<function, vec2<f32>>) { (*p).y = 9.0; }
fn many(p: ptr<function, array<f32, 4>>) -> f32 { var sum = 0.0; for (var i = 0u; i < 4u; i++) { (*p)[i] += 1.0; sum += (*p)[i]; } return sum; }
`

// pointerPrograms hand on pointers to parts of variables.
var pointerPrograms = []legalText{
	{"a member", "", "var t: S; assign(&t.a, 7.0); y[0] = u32(t.a);", []uint32{7}, false},
	{"an element", "", "var t: S; var i = 2; assign(&t.b[i], 7.0); assign(&t.b[3], 8.0); y[0] = u32(t.b[2]); y[1] = u32(t.b[3]); y[2] = u32(t.b[1]);", []uint32{7, 8, 0}, false},
	{"of a private variable", "", "y[0] = u32(add(&s.a, 2.0)); y[1] = u32(add(&s.b[y[0]], 5.0)); y[2] = u32(s.b[2]);", []uint32{2, 5, 5}, false},
	{"a let", "", "var t: S; var i = 1; let p = &t.b[i]; i = 3; assign(p, 6.0); let q = p; *q += 1.0; assign(q, *q + 1.0); y[0] = u32(t.b[1]); y[1] = u32(t.b[3]);", []uint32{8, 0}, false},
	{"a let of a let", "", "var t: array<S, 3>; let p = &t[next()]; let q = &(*p).b[next()]; assign(q, 5.0); assign(q, *q + 1.0); y[0] = u32(t[1].b[2]); y[1] = count;", []uint32{6, 2}, false},
	{"a column", "", "var m = mat2x2<f32>(); var i = 1u; column(&m[i]); y[0] = u32(m[1].y); y[1] = u32(m[0].y);", []uint32{9, 0}, false},
	{"a column of a member", "", "var t: S; column(&t.d.m[1]); y[0] = u32(t.d.m[1].y);", []uint32{9}, false},
	{"an array", "", "var t: S; y[0] = u32(many(&t.b)); y[1] = u32(many(&t.b)); y[2] = u32(t.b[3]);", []uint32{4, 8, 2}, false},
	{"two pointers", "", "var t: S; t.b[1] = 5.0; var z = 8.0; swap(&t.b[1], &z); swap(&t.a, &t.b[1]); y[0] = u32(z); y[1] = u32(t.a); y[2] = u32(t.b[1]);", []uint32{5, 8, 0}, false},
	{"through functions", "", "var t: S; inner(&t, 2u); var u: array<S, 2>; var i = 1; inner(&u[i], 3u); y[0] = u32(t.a); y[1] = u32(t.b[2]); y[2] = u32(u[1].a); y[3] = u32(u[1].b[3]);", []uint32{3, 4, 3, 4}, false},
	{"in a condition", "", "var n = 0u; while (add(&s.b[1], 1.0) < 5.0) { n++; } if (add(&s.a, 1.0) == 1.0 && add(&s.a, 1.0) == 2.0) { n += 10u; } y[0] = n;", []uint32{14}, false},
	{"in the order of evaluation", "fn three(a: u32, p: F, b: u32) -> u32 { *p = 1.0; return a * 100u + b; }", "var t: array<f32, 8>; y[0] = three(next(), &t[next()], next()); y[1] = u32(t[2]);", []uint32{103, 1}, false},
	{"within each other", "", "var t: S; assign(&t.b[u32(add(&s.a, 1.0))], add(&s.a, 1.0)); y[0] = u32(t.b[1]);", []uint32{2}, false},
	{"in a loop's head", "", "var t: S; for (var i = next(); i < 4u; assign(&t.b[i - 1u], 5.0)) { i++; } y[0] = u32(t.b[1] + t.b[2] + t.b[3]);", []uint32{15}, false},
	{"under a name that hides the variable", "", "var t: S; let p = &t.a; { let t = 4.0; assign(p, t); } y[0] = u32(t.a);", []uint32{4}, false},
	{
		"a parameter that hides the variable", "fn hide(p: ptr<private, f32>, s: f32) { *p = s; } fn hidden(s: ptr<private, f32>, q: ptr<private, f32>) { *s = 1.0; *q = 2.0; }",
		"hide(&s.a, 6.0); y[0] = u32(s.a); hidden(&s.b[0], &s.b[1]); y[1] = u32(s.b[0]); y[2] = u32(s.b[1]);",
		[]uint32{6, 1, 2},
		false,
	},
	{"a local variable that hides a function", "", "var t: S; assign(&t.a, 5.0); let assign = 1u; y[0] = u32(t.a) + assign;", []uint32{6}, false},
	{"out of bounds", "", "var t: S; var i = -1; assign(&t.b[i], 5.0); y[0] = u32(t.a);", []uint32{0}, false},
	{"with comments", "", "var t: S; assign( // one\n /* two */ & /* three */ t . a , // four\n 5.0 /* five */ ); y[0] = u32(t.a);", []uint32{5}, false},
	{"with brackets", "", "var t: S; assign(&(t.a), 1.0); assign((&((t).b[1])), 2.0); assign(&*&t.b[2], 3.0); y[0] = u32(t.a); y[1] = u32(t.b[1]); y[2] = u32(t.b[2]);", []uint32{1, 2, 3}, false},
	{"a whole variable", "", "var z: f32; assign(&z, 3.0); let p = &z; assign(p, *p + 1.0); assign(&(z), z + 1.0); y[0] = u32(z);", []uint32{5}, false},
	{"of a copy", "", "s.b[1] = 4.0; var t = s; assign(&t.a, 3.0); var u = t.b; assign(&u[2], 2.0); y[0] = u32(t.a + t.b[1] + u[1] + u[2]);", []uint32{13}, false},
	{"of a result", "fn make() -> S { var t: S; t.a = 2.0; return t; }", "var t = make(); assign(&t.b[0], 3.0); y[0] = u32(t.a + t.b[0]);", []uint32{5}, false},
	{"in a switch", "", "var t: S; switch y[0] { case 1u: { assign(&t.a, 3.0); } default: { assign(&t.a, 4.0); } } y[0] = u32(t.a);", []uint32{3}, false},
	{"after a return", "fn early(p: F) -> u32 { if (*p > 0.0) { return 1u; } *p = 1.0; return 0u; }", "var t: S; y[0] = early(&t.a) + 10u; y[1] = early(&t.a);", []uint32{10, 1}, false},
	{
		"of a buffer", "fn put(p: ptr<storage, array<u32>, read_write>, i: u32, v: u32) { (*p)[i] = v + arrayLength(p) - 64u; } fn both(p: ptr<storage, array<u32>, read_write>) { put(p, 1u, 6u); }",
		"put(&y, 0u, 5u); both(&y);",
		[]uint32{5, 6},
		false,
	},
	{"an element of a buffer", "fn put(p: ptr<storage, u32, read_write>) { *p += 5u; }", "put(&y[0]); var i = 1; put(&y[i]); let q = &y[2]; put(q);", []uint32{6, 5, 5}, false},
	{
		"of a workgroup", "fn put(p: ptr<workgroup, u32>) { *p += 5u; } fn all_of(p: ptr<workgroup, array<T, 2>>) -> u32 { return (*p)[0].n + (*p)[1].n; }",
		"w[0].n = 0u; w[1].n = 0u; put(&w[1].n); put(&w[y[0]].n); y[0] = all_of(&w);",
		[]uint32{10},
		false,
	},
	{
		"members of pointers", "fn modern(p: ptr<function, S>, i: u32) { assign(&p.a, 3.0); assign(&p.b[i], p.a); p.c.x = 2.0; }",
		"var t: S; modern(&t, 1u); var u: array<S, 2>; let p = &u; modern(&p[1], 2u); y[0] = u32(t.b[1]); y[1] = u32(u[1].b[2]); y[2] = u32(u[1].c.x);",
		[]uint32{3, 3, 2},
		true,
	},
	{
		"of an alias", "alias A = array<u32, 3>; struct H { a: A, b: array<A, 2> } alias G = H; fn put(p: ptr<function, u32>) { *p += 2u; } " +
			"fn on(p: ptr<function, A>, i: i32) { let n = 3; put(&(*p)[2]); put(&(*p)[n - i]); } fn deep(p: ptr<function, G>) { on(&(*p).a, 1); on(&(*p).b[1], 2); }",
		"var t: A; on(&t, 1); y[0] = t[2]; var u: G; deep(&u); y[1] = u.a[2]; y[2] = u.b[1][1]; var v = A(1u, 2u, 3u); put(&v[1]); y[3] = v[1];",
		[]uint32{4, 4, 2, 4},
		false,
	},
	{
		"of an alias and of what it stands for", "alias A = array<u32, 3>; fn put(p: ptr<function, u32>) { *p += 2u; } fn all_of(p: ptr<function, array<u32, 3>>) { put(&(*p)[0]); } fn on(p: ptr<function, A>) { put(&(*p)[1]); }",
		"var t: A; var u: array<u32, 3>; on(&t); all_of(&u); put(&t[1]); put(&u[0]); y[0] = t[1]; y[1] = u[0]; var v: array<A, 2>; var w: array<array<u32, 3>, 2>; all_of(&v[1]); on(&w[1]); y[2] = v[1][0]; y[3] = w[1][1];",
		[]uint32{4, 4, 2, 2},
		false,
	},
	{
		"members of aliases", "alias A = array<u32, 3>; fn put(p: ptr<function, u32>) { *p += 2u; } fn on(p: ptr<function, A>) { put(&p[2]); const N = 3; put(&p[N - 1]); }",
		"var t: A; on(&t); y[0] = t[2];",
		[]uint32{4},
		true,
	},
	{"an inferred constant index", "", "var t: S; const i = 1; assign(&t.b[i + 1], 3.0); y[0] = u32(t.b[2]);", []uint32{3}, true},

	{"a component", "", "var v = vec4<f32>(); assign(&v.x, 1.0);", nil, false},
	{"a component by its index", "", "var v = vec4<f32>(); assign(&v[1], 1.0);", nil, false},
	{"a component of a member", "", "var t: S; assign(&t.c.y, 1.0);", nil, false},
	{"a component of a column", "", "var t: S; let p = &t.d.m[1].x; assign(p, 1.0);", nil, false},
	{"another type", "", "var t: S; assign(&t.d.n, 1.0);", nil, false},
	{"another address space", "", "assign(&s.a, 1.0);", nil, false},
	{"a value", "", "assign(1.0, 1.0);", nil, false},
	{"too few arguments", "", "assign();", nil, false},
	{"an index that is no whole number", "", "var t: S; assign(&t.b[1.5], 1.0);", nil, false},
	{"recursion", "fn again(p: ptr<function, S>, u: ptr<function, array<S, 2>>) { again(&(*u)[1], u); }", "var t: array<S, 2>; again(&t[0], &t);", nil, false},
}

// testPointers computes with pointers to parts of variables, in a process of its own.
func testPointers(t *testing.T, bench *Bench) {
	bench.compute(t, "SUBLET_POINTERS", func() (list []legalText) {
		for _, p := range pointerPrograms {
			p.before = pointerHead + p.before
			list = append(list, p)
		}
		return list
	})
}

// fatalPrograms have ended processes.
func fatalPrograms() []legalText {
	const textures = "@group(0) @binding(1) var t: texture_2d<f32>; @group(0) @binding(2) var s: sampler; " +
		"fn f(t: texture_2d<f32>, s: sampler) -> vec4<f32> { return textureSampleLevel(t, s, vec2<f32>(), 0.0); } "
	list := []legalText{
		{"pointer to a component", "fn f(p: ptr<function, f32>) { *p = 1.0; }", "var v: vec4<f32>; f(&v.x);", nil, false},
		{"pointer to a member", "struct S { a: f32 } fn f(p: ptr<function, f32>) { *p = 5.0; }", "var t: S; f(&t.a); y[0] = u32(t.a);", []uint32{5}, false},
		{"pointer to a private member", "struct S { a: f32 } var<private> t: S; fn f(p: ptr<private, f32>) { *p = 5.0; }", "let p = &t.a; f(p); y[0] = u32(t.a);", []uint32{5}, false},
		{"large type in storage", "@group(0) @binding(1) var<storage, read_write> a: array<vec4<u32>, 2147483648u>;", "a[0].x = 1u;", nil, false},
		{"large type in uniform", "@group(0) @binding(1) var<uniform> a: array<vec4<u32>, 2147483648u>;", "y[0] = a[0].x;", nil, false},
		{"texture functions that are not called", textures, "y[0] = 3u;", []uint32{3}, false},
		{"no texture given", textures, "_ = f();", nil, false},
		{"no sampler given", textures, "_ = f(t);", nil, false},
		{"a texture in place of a sampler", textures, "_ = f(s, t);", nil, false},
		{"textures that the layout lacks", textures, "_ = f(t, s);", nil, false},
		{"an array without a length as a value", "", "let a = array<u32>(); y[0] = a[0];", nil, false},
		{"a value that is an array without a length", "alias R = array<u32>;", "var a = R(); y[0] = a[0];", nil, false},
	}
	for _, space := range []string{"var<private>", "var<workgroup>", "@group(0) @binding(1) var<storage, read_write>"} {
		list = append(list, legalText{"4 GiB in " + space, space + " a: array<u32, 1073741824>;", "a[y[0]] = 1u;", nil, false})
	}
	list = append(list, legalText{"4 GiB in a function", "", "var a: array<u32, 1073741824>; a[y[0]] = 1u;", nil, false})
	for _, statement := range []string{"let a# = 1u;", "y[0]+=1u;", "if (y[0] == 5u) { return; }", "for (var i = 0u; i < 2u; i++) { y[0] = i; }", "workgroupBarrier();", "_ = f(y[0]);"} {
		var b strings.Builder
		for i := range 60000 {
			b.WriteString(strings.ReplaceAll(statement, "#", strconv.Itoa(i)) + "\n")
		}
		l := legalText{"60,000 times " + statement, "fn f(x: u32) -> u32 { return x; }", b.String(), nil, false}
		if strings.HasPrefix(statement, "let") {
			l.want = []uint32{1}
		}
		list = append(list, l)
	}
	return list
}

// testFatalTexts compiles what has ended processes: what is legal computes its result, and the rest is refused.
func testFatalTexts(t *testing.T, bench *Bench) { bench.compute(t, "SUBLET_FATAL", fatalPrograms) }

// compute runs programs in a process of its own, which is to survive them.
func (bench *Bench) compute(t *testing.T, mark string, programs func() []legalText) {
	if os.Getenv(mark) == "" {
		child := exec.Command(os.Args[0], again(t))
		child.Env = append(os.Environ(), mark+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out[max(0, len(out)-3000):])
		}
		return
	}
	d := bench.open(t)
	k := driver.Kernel{Label: "program", Entry: "main", Layout: driver.NewLayout(driver.AccessReadWrite)}
	for _, p := range programs() {
		fmt.Println("program", p.name) // the last one before an abort
		k.Source = inMain(p.before, p.body)
		err := d.NewKernel(t.Context(), 1, &k)
		if p.want == nil || err != nil {
			refuses := p.want == nil || p.modern && bench.Old
			if !refuses || !errors.Is(err, fault.ErrCompile) && !errors.Is(err, fault.ErrLimit) {
				t.Errorf("%s: got error %v, want results: %v", p.name, err, p.want)
			}
			d.FreeKernel(1)
			continue
		}
		got, err := turn1(t, d, k.Layout)
		if err != nil || !slices.Equal(got[:len(p.want)], p.want) {
			t.Errorf("%s: got %d, %v, want %d", p.name, got, err, p.want)
		}
		d.FreeKernel(1)
	}
	healthy(t, d, 100)
}
