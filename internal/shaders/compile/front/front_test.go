// SPDX-License-Identifier: Apache-2.0

package front

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kernels returns the texts of all kernel files of the tree that are whole.
func kernels(t testing.TB) map[string]string {
	list := map[string]string{}
	for _, dir := range []string{"../../kernels", "../../../../gpu/gputest/kernels"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".wgsl") {
				var text []byte
				text, err = os.ReadFile(path)
				list[path] = string(text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(list) < 30 {
		t.Fatalf("found %d kernels", len(list))
	}
	return list
}

func TestKernels(t *testing.T) {
	for path, text := range kernels(t) {
		prog, err := Parse(text, "main")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if prog.Size[0] < 1 {
			t.Errorf("%s: workgroups of %v", path, prog.Size)
		}
		verify(t, path, prog)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range kernels(f) {
		f.Add(text)
	}
	for _, c := range programs {
		f.Add(head + c.before + begin + c.body + "}")
	}
	for _, c := range wrongBodies {
		f.Add(body(c.text))
	}
	for _, c := range wrongModules {
		f.Add(module(c.text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if prog, err := Parse(text, "main"); err == nil {
			verify(t, text, prog)
		}
	})
}
