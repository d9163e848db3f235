// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// turning makes a kernel of a body, which puts a number into h. p.n is how many turns it is to take.
func turning(functions, body string) *driver.Kernel {
	return &driver.Kernel{
		Label: "turning",
		Source: "struct Params { n: u32 }\n@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n@group(0) @binding(1) var<uniform> p: Params;\n" +
			functions + "\n@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n  var h = 0u;\n" + body + "\n  y[id.x] = h;\n}",
		Entry:  "main",
		Layout: driver.NewLayout(driver.AccessReadWrite, driver.AccessParams),
	}
}

// turns runs a kernel of turning and returns the first words of what it wrote.
func turns(t *testing.T, d driver.Device, k *driver.Kernel, n uint32) ([]uint32, error) {
	t.Helper()
	if err := d.NewKernel(t.Context(), 70, k); err != nil {
		return nil, err
	}
	defer d.FreeKernel(70)
	return turn(t, d, k, n)
}

// turn is turns with a kernel that is compiled as number 70.
func turn(t *testing.T, d driver.Device, k *driver.Kernel, n uint32) ([]uint32, error) {
	t.Helper()
	must(t, d.NewBuffer(70, 4*64, false))
	var l driver.CommandList
	defer func() {
		d.FreeBuffer(70)
		l.Reset()
		l.Unbind(70)
		if err := d.Submit(&l); errors.Is(err, fault.ErrLimit) {
			err = d.Submit(&l)
			must(t, err)
		}
	}()
	l.Bind(70, k.Layout, []driver.Binding{whole(70, 64)})
	l.Dispatch(70, 70, [3]uint32{1, 1, 1}, gputest.PutU32(nil, n))
	must(t, d.Submit(&l))
	return read(t.Context(), d, 70, 64)
}

// forms are kernels that count their turns, p.n of them, in all the ways that WGSL has. even is what is counted by even invocations,
// if not all count p.n.
var forms = []struct {
	name, functions, body string
	even                  func(n uint32) uint32
}{
	{name: "for", body: "for (var i = 0u; i < p.n; i++) { h += 1u; }"},
	{name: "for without a declaration", body: "for (; h < p.n; ) { h += 1u; }"},
	{name: "for without a condition", body: "for (;;) { if (h >= p.n) { break; } h += 1u; }"},
	{name: "while", body: "while h < p.n { h += 1u; }"},
	{name: "loop", body: "loop { if (h >= p.n) { break; } h += 1u; }"},
	{name: "continuing", body: "loop { if (h >= p.n) { break; } continuing { h += 1u; } }"},
	{name: "break if", body: "loop { continuing { h += 1u; break if h >= p.n; } }"},
	{name: "continue", body: "for (var i = 0u; i < 2u * p.n; i += 2u) { h += 1u; if (h % 3u == 0u) { continue; } h += 0u; }"},
	{name: "nested", body: "var i = 0u; while (i < p.n) { for (var j = 0u; j < 100u && i < p.n; j++) { h += 1u; i += 1u; } }"},
	{name: "one after the other", body: "for (var i = 0u; i < p.n / 2u; i++) { h += 1u; } for (var i = 0u; i < p.n / 2u; i++) { h += 1u; }"},
	{name: "early return", body: "for (var i = 0u; i < p.n; i++) { h += 1u; if (h == p.n) { y[id.x] = h; return; } }"},
	{name: "return out of two", body: "loop { loop { h += 1u; if (h >= p.n) { y[id.x] = h; return; } if (h % 64u == 0u) { break; } } }"},
	{name: "ends with return", body: "for (var i = 0u; i < p.n; i++) { h += 1u; } y[id.x] = h; return; }\nfn unused() { var h = 0u; let id = vec2<u32>();"},
	{name: "ends with return in a block", body: "for (var i = 0u; i < p.n; i++) { h += 1u; } { y[id.x] = h; { return; } } }\nfn unused() { var h = 0u; let id = vec2<u32>();"},
	{name: "in a function", functions: "fn f(n: u32) -> u32 { var h = 0u; while (true) { if (h >= n) { return h; } h += 1u; } return 0u; }", body: "h = f(p.n);"},
	{name: "in two functions", functions: "fn f(n: u32) -> u32 { var h = 0u; while (h < n) { h += 1u; } return h; }", body: "h = f(p.n / 2u); h += f(p.n / 2u);"},
	{name: "switch within", body: "for (var i = 0u; i < p.n; i++) { switch (i % 3u) { case 0u: { h += 1u; break; } case 1u, 2u { h += 1u; } default: { } } }"},
	{name: "within switch", body: "switch (p.n) { case 7u: { } default: { while (h < p.n) { h += 1u; if (h > p.n) { break; } } } }"},
	{name: "names and comments", body: "let sublet_guard = 1u; let while_ = sublet_guard; /* loop { */ // for (\n for (var loop_ = 0u; loop_ < p.n; loop_ += while_) { h += 1u; } // return"},
	{
		name: "divergent", body: "if (id.x % 2u == 0u) { for (var i = 0u; i < p.n / 2u; i++) { h += 1u; } } else { for (var i = 0u; i < p.n / 2u; i++) { h += 2u; } }",
		even: func(n uint32) uint32 { return n / 2 },
	},
	{
		name: "some return before", body: "if (id.x % 2u == 0u) { y[id.x] = 7u; return; } for (var i = 0u; i < p.n; i++) { h += 1u; }",
		even: func(uint32) uint32 { return 7 },
	},
	{
		name: "some leave early", body: "for (var i = 0u; i < p.n; i++) { h += 1u; if (id.x % 2u == 0u && h == 9u) { break; } }",
		even: func(uint32) uint32 { return 9 },
	},
	{name: "barrier", functions: "var<workgroup> w: array<u32, 64>;", body: "for (var i = 0u; i < p.n; i++) { h += 1u; } w[id.x] = h; workgroupBarrier(); h = w[63u - id.x];"},
}

// testLoops runs every form of loop within the limit and beyond it. Beyond, llvmpipe gives wrong results, which must be an error; others
// give the right ones.
func testLoops(t *testing.T, bench *Bench) {
	t.Setenv("VK_ICD_FILENAMES", "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json:/usr/lib/chromium/vk_swiftshader_icd.json")
	adapters, err := bench.Driver.Adapters(t.Context())
	must(t, err)
	limited := map[bool]bool{}
	for _, a := range adapters {
		d, err := a.Open(t.Context())
		must(t, err)
		t.Cleanup(func() { must(t, d.Close()) })
		limit := d.Info().Limits.MaxLoopsPerInvoking > 0
		limited[limit] = true
		for _, f := range forms {
			k := turning(f.functions, f.body)
			must(t, d.NewKernel(t.Context(), 70, k))
			for _, n := range []uint32{0, 2, 60000, 80000, 4} {
				if n == 0 && (f.name == "break if" || strings.Contains(f.name, "return")) {
					continue
				}
				got, err := turn(t, d, k, n)
				if limit && n > 65536 {
					if !errors.Is(err, fault.ErrLimit) || !strings.Contains(err.Error(), "turning") || !slices.Equal(got, make([]uint32, 64)) {
						t.Errorf("%s on %s, %d turns: got %d, %v", f.name, a.Info.Name, n, got[:2], err)
					}
					continue
				}
				even := n
				if f.even != nil {
					even = f.even(n)
				}
				if f.name == "some leave early" {
					even = min(even, n)
				}
				if err != nil || got[0] != even || got[1] != n || got[63] != n {
					t.Errorf("%s on %s, %d turns: got %d, %v", f.name, a.Info.Name, n, got[:2], err)
				}
			}
			d.FreeKernel(70)
		}
	}
	if !limited[true] || limited[false] != (bench.NoSwiftShader == "") {
		t.Errorf("of the adapters that end loops and those that do not, one kind is missing: %v", limited)
	}
}

// testEndlessLoops has loops that no compiler takes for anything but endless.
func testEndlessLoops(t *testing.T, bench *Bench) {
	d := bench.open(t)
	for _, body := range []string{
		"loop { y[id.x] += 1u; }", "while (true) { h += 1u; }", "for (;;) { h += 1u; }", "while (h >= 0u) { h += 1u; }",
		"loop { y[id.x] += 1u; loop { h += y[id.x]; } }", "for (var i = 0u; i < 4u; i += 0u) { h += 1u; }",
	} {
		if _, err := turns(t, d, turning("", body), 1); !errors.Is(err, fault.ErrLimit) && !errors.Is(err, fault.ErrCompile) {
			t.Errorf("%s: %v", body, err)
		}
		healthy(t, d, 80)
		d.FreeKernel(80)
		d.FreeBuffer(80)
		d.FreeBuffer(81)
		var l driver.CommandList
		l.Unbind(80)
		must(t, d.Submit(&l))
	}
}

// testGuardNamesMistakes shows the compiler's errors about the text as it was written, and refuses the guard's binding to others.
func testGuardNamesMistakes(t *testing.T, bench *Bench) {
	d := bench.open(t)
	err := d.NewKernel(t.Context(), 1, turning("", "if (p.n == 0u) { return; } for (;;) { h = nonsense; }"))
	if !errors.Is(err, fault.ErrCompile) || !strings.Contains(err.Error(), "wgsl:8:43") || strings.Contains(err.Error(), "guard") {
		t.Error(err)
	}
	for _, slot := range []string{"0", "1"} {
		k := turning("@group(1) @binding("+slot+") var<storage, read_write> z: array<u32>;", "for (var i = 0u; i < p.n; i++) { z[i] = h; }")
		if err := d.NewKernel(t.Context(), 1, k); !errors.Is(err, fault.ErrCompile) {
			t.Errorf("binding %s: %v", slot, err)
		}
	}
	healthy(t, d, 2)
}

// testLoopsOfOthers has goroutines read results, some of which loops that were ended have spoilt. Nobody gets a wrong result, and the
// refusal names the list.
func testLoopsOfOthers(t *testing.T, bench *Bench) {
	d := bench.open(t)
	must(t, d.NewKernel(t.Context(), 1, turning("", "for (var i = 0u; i < p.n; i++) { h += 1u; }")))
	var l driver.CommandList
	for id := range driver.BufferID(2) {
		must(t, d.NewBuffer(id+1, 256, false))
		l.Bind(driver.BindingsID(id+1), turning("", "").Layout, []driver.Binding{whole(id+1, 64)})
	}
	must(t, d.Submit(&l))
	run := func(number uint64, set driver.BindingsID, n uint32) error {
		l.Reset()
		l.Number = number
		l.Dispatch(1, set, [3]uint32{1, 1, 1}, gputest.PutU32(nil, n))
		return d.Submit(&l)
	}
	must(t, run(1, 1, 5))
	must(t, d.Wait(t.Context()))
	must(t, run(2, 1, 6))
	must(t, run(3, 2, 80000))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i, call := range []func() error{
				func() error { return d.Wait(t.Context()) },
				func() error { _, err := read(t.Context(), d, 2, 1); return err },
			} {
				r, ok := errors.AsType[driver.Refusal](call())
				if !ok || r.List != 2 || !errors.Is(r, fault.ErrLimit) {
					t.Errorf("call %d: %+v", i, r)
				}
			}
		})
	}
	all.Wait()
	if err := run(4, 1, 7); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("submitted: %v", err)
	}
	want(t, d, 1, []uint32{6, 6}) // the call did nothing
	must(t, run(4, 2, 7))
	want(t, d, 2, []uint32{7, 7})
	must(t, d.Wait(t.Context()))
}

// program writes random statements with loops in them.
type program struct {
	*rand.Rand
	loops int
}

func (p *program) block(depth, inLoop int) string {
	var b strings.Builder
	for range 1 + p.IntN(3) {
		b.WriteString(p.statement(depth, inLoop))
	}
	return b.String()
}

func (p *program) condition() string {
	return fmt.Sprintf("(h >> %du) %% %du == %du", p.IntN(9), 2+p.IntN(4), p.IntN(2))
}

// statement writes a statement. Every loop has a variable of its own, which ends it.
func (p *program) statement(depth, inLoop int) string {
	if depth == 0 {
		return fmt.Sprintf("h = h * 1664525u + %du + id.x;\n", p.IntN(1000))
	}
	inner := func(loops int) string { return p.block(depth-1, loops) }
	p.loops++
	i, n := fmt.Sprintf("v%d", p.loops), p.IntN(7)
	switch p.IntN(11) {
	case 0:
		return fmt.Sprintf("for (var %s = 0u; %s < %du; %s++) {\n%s}\n", i, i, n, i, inner(1))
	case 1:
		return fmt.Sprintf("var %s = 0u;\nwhile %s < %du {\n%s += 1u;\n%s}\n", i, i, n, i, inner(1))
	case 2:
		return fmt.Sprintf("var %s = 0u;\nloop {\nif (%s >= %du) { break; }\n%s\ncontinuing {\n%s += 1u;\n}\n}\n", i, i, n, inner(1), i)
	case 3:
		return fmt.Sprintf("var %s = 0u;\nloop {\n%s\ncontinuing {\n%s += 1u;\nbreak if %s >= %du;\n}\n}\n", i, inner(1), i, i, n)
	case 4:
		return fmt.Sprintf("if (%s) {\n%s} else {\n%s}\n", p.condition(), inner(inLoop), inner(inLoop))
	case 5:
		return fmt.Sprintf("switch (h %% 3u) {\ncase 0u: {\n%s}\ncase 1u: {\nif (%s) { break; }\n%s}\ndefault: {\n%s}\n}\n", inner(inLoop), p.condition(), inner(inLoop), inner(inLoop))
	case 6:
		return fmt.Sprintf("if (%s) { y[id.x] = h; return; }\n", p.condition())
	case 7:
		if inLoop > 0 {
			return fmt.Sprintf("if (%s) { break; }\n", p.condition())
		}
	case 8:
		if inLoop > 0 {
			return fmt.Sprintf("if (%s) { continue; }\n", p.condition())
		}
	case 9:
		return "h += f(h);\n"
	}
	return "{\n" + inner(inLoop) + "}\n"
}

// testGuardChangesNothing runs random programs with and without a guard.
func testGuardChangesNothing(t *testing.T, bench *Bench) {
	d := bench.open(t)
	const function = "fn f(x: u32) -> u32 { var h = x; for (var i = 0u; i < x % 5u; i++) { h = h * 22695477u + 1u; if (h % 7u == 0u) { return i; } } return h; }"
	loops := 0
	for seed := range uint64(times(8)) {
		p := program{Rand: rand.New(rand.NewPCG(seed, 13))}
		k := turning(function, "h = id.x;\n"+p.block(4, 0))
		if strings.Contains(k.Source, "loop") || strings.Contains(k.Source, "while") {
			loops++
		}
		guarded, err := turns(t, d, k, 1)
		if err != nil && !errors.Is(err, fault.ErrLimit) {
			t.Fatalf("seed %d: %v\n%s", seed, err, k.Source)
		}
		k.Bounded = true
		plain, plainErr := turns(t, d, k, 1)
		must(t, plainErr)
		if err == nil && !slices.Equal(guarded, plain) {
			t.Fatalf("seed %d: %d with a guard, %d without\n%s", seed, guarded, plain, k.Source)
		}
	}
	if loops == 0 {
		t.Error("no program has loops")
	}
}
