// SPDX-License-Identifier: Apache-2.0

package expected

import "testing"

func TestOn(t *testing.T) {
	table := []Failure{
		{Driver: "a", Case: "One", Why: "everywhere"},
		{Driver: "a", Platform: "windows/amd64", Case: "Two", Why: "there"},
		{Driver: "b", Case: "One", Why: "another driver"},
	}
	for platform, want := range map[string]int{"windows/amd64": 2, "linux/amd64": 1, "windows/arm64": 1} {
		if got := on(platform, "a", table); len(got) != want || got[0] != table[0] {
			t.Errorf("%s: %v", platform, got)
		}
	}
	if got := on("linux/amd64", "c", table); got != nil {
		t.Errorf("an unknown driver fails %v", got)
	}
	f := Failure{Case: "Kernel"}
	if !f.Covers("KernelErrors/types") || !f.Covers("Kernel") || f.Covers("Kerne") || f.Covers("AKernel") {
		t.Error("Covers does not compare beginnings")
	}
}

// TestTable wants each entry to say everything, and none twice.
func TestTable(t *testing.T) {
	seen := map[Failure]bool{}
	for _, f := range table {
		if f.Driver == "" || f.Case == "" || f.Why == "" {
			t.Errorf("%+v leaves something out", f)
		}
		f.Why = ""
		if seen[f] {
			t.Errorf("%+v is there twice", f)
		}
		seen[f] = true
	}
}
