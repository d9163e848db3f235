// SPDX-License-Identifier: Apache-2.0

package shaders

import (
	"fmt"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	const file = `const N: u32 = 4u; // @param
const T: bool = false; // @param
// @fuse
fn f() {}
// @end
fn main() {
  for (var q = 0u; q < N; q++) { // @unroll
    let qq = a[q] + q_; // q
    for (var r = 0u; r < 2u; r++) { // @unroll
      b[q][r] = q;
    } // @unroll
  } // @unroll
}
`
	got := Expand(file, "fn g() {}\n", Param{"N", 2}, Param{"T", 1})
	want := `const N: u32 = 2u;
const T: bool = true;
fn g() {}
fn main() {
{
    let qq = a[0u] + q_; // q
{
      b[0u][0u] = 0u;
}
{
      b[0u][1u] = 0u;
}
}
{
    let qq = a[1u] + q_; // q
{
      b[1u][0u] = 1u;
}
{
      b[1u][1u] = 1u;
}
}
}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestExpandChoices leaves out what an if about a parameter has that is false.
func TestExpandChoices(t *testing.T) {
	const file = `const A: bool = true; // @param
const B: bool = true; // @param
if (A) { a(); }
if (A) { a(); } else { b(); }
if (A) {
  for (var q = 0u; q < 2u; q++) { // @unroll
    if (B) { a(q); }
  } // @unroll
} else {
  if (B) { b(); } else {
    c();
  }
}
if (A) {
  if (x) { a(); } else { b(); }
}
if (A && x) { d(); }
`
	const head = "const A: bool = %v;\nconst B: bool = %v;\n"
	for _, c := range []struct {
		a, b int
		want string
	}{
		{0, 0, "{ b(); }\n{\n{\n    c();\n  }\n}\nif (A && x) { d(); }\n"},
		{0, 1, "{ b(); }\n{\n  if (B) { b(); } else {\n    c();\n  }\n}\nif (A && x) { d(); }\n"},
		{1, 0, "if (A) { a(); }\nif (A) { a(); } else { b(); }\nif (A) {\n{\n}\n{\n}\n} else {\n{\n    c();\n  }\n}\nif (A) {\n  if (x) { a(); } else { b(); }\n}\nif (A && x) { d(); }\n"},
	} {
		want := fmt.Sprintf(head, c.a == 1, c.b == 1) + c.want
		if got := Expand(file, "", Param{"A", c.a}, Param{"B", c.b}); got != want {
			t.Errorf("A %d and B %d: got\n%s\nwant\n%s", c.a, c.b, got, want)
		}
	}
}

func TestSplitWord(t *testing.T) {
	for _, c := range [][3]string{
		{"q", "q", "1"}, {"aq q qa q", "q", "aq 1 qa 1"}, {"acc[c]", "c", "acc[1]"}, {"", "q", ""}, {"q_q.q", "q", "q_q.1"},
	} {
		want := c[2]
		if c[0] == c[1] {
			want = "1"
		}
		if got := strings.Join(splitWord(c[0], c[1]), "1"); got != want {
			t.Errorf("%q: got %q, want %q", c[0], got, want)
		}
	}
}

func TestFold(t *testing.T) {
	for _, n := range []int{0, 1, 7, MaxGroups, MaxGroups + 1, 2 * MaxGroups, 1_000_003} {
		g := Fold(n)
		if int(g[0])*int(g[1]) < n || g[0] > MaxGroups || g[1] > MaxGroups || g[2] != 1 {
			t.Errorf("%d workgroups folded to %v", n, g)
		}
	}
}

func TestFill(t *testing.T) {
	for pattern, want := range map[string]string{"": "", "a": "a", "$1$0 $1": "yx y", "f($0)": "f(x)"} {
		if got := Fill(pattern, "x", "y"); got != want {
			t.Errorf("%q: %q", pattern, got)
		}
	}
}

func TestWords(t *testing.T) {
	if b := Words([]byte{1}, 0x01020304, 5); string(b) != "\x01\x04\x03\x02\x01\x05\x00\x00\x00" {
		t.Error(b)
	}
}
