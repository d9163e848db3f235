// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/driver/expected"
)

// oracle opens devices on which things go wrong as planned.
func oracle(plan func() devtest.Plan) opener {
	return func(ctx context.Context) (driver.Device, error) {
		list, err := cpu.New().Adapters(ctx)
		if err != nil {
			return nil, err
		}
		dev, err := list[0].Open(ctx)
		if err != nil {
			return nil, err
		}
		return devtest.NewFaulty(dev, plan()), nil
	}
}

func never() devtest.Plan { return nil }

// verdict is what Run would say of a case that is expected to fail.
func verdict(open opener, c testCase, limit time.Duration) string {
	r := new(recorder)
	expectFailure(r, open, c, "because", limit)
	return r.text()
}

func testNamed(t *testing.T, name string) testCase {
	t.Helper()
	for _, c := range cases {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no case %s", name)
	return testCase{}
}

func TestExpectedFailures(t *testing.T) {
	bindingKinds := testNamed(t, "BindingKinds")
	for name, plan := range map[string]devtest.Plan{
		"no memory":    devtest.At(3, devtest.NoMemory),
		"a refusal":    devtest.At(0, devtest.Refuse),
		"a loss":       devtest.At(2, devtest.Lose),
		"a later loss": devtest.At(40, devtest.LoseAfter), // not in the first round
	} {
		if v := verdict(oracle(func() devtest.Plan { return plan }), bindingKinds, time.Minute); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
	block := make(chan struct{})
	defer close(block)
	for name, c := range map[string]func(r *rig){
		"Error":    func(r *rig) { r.Error("wrong") },
		"Fatal":    func(r *rig) { r.Fatal("wrong") },
		"Fatalf":   func(r *rig) { r.Fatalf("wrong") },
		"FailNow":  func(r *rig) { r.FailNow() },
		"a panic":  func(*rig) { panic("wrong") },
		"a signal": func(*rig) { var p *rig; p.sets = 1 },
		"cleanup":  func(r *rig) { r.Cleanup(func() { panic("wrong") }) },
		"a second": func(r *rig) { r.second().Fatal("wrong") },
	} {
		if v := verdict(oracle(never), testCase{name, c}, time.Minute); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
	hang := testCase{"hang", func(*rig) { <-block }}
	if v := verdict(oracle(never), hang, time.Millisecond); v != "" {
		t.Errorf("a hang: %s", v)
	}
	if v := verdict(func(context.Context) (driver.Device, error) { return nil, context.Canceled }, bindingKinds, time.Minute); v != "" {
		t.Errorf("a device that cannot be opened: %s", v)
	}
}

// TestUnexpectedPass wants the run to fail when a case passes that is in the table.
func TestUnexpectedPass(t *testing.T) {
	for _, c := range []testCase{testNamed(t, "BindingKinds"), testNamed(t, "CloseRefuses"), {"nothing", func(*rig) {}}} {
		want := c.name + " is expected to fail (because) and passes: remove it from the table in gpu/driver/expected"
		if v := verdict(oracle(never), c, time.Minute); v != want {
			t.Errorf("%s: %q", c.name, v)
		}
	}
}

func TestSplit(t *testing.T) {
	r := new(recorder)
	pass, fail := split(r, cases, []expected.Failure{{Driver: "d", Case: "KernelErrors/", Why: "a"}, {Driver: "d", Case: "Reopen", Why: "b"}})
	if len(pass)+len(fail) != len(cases) || fail["Reopen"] != "b" || fail["KernelErrors/types"] != "a" || r.Failed() {
		t.Errorf("%d pass, these fail: %v; %s", len(pass), fail, r.text())
	}
	for _, c := range pass {
		if strings.HasPrefix(c.name, "KernelErrors/") || c.name == "Reopen" {
			t.Errorf("%s is to pass", c.name)
		}
	}
	for _, unknown := range []string{"Nonsense", "reopen"} {
		r = new(recorder)
		if split(r, cases, []expected.Failure{{Driver: "d", Case: unknown, Why: "w"}}); !strings.Contains(r.text(), unknown) {
			t.Errorf("a table of %s, which is no case: %q", unknown, r.text())
		}
	}
}
