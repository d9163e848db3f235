// SPDX-License-Identifier: Apache-2.0

package front

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// head stands in line 1 of the texts of tests, and in that of statements its last part.
const (
	head  = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
	begin = "@compute @workgroup_size(1) fn main() {\n"
)

// module is a text with declarations in its second line, and body one with statements in its third line.
func module(declarations string) string { return head + declarations + "\n" + begin + "}\n" }

func body(statements string) string { return head + begin + statements + "\n}\n" }

var wrongModules = []struct{ text, want string }{
	{"const a = b; const b = a;", "line 2:7: a depends on itself"},
	{"struct S { s: S }", "line 2:8: S depends on itself"},
	{"alias A = array<A, 2>;", "line 2:7: A depends on itself"},
	{"const a = 1; const a = 2;", "line 2:20: a is declared twice"},
	{"fn f() {} var<private> f: u32;", "line 2:24: f is declared twice"},
	{"const switch = 1;", "line 2:7: switch is a reserved word"},
	{"fn self() {}", "line 2:4: self is a reserved word"},
	{"const __a = 1;", "line 2:7: __a is no name: it must not begin with two underscores, or be one"},
	{"const _ = 1;", "line 2:7: _ is no name: it must not begin with two underscores, or be one"},
	{"const a😀 = 1;", "line 2:7: a😀 is no name"},
	{"enable f16;", "line 2:1: enable must stand before all declarations"},
	{"let a = 1;", "line 2:1: let must be in a function: use const"},
	{"This is not WGSL.", "line 2:1: expected a declaration, found This"},
	{"const a = 1", "line 3:1: expected ;, found @"},
	{"struct S { a: u32, a: f32 }", "line 2:20: two members a"},
	{"struct S { }", "line 2:12: a struct without members"},
	{"struct S { a: array<u32>, b: u32 }", "line 2:27: only the last member can be an array without a length"},
	{"struct S { a: u32, b: array<u32> } struct T { s: S }", "line 2:50: a member cannot be a struct with an array without a length"},
	{"struct S { @size(2) a: u32 }", "line 2:21: size and align cannot be less than those of the type"},
	{"struct S { @align(3) a: u32 }", "line 2:19: the argument of align cannot be 3"},
	{"struct S { a: array<vec4<u32>, 2147483648u> }", "line 2:21: a type of more than 2 GiB"},
	{"var<private> a: array<f32, 0>;", "line 2:28: the length of an array must be a positive number, not 0"},
	{"var<private> a: array<f32, 1.5>;", "line 2:28: the length of an array must be a constant integer"},
	{"var<private> a: array<f32>;", "line 2:17: array<f32> cannot be in the address space private"},
	{"var<private> a: atomic<u32>;", "line 2:17: atomic<u32> cannot be in the address space private"},
	{"var<workgroup> a: atomic<f32>;", "line 2:26: an atomic is of i32 or u32, not of f32"},
	{"@group(0) @binding(1) var<storage> a: atomic<u32>;", "line 2:39: an atomic must be in storage that is read_write"},
	{"@group(0) @binding(1) var<uniform> a: vec2<bool>;", "line 2:39: vec2<bool> cannot be in the address space uniform"},
	{"@group(0) @binding(1) var<storage, write> a: u32;", "line 2:36: no access mode write: there are read and read_write"},
	{"@group(0) var<storage> a: u32;", "line 2:24: a needs @group and @binding exactly if it is in uniform or storage"},
	{"@group(0) @binding(1) var<private> a: u32;", "line 2:36: a needs @group and @binding exactly if it is in uniform or storage"},
	{"@group(0) @binding(1) var t: texture_2d<f32>;", "line 2:30: texture_2d is not available"},
	{"var a: u32;", "line 2:1: a needs an address space"},
	{"var<private> a: vec5<f32>;", "line 2:17: no type vec5"},
	{"var<private> a: vec3;", "line 2:17: vec3 needs a type between < and >"},
	{"var<private> a: vec3<vec2<f32>>;", "line 2:22: vec3 cannot be of vec2<f32>"},
	{"var<private> a: mat2x2<i32>;", "line 2:24: mat2x2 cannot be of i32"},
	{"var<private> a: f16;", "line 2:17: f16 is not available"},
	{"var<private> a: vec3h;", "line 2:17: f16 is not available"},
	{"const a = 1; var<private> b: a;", "line 2:30: a is no type"},
	{"var<private> a: u32; const b = a;", "line 2:32: a is no constant"},
	{"fn f() -> u32 { return 1; } const b = f();", "line 2:39: f is no constant"},
	{"override a: u32;", "line 2:10: the override a has no value"},
	{"const_assert 1 > 2;", "line 2:1: const_assert fails"},
	{"const a: u32 = -1;", "line 2:16: the value -1 is out of the range of u32"},
	{"const a: i32 = 1.5;", "line 2:16: a value of type abstract-float where i32 is needed"},
	{"const a = 2147483648i;", "line 2:11: 2147483648i is out of range"},
	{"const a = 012;", "line 2:11: 012 is no number"},
	{"const a = 1e400;", "line 2:11: 1e400 is out of range"},
	{"const a = 1e39f;", "line 2:11: 1e39f is out of range"},
	{"const a: f32 = 1e39;", "line 2:16: the value 1e+39 is out of the range of f32"},
	{"const a = 1.5h;", "line 2:11: f16 is not available"},
	{"const a = 1 / 0;", "line 2:15: a division by zero"},
	{"const a = 9223372036854775807 + 1;", "line 2:31: the value of this constant is out of the range of its type"},
	{"const a = 1u << 32u;", "line 2:17: a shift by 32 bits"},
	{"const a = sqrt(-1.0);", "line 2:11: the value of this constant is out of the range of its type"},
	{"const a = array(1, 2)[2];", "line 2:23: the index 2 is out of the range of array<abstract-int, 2>"},
	{"const a = array(1, 2u, 1.5);", "line 2:11: the arguments of array have different types"},
	{"const a = array<u32, 100000>();", "line 2:11: a value of more than 262144 bytes"},
	{"fn f() -> u32 {}", "line 2:16: f ends without a return"},
	{"fn f() -> u32 { loop { break; } }", "line 2:33: f ends without a return"},
	{"fn f() { loop {} }", "line 2:10: this loop never ends"},
	{"fn f(x: u32) -> u32 { return f(x - 1u); }", "line 2:4: recursion: f calls f"},
	{"fn f() { g(); } fn g() { f(); }", "line 2:20: recursion: g calls f"},
	{"fn f() { main(); }", "line 2:10: main is an entry point, which nothing can call"},
	{"fn f(a: u32, a: u32) {}", "line 2:15: a is declared twice"},
	{"fn f(a: u32) { let a = 1; }", "line 2:20: a is declared twice"},
	{"fn f(a: array<u32>) {}", "line 2:9: a parameter cannot be array<u32>"},
	{"fn f() -> array<u32> {}", "line 2:11: a function cannot return array<u32>"},
	{"fn f(@builtin(workgroup_id) a: vec3<u32>) {}", "line 2:30: only entry points have built-in values"},
	{"@compute fn f() {}", "line 2:13: an entry point needs @compute and @workgroup_size"},
	{"@compute @workgroup_size(0) fn f() {}", "line 2:26: the argument of workgroup_size cannot be 0"},
	{"@compute @workgroup_size(1) fn f(a: u32) {}", "line 2:35: a parameter of an entry point needs @builtin"},
	{"@compute @workgroup_size(1) fn f(@builtin(workgroup_id) a: u32) {}", "line 2:58: this built-in value is of type vec3<u32>, not u32"},
	{"@compute @workgroup_size(1) fn f(@builtin(position) a: u32) {}", "line 2:43: no built-in value position of compute shaders"},
	{"@nonsense fn f() {}", "line 2:2: the attribute nonsense has no place here"},
	{"@must_use @must_use fn f() -> u32 { return 1; }", "line 2:12: the attribute must_use stands here twice"},
	{"fn f(a: u32) { f", "line 2:1: a \"{\" without its partner"},
}

var wrongBodies = []struct{ text, want string }{
	{"let = ;", "line 3:5: expected a name, found ="},
	{"let a = ;", "line 3:9: expected an expression, found ;"},
	{"y[0] = nonsense;", "line 3:8: no nonsense is declared"},
	{"y[0] = nonsense(1u);", "line 3:8: no function nonsense"},
	{"y[0] = 1.5;", "line 3:8: a value of type abstract-float where u32 is needed"},
	{"let a = 1.5; y[0] = a;", "line 3:21: a value of type f32 where u32 is needed"},
	{"let a = array<u32>();", "line 3:9: array<u32> cannot be a value"},
	{"let a = y;", "line 3:9: array<u32> cannot be a value"},
	{"_ = y;", "line 3:5: array<u32> cannot be a value"},
	{"let a = f32;", "line 3:12: expected (, found ;"},
	{"let a = main;", "line 3:13: expected (, found ;"},
	{"let a: bool = 1;", "line 3:15: a value of type abstract-int where bool is needed"},
	{"var a;", "line 3:6: expected a type or a value, found ;"},
	{"var a: atomic<u32>;", "line 3:8: atomic<u32> cannot be in the address space function"},
	{"var<private> a = 1;", "line 3:5: a variable of a function is in the address space function"},
	{"let a = 1; let a = 2;", "line 3:16: a is declared twice"},
	{"let a = 1; a = 2;", "line 3:12: an assignment to what is no variable"},
	{"1 = 2;", "line 3:1: an assignment to what is no variable"},
	{"y = y;", "line 3:1: an assignment to array<u32>"},
	{"y[0]", "line 4:1: expected an assignment or a call, found }"},
	{"y[0] + 1;", "line 3:6: expected an assignment or a call, found +"},
	{"min(1, 2);", "line 3:1: the result of min must be used"},
	{"u32(1);", "line 3:7: expected an assignment or a call, found ;"},
	{"let a = min(1);", "line 3:9: min has 2 parameters, not 1"},
	{"let a = min(1, true);", "line 3:16: min of abstract-int and bool"},
	{"let a = min(1u, 1i);", "line 3:17: min of u32 and i32"},
	{"let a = sin(1u);", "line 3:9: sin of u32"},
	{"let a = dot(1, 2);", "line 3:9: dot of abstract-int"},
	{"let a = clamp(y[0], 2, 1);", "line 3:9: the lower limit of clamp is greater than the upper one"},
	{"let a = extractBits(y[0], 30, 3);", "line 3:9: the bits from 30 on are not 3"},
	{"let a = bitcast<vec2<u32>>(1.5);", "line 3:9: a bitcast of f32 to vec2<u32>"},
	{"let a = bitcast<bool>(1);", "line 3:17: a bitcast of bool"},
	{"let a = vec3(1, 2);", "line 3:9: vec3<abstract-int> has 3 components, not 2"},
	{"let a = vec2<f32>(1u, 2u);", "line 3:19: a value of type u32 where f32 is needed"},
	{"let a = vec2(true, 1);", "line 3:9: the arguments of vec2 have different types"},
	{"let a = mat2x2<f32>(1, 2, 3);", "line 3:9: mat2x2<f32> has 4 components, not 3"},
	{"let a = array<u32, 2>(1);", "line 3:9: array<u32, 2> has 2 elements, not 1"},
	{"let a = u32(1, 2);", "line 3:9: u32 is made of one scalar"},
	{"let a = array();", "line 3:9: array needs a type between < and >, or arguments that tell it"},
	{"let a = y[0] + 1i;", "line 3:14: an operator between u32 and i32"},
	{"let a = true + false;", "line 3:14: an operator between bool and bool"},
	{"let a = vec2(1) < 1;", "line 3:17: an operator between vec2<abstract-int> and abstract-int"},
	{"let a = mat2x2(1, 2, 3, 4) * vec3(1.0);", "line 3:28: an operator between mat2x2<abstract-float> and vec3<abstract-float>"},
	{"let a = y[0] / 0;", "line 3:16: a division by zero"},
	{"let a = y[0] << 32;", "line 3:17: a shift by 32 bits"},
	{"let a = 1.5 << 1;", "line 3:13: a shift of abstract-float by abstract-int"},
	{"let a = 1 < 2 < 3;", "line 3:15: an operand of < needs parentheses"},
	{"let a = 1 & 2 | 3;", "line 3:15: an operand of | needs parentheses"},
	{"let a = true && true || true;", "line 3:22: an operand of || needs parentheses"},
	{"let a = 1 + 2 << 3u;", "line 3:15: an operand of << needs parentheses"},
	{"let a = -1u;", "line 3:9: - before a value of type u32"},
	{"let a = !1;", "line 3:9: ! before a value of type abstract-int"},
	{"let a = *y[0];", "line 3:9: * before what is no pointer"},
	{"let a = &1;", "line 3:9: & before what is no variable or a component of a vector"},
	{"var v: vec2<f32>; let a = &v.x;", "line 3:27: & before what is no variable or a component of a vector"},
	{"let a = &y[0]; let b = a + 1;", "line 3:24: a pointer where a value is needed: write * before it"},
	{"let a = y[true];", "line 3:11: an index of type bool"},
	{"let a = y[-1];", "line 3:11: the index -1 is out of the range of array<u32>"},
	{"let a = vec2(1)[2];", "line 3:17: the index 2 is out of the range of vec2<abstract-int>"},
	{"let a = y[0][0];", "line 3:13: an index behind u32"},
	{"let a = y.length;", "line 3:11: no member length of array<u32>"},
	{"let a = vec2(1).z;", "line 3:17: no component z of vec2<abstract-int>"},
	{"let a = vec2(1).xg;", "line 3:17: no component xg of vec2<abstract-int>"},
	{"break;", "line 3:1: break stands outside of a loop and of a switch, or in a continuing"},
	{"continue;", "line 3:1: continue stands outside of a loop, or in a continuing"},
	{"switch 1 { default { continue; } }", "line 3:22: continue stands outside of a loop, or in a continuing"},
	{"loop { continuing { break; } }", "line 3:21: break stands outside of a loop and of a switch, or in a continuing"},
	{"loop { break; continuing { return; } }", "line 3:28: return stands in a continuing"},
	{"loop { break; continuing {} let a = 1; }", "line 3:29: expected }, found let"},
	{"for (;;) {}", "line 3:1: this loop never ends"},
	{"for (var i = 0; i < 4; i++) {} y[0] = i;", "line 3:39: no i is declared"},
	{"if 1 {}", "line 3:4: a value of type abstract-int where bool is needed"},
	{"while y[0] {}", "line 3:7: a value of type u32 where bool is needed"},
	{"switch 1.5 { default {} }", "line 3:8: a switch of f32"},
	{"switch 1 { case 1 {} }", "line 3:8: a switch without a default"},
	{"switch 1 { default {} default {} }", "line 3:31: a switch with two defaults"},
	{"switch 1 { case 1, 1 {} default {} }", "line 3:20: two cases of the value 1"},
	{"switch 1 { case y[0] {} default {} }", "line 3:17: a value of type u32 where i32 is needed"},
	{"return 1;", "line 3:8: main returns nothing"},
	{"discard;", "line 3:1: no discard is declared"},
	{"y[0]++", "line 4:1: expected ;, found }"},
	{"var a = 1.5; a++;", "line 3:14: ++ behind f32"},
	{"var v = vec2(1); v.xx = v;", "line 3:18: an assignment to one component twice"},
	{"workgroupBarrier(1);", "line 3:1: workgroupBarrier has no parameters"},
	{"let a = workgroupBarrier();", "line 3:9: the function returns nothing"},
	{"let a = workgroupUniformLoad(&y);", "line 3:9: workgroupUniformLoad needs a pointer to a variable of the workgroup"},
	{"let a = atomicLoad(&y[0]);", "line 3:20: atomicLoad needs a pointer to an atomic"},
	{"let a = arrayLength(y);", "line 3:21: array<u32> cannot be a value"},
	{"var a = array<u32, 2>(); let b = arrayLength(&a);", "line 3:46: arrayLength needs a pointer to an array without a length"},
	{"const_assert y[0] == 1;", "line 3:19: the condition of const_assert is no constant"},
	{"const a = y[0];", "line 3:11: the value of a is no constant"},
	{"let a = " + strings.Repeat("(", 400) + "1" + strings.Repeat(")", 400) + ";", "line 3:309: this is nested too deeply"},
	{"let a = y[0]" + strings.Repeat(" + y[0]", 2000) + ";", "line 3:7007: this is nested too deeply"},
}

var wrongTexts = []struct{ text, want string }{
	{"", `line 1:1: no compute entry point "main"`},
	{"fn main() {}", `line 1:1: no compute entry point "main"`},
	{"@vertex fn main() {}", `line 1:1: no compute entry point "main"`},
	{"enable f16;", "line 1:8: f16 is not available"},
	{"enable subgroups;", "line 1:8: subgroups is not available"},
	{"requires nonsense;", "line 1:10: nonsense is not available"},
	{"/* ", "line 1:1: a comment that does not end"},
	{"\xff", "line 1:1: a source that is not UTF-8, or with a zero byte"},
	{
		"@group(1) @binding(0) var<storage, read_write> y: u32;\n@compute @workgroup_size(1) fn main() { y = 1; }",
		"line 1:48: y is in group 1: there is only group 0",
	},
	{
		head + "@group(0) @binding(0) var<storage> z: u32;\n@compute @workgroup_size(1) fn main() { y[0] = z; }",
		"line 2:36: binding 0 is used twice",
	},
	{
		"@group(0) @binding(0) var<storage> y: array<u32>;\n" + begin + "y[0] = 1;\n}",
		"line 3:1: y is read-only",
	},
	{
		"struct S { a: atomic<u32> }\n@group(0) @binding(0) var<storage, read_write> y: S;\n" + begin + "let a = y;\n}",
		"line 4:9: S cannot be a value",
	},
	{
		"fn f(p: ptr<function, f32>) {}\n" + begin + "var a: u32; f(&a);\n}",
		"line 3:15: a value of type ptr<function, u32> where ptr<function, f32> is needed",
	},
	{
		"fn f(p: ptr<function, f32>) {}\n" + begin + "f(1.0);\n}",
		"line 3:3: a value of type abstract-float where ptr<function, f32> is needed",
	},
	{
		"@must_use fn f() -> u32 { return 1; }\n" + begin + "f();\n}",
		"line 3:1: the result of f must be used",
	},
	{
		"fn f(a: u32) {}\n" + begin + "f(1, 2);\n}",
		"line 3:1: f has 1 parameters, not 2",
	},
}

func TestErrors(t *testing.T) {
	list := wrongTexts
	for _, c := range wrongModules {
		c.text = module(c.text)
		list = append(list, c)
	}
	for _, c := range wrongBodies {
		c.text = body(c.text)
		list = append(list, c)
	}
	for _, c := range list {
		_, err := Parse(c.text, "main")
		if err == nil || err.Error() != c.want {
			t.Errorf("%.300s\n\tgot  %v\n\twant %s", c.text, err, c.want)
		}
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%.300s\n\tan error of type %T", c.text, err)
		}
	}
}

// hostileTexts are larger than anything that a compiler should get. An error is the beginning of a text; there is none for "".
var hostileTexts = []struct{ name, text, want string }{
	{"brackets", body("let a = " + strings.Repeat("(", 1e5) + "1" + strings.Repeat(")", 1e5) + ";"), "line 3:309: this is nested too deeply"},
	{"minus signs", body("let a = " + strings.Repeat("- ", 1e5) + "1;"), "line 3:6"},
	{"blocks", body(strings.Repeat("{", 1e5) + strings.Repeat("}", 1e5)), "line 3:301: this is nested too deeply"},
	{"branches", body("if y[0] == 1 {}" + strings.Repeat(" else if y[0] == 1 {}", 1e5)), "line 3:6"},
	{"operators that decide", body("let b = y[0] == 1; let a = b" + strings.Repeat("&&b", 1e5) + ";"), "line 3:3"},
	{"indices", body("let a = " + strings.Repeat("y[", 1e5) + "0" + strings.Repeat("]", 1e5) + ";"), "line 3:609: this is nested too deeply"},
	{"swizzles", body("var v = vec2(1); let a = v" + strings.Repeat(".xy", 1e5) + ";"), "line 3:"},
	{"types", "alias A = " + strings.Repeat("array<", 1e5) + "u32" + strings.Repeat(", 1>", 1e5) + ";", "line 1:1792: this is nested too deeply"},
	{"aliases", "alias A0 = u32;" + counted(1000, "alias A$1 = array<A$0, 1>;"), "line 1:1705: types are nested too deeply"},
	{"structs", "struct A0 { a: u32 }" + counted(1000, "struct A$1 { a: A$0, b: A$0 }"), "line 1:361: a type of more than 2 GiB, or of too many parts"},
	{"constants before their use", module("const A0 = 1;" + counted(50000, "const A$1 = A$0;")), ""},
	{"constants after their use", counted(50000, "const A$0 = A$1;"), "line 1:942: this is nested too deeply"},
	{"arrays that double", "const A0 = array(1, 1);" + counted(50, "const A$1 = array(A$0, A$0);"), "line 1:427: a value of more than 262144 bytes"},
	{"large constants", counted(1000, "const A$0 = array<u32, 65536>();"), "line 1:2051: the constants are too large"},
	{"a table", "const A = array<u32, 65536>();" + body(strings.Repeat("_ = A[y[0]];", 1e5)), ""},
	{"functions", module("fn f0() {}" + counted(60000, "fn f$1() { f$0(); }")), ""},
	{"functions before their use", module(counted(60000, "fn f$0() { f$1(); }") + "fn f60000() {}"), ""},
	{"calls", module("fn f0() {}" + counted(30, "fn f$1() { f$0(); f$0(); }")), ""},
	{"cases", body("switch y[0] {" + counted(1e5, "case $0 {}") + "default {} }"), ""},
	{"barriers", "var<workgroup> w: bool;" + body("let a = true"+strings.Repeat("&&workgroupUniformLoad(&w)", 1e4)+";"), ""},
	{"attributes", strings.Repeat("@", 1e5), "line 1:100001: expected a declaration"},
	{"templates", body("let a = " + strings.Repeat("vec2<", 1e5)), "line 3:15"},
}

// counted repeats a text with the numbers from 0 on for $0, and the ones after them for $1.
func counted(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(text, "$0", strconv.Itoa(i)), "$1", strconv.Itoa(i+1)))
	}
	return b.String()
}

func TestHostileTexts(t *testing.T) {
	for _, c := range hostileTexts {
		prog, err := Parse(c.text, "main")
		switch {
		case err == nil && c.want == "":
			verify(t, c.name, prog)
		case err == nil || c.want == "" || !strings.HasPrefix(err.Error(), c.want):
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
