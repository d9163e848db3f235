// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"os"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
)

// options, unless it is nil, has launched compile texts instead of running references.
var options *compile.Options

var modules = map[string]*compile.Module{}

// launched runs a program.
func launched(t *testing.T, p shaders.Program, groups [3]uint32, params []byte, storage [][]byte) {
	t.Helper()
	if options == nil {
		p.Reference.Run(groups, params, storage)
		return
	}
	mod := modules[p.Source]
	if mod == nil {
		var err error
		if mod, err = compile.Compile(p.Source, "main", *options); err != nil {
			t.Fatalf("%s: %v\n%s", p.Name, err, p.Source)
		}
		modules[p.Source] = mod
	}
	compiletest.Run(t, mod, groups, params, storage)
}

// TestCompiled does what the other tests do with references with the texts, compiled to WebAssembly.
func TestCompiled(t *testing.T) {
	for name, o := range map[string]compile.Options{"exact": {Exact: true}, "guarded": {Guard: true, Wazero: true}} {
		if name == "exact" && os.Getenv("SUBLET_LONG") == "" {
			continue // the same numbers by way of fewer instructions
		}
		t.Run(name, func(t *testing.T) {
			options = &o
			defer func() {
				options = nil
				clear(modules)
			}()
			for name, test := range map[string]func(*testing.T){
				"Twins": TestTwins, "Lines": TestLines, "Types": TestTypes, "Tail": TestTail, "Folds": TestFolds, "Wrap": TestWrap, "NaN": TestNaN,
				"Accuracy": TestAccuracy, "Passes": TestPasses, "Softmax": TestSoftmax, "Scatter": TestScatter, "Rows": TestRows,
			} {
				t.Run(name, test)
			}
		})
	}
}
