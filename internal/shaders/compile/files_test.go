// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
)

// TestFiles compiles every kernel file of the tree, and what becomes of it.
func TestFiles(t *testing.T) {
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(t.Context())
	files := 0
	for _, dir := range []string{"../kernels", "../../../gpu/gputest/kernels"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".wgsl") {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for name, o := range each {
				o.Threads = false // which wazero refuses unless asked
				mod, err := compile.Compile(string(text), "main", o)
				if err != nil {
					t.Errorf("%s, %s: %v", path, name, err)
					continue
				}
				m, err := rt.CompileModule(t.Context(), mod.Wasm)
				if err != nil {
					t.Errorf("%s, %s: %v", path, name, err)
					continue
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 30 {
		t.Errorf("found %d kernels", files)
	}
}
