// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// wild writes random modules, most of which compile, with sizes that are now and then too large.
type wild struct {
	*rand.Rand
	wrong     int // one value in so many has another type than it should
	names     int
	structs   map[string][]string // types of members
	functions []wildFunction
	variables []wildVariable // in scope
	loops     int            // around the statement
}

type wildVariable struct {
	name, typ string
	constant  bool
}

type wildFunction struct {
	name, result string
	params       []string
}

func pick[T any](w *wild, list ...T) T { return list[w.IntN(len(list))] }

// wildModule returns the module of a seed. Some have tokens in wrong places, some values of wrong types.
func wildModule(seed uint64) string {
	w := &wild{Rand: rand.New(rand.NewPCG(seed, 21)), wrong: 1 << 30, structs: map[string][]string{}}
	if seed%4 == 0 {
		w.wrong = 40
	}
	w.variables = []wildVariable{{"y", "array<u32>", false}, {"z", "array<vec4<f32>>", false}, {"k", "u32", true}}
	var b strings.Builder
	b.WriteString(hostileHead + "@group(0) @binding(1) var<storage, read_write> z: array<vec4<f32>>;\nconst k = 5u;\n")
	for range w.IntN(8) {
		b.WriteString(w.declaration() + "\n")
	}
	w.variables = append(w.variables, wildVariable{"p", "vec3<u32>", true})
	fmt.Fprintf(&b, "@compute @workgroup_size(%s)\nfn main(@builtin(global_invocation_id) p: vec3<u32>) {\n%s}\n", pick(w, "1", "64", "4, 4", "k", "8, 8, 4"), w.block(4))
	text := b.String()
	if seed%5 > 0 {
		return text
	}
	words := strings.SplitAfter(text, " ")
	for range 1 + w.IntN(3) {
		i, j := w.IntN(len(words)), w.IntN(len(words))
		words[i] = pick(w, words[j], "", words[i]+words[i], words[i]+words[j])
	}
	return strings.Join(words, "")
}

func (w *wild) fresh(prefix string) string {
	w.names++
	return fmt.Sprintf("%s%d", prefix, w.names)
}

// length of an array: mostly a short one.
func (w *wild) length() string {
	if w.IntN(60) == 0 {
		return pick(w, "0", "-1", "1000", "30000", "65536", "1000000", "16777216u", "2147483647", "4294967295u", "k << 20u", "(k * 100000u)")
	}
	return pick(w, "1", "2", "3u", "4", "8u", "16", "k", "(2u * k)", "(k + 1u)", "(k % 3u)", "(1u << 3u)", "((7 - 2) / 2)")
}

func (w *wild) scalar() string { return pick(w, "f32", "u32", "i32", "u32", "f32", "bool") }

func (w *wild) typ(depth int, shared bool) string {
	scalar := w.scalar()
	if shared && scalar == "bool" {
		scalar = "f32"
	}
	n := w.IntN(10)
	switch {
	case depth <= 0 || n < 3:
		return scalar
	case n < 6:
		return "vec" + pick(w, "2", "3", "4") + "<" + scalar + ">"
	case n < 7:
		return "mat" + pick(w, "2", "3", "4") + "x" + pick(w, "2", "3", "4") + "<f32>"
	case n < 9 || len(w.structs) == 0:
		return "array<" + w.typ(depth-1, shared) + ", " + w.length() + ">"
	}
	names := make([]string, 0, len(w.structs))
	for name := range w.structs {
		names = append(names, name)
	}
	slices.Sort(names)
	return pick(w, names...)
}

func (w *wild) declaration() string {
	switch w.IntN(6) {
	case 0, 1:
		name := w.fresh("S")
		var text strings.Builder
		var members []string
		for i := range 1 + w.IntN(4) {
			members = append(members, w.typ(2, true))
			attribute := ""
			if w.IntN(20) == 0 {
				attribute = pick(w, "@size(256) ", "@align(16) ", "@align(64) ", "@size(512) ", "@size(2147483644) ", "@align(1073741824) ", "@size(4096) ", "@align(4) ")
			}
			fmt.Fprintf(&text, "%sm%d: %s, ", attribute, i, members[i])
		}
		w.structs[name] = members
		return "struct " + name + " { " + text.String() + "}"
	case 2:
		name, typ := w.fresh("c"), pick(w, "u32", "f32", "i32", "vec4<f32>")
		text := "const " + name + ": " + typ + " = " + w.constant(typ) + ";"
		w.variables = append(w.variables, wildVariable{name, typ, true})
		return text
	case 3, 4:
		name, typ := w.fresh("g"), w.typ(3, false)
		w.variables = append(w.variables, wildVariable{name, typ, false})
		return "var<" + pick(w, "private", "workgroup") + "> " + name + ": " + typ + ";"
	}
	f := wildFunction{name: w.fresh("f"), result: w.typ(2, false)}
	outer := len(w.variables)
	var params strings.Builder
	for range w.IntN(3) {
		name, typ := w.fresh("a"), w.typ(2, false)
		f.params = append(f.params, typ)
		if w.IntN(4) == 0 {
			f.params[len(f.params)-1] = "ptr<" + pick(w, "function", "function", "private") + ", " + typ + ">"
			params.WriteString(name + ": " + f.params[len(f.params)-1] + ", ")
			name = "(*" + name + ")"
		} else {
			params.WriteString(name + ": " + typ + ", ")
		}
		w.variables = append(w.variables, wildVariable{name, typ, strings.HasPrefix(name, "a")})
	}
	text := "fn " + f.name + "(" + params.String() + ") -> " + f.result + " {\n" + w.block(3) + "return " + w.value(f.result, 3) + ";\n}"
	w.variables = w.variables[:outer]
	w.functions = append(w.functions, f)
	return text
}

// inner returns what stands in a value of a type, and its type; "" for nothing.
func (w *wild) inner(typ string) (suffix, of string) {
	index := pick(w, "0", "1", "1", "0", "y[0]", "1u", "0", "y[2]", "i32(y[1])", "1", "k", "1", "0", "1")
	name, args, _ := strings.Cut(strings.TrimSuffix(typ, ">"), "<")
	switch {
	case strings.HasPrefix(name, "vec"):
		return pick(w, ".x", ".y", "[0]", "["+index+"]"), args
	case strings.HasPrefix(name, "mat"):
		return "[" + pick(w, "0", "1", index) + "]", "vec" + name[5:] + "<f32>"
	case name == "array":
		if comma := strings.LastIndex(args, ", "); comma >= 0 {
			args = args[:comma]
		}
		return "[" + index + "]", args
	case w.structs[name] != nil:
		i := w.IntN(len(w.structs[name]))
		return fmt.Sprintf(".m%d", i), w.structs[name][i]
	}
	return "", ""
}

// place names a variable of a type, or what stands in one, or "".
func (w *wild) place(typ string, written bool) string {
	for range 12 {
		v := pick(w, w.variables...)
		path, of := []string{v.name}, v.typ
		for of != "" && (of != typ || of == "array<u32>") {
			var suffix string
			suffix, of = w.inner(of)
			path = append(path, suffix)
		}
		if of == typ && (!written || !v.constant) {
			return strings.Join(path, "")
		}
	}
	return ""
}

// constant is a value that a compiler knows.
func (w *wild) constant(typ string) string {
	switch typ {
	case "u32":
		return pick(w, "0u", "1u", "2u", "3u", "31u", "k", "65535u", "4294967295u", "(k * 3u)", "(1u << 4u)")
	case "i32":
		return pick(w, "0i", "1i", "-1i", "7i", "2147483647i", "(-5i / 2i)", "(9i % 4i)")
	case "f32":
		return pick(w, "0.0f", "1.0f", "-1.5f", "3.0e38f", "0.1f", "(1.0f / 3.0f)")
	case "bool":
		return pick(w, "true", "false", "(1 < 2)", "!true")
	}
	return typ + "()"
}

func (w *wild) value(typ string, depth int) string {
	if w.IntN(w.wrong) == 0 {
		typ = w.typ(2, false)
	}
	if p := w.place(typ, false); p != "" && w.IntN(3) == 0 {
		return p
	}
	if depth <= 0 {
		return w.constant(typ)
	}
	v := func(t string) string { return w.value(t, depth-1) }
	for _, f := range w.functions {
		if f.result == typ && w.IntN(3) == 0 {
			return w.call(f, depth)
		}
	}
	_, of, _ := strings.Cut(strings.TrimSuffix(typ, ">"), "<")
	number := slices.Contains([]string{"f32", "u32", "i32"}, cmp.Or(of, typ))
	switch n := w.IntN(9); {
	case n < 3 && number && typ[0] != 'a':
		op := pick(w, "+", "-", "*", "/", "%")
		if typ[0] == 'm' {
			op = "+"
		}
		return "(" + v(typ) + " " + op + " " + v(typ) + ")"
	case n < 4 && typ == "bool":
		t := pick(w, "f32", "u32", "i32")
		return "(" + v(t) + " " + pick(w, "<", "<=", ">", "==", "!=") + " " + v(t) + ")"
	case n < 5 && typ == "f32":
		return pick(w, "sin("+v(typ)+")", "min("+v(typ)+", "+v(typ)+")", "dot("+v("vec3<f32>")+", "+v("vec3<f32>")+")", "length("+v("vec2<f32>")+")", "f32("+v("u32")+")", "fma("+v(typ)+", "+v(typ)+", "+v(typ)+")", "bitcast<f32>("+v("u32")+")", "pow("+v(typ)+", "+v(typ)+")", "determinant("+v("mat2x2<f32>")+")", "select("+v(typ)+", "+v(typ)+", "+v("bool")+")")
	case n < 5 && typ == "u32":
		return pick(w, "u32("+v("f32")+")", "arrayLength(&y)", "countOneBits("+v(typ)+")", "extractBits("+v(typ)+", "+v(typ)+", "+v(typ)+")", "pack2x16float("+v("vec2<f32>")+")", "("+v(typ)+" << "+v(typ)+")", "("+v(typ)+" ^ "+v(typ)+")", "bitcast<u32>("+v("i32")+")")
	case n < 5 && typ == "i32":
		return pick(w, "i32("+v("f32")+")", "i32("+v("u32")+")", "abs("+v(typ)+")", "clamp("+v(typ)+", "+v(typ)+", "+v(typ)+")", "firstLeadingBit("+v(typ)+")")
	case n < 7 && strings.HasPrefix(typ, "vec"):
		return typ + "(" + strings.Join([]string{v(of), v(of), v(of), v(of)}[:typ[3]-'0'], ", ") + ")"
	case n < 7 && w.structs[typ] != nil:
		var members []string
		for _, m := range w.structs[typ] {
			members = append(members, v(m))
		}
		return typ + "(" + strings.Join(members, ", ") + ")"
	}
	return w.constant(typ)
}

func (w *wild) call(f wildFunction, depth int) string {
	var args []string
	for _, t := range f.params {
		if of, ok := strings.CutPrefix(t, "ptr<"); ok {
			_, of, _ = strings.Cut(strings.TrimSuffix(of, ">"), ", ")
			args = append(args, "&"+cmp.Or(w.place(of, true), "y"))
		} else {
			args = append(args, w.value(t, depth-1))
		}
	}
	return f.name + "(" + strings.Join(args, ", ") + ")"
}

func (w *wild) block(depth int) string {
	outer := len(w.variables)
	var b strings.Builder
	for range 1 + w.IntN(4) {
		b.WriteString(w.statement(depth) + "\n")
	}
	w.variables = w.variables[:outer]
	return b.String()
}

func (w *wild) statement(depth int) string {
	inner := func(loops int) string {
		if depth <= 1 {
			return ""
		}
		w.loops += loops
		defer func() { w.loops -= loops }()
		return "\n" + w.block(depth-1)
	}
	n := w.IntN(16)
	switch typ, i := w.typ(2, false), w.fresh("j"); {
	case n < 4:
		if p := w.place(typ, true); p != "" {
			return p + " = " + w.value(typ, 3) + ";"
		}
	case n < 7:
		name := w.fresh("l")
		text := "var " + name + ": " + typ + pick(w, "", " = "+w.value(typ, 3)) + ";"
		if n == 6 {
			text = "let " + name + ": " + typ + " = " + w.value(typ, 3) + ";"
		}
		w.variables = append(w.variables, wildVariable{name, typ, n == 6})
		return text
	case n < 8:
		return "for (var " + i + " = 0u; " + i + " < " + pick(w, "4u", "y[0]", w.value("u32", 1)) + "; " + i + "++) {" + inner(1) + "}"
	case n < 9:
		return "if " + w.value("bool", 2) + " {" + inner(0) + "} else {" + inner(0) + "}"
	case n < 10:
		return "switch " + w.value("u32", 2) + " { case 1u: {" + inner(0) + "} case 2u, 3u: {" + inner(0) + "} default: {" + inner(0) + "} }"
	case n < 11:
		return "loop {" + inner(1) + "if " + w.value("bool", 2) + " { break; } continuing {" + pick(w, "", "break if "+w.value("bool", 2)+";") + "} }"
	case n < 12:
		return "while " + w.value("bool", 2) + " {" + inner(1) + "}"
	case n < 13 && w.loops > 0:
		return "if " + w.value("bool", 1) + " { " + pick(w, "break;", "continue;") + " }"
	case n < 14 && len(w.functions) > 0:
		return "_ = " + w.call(pick(w, w.functions...), 3) + ";"
	case n < 15:
		if v := pick(w, w.variables...); !v.constant || w.IntN(w.wrong) == 0 {
			return "let " + i + " = &" + v.name + ";"
		}
	}
	return "y[k] = " + w.value("u32", 3) + ";"
}
