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
		if prog.Entry == nil || len(prog.Funcs) == 0 || prog.Funcs[len(prog.Funcs)-1] != prog.Entry || prog.Size[0] < 1 {
			t.Errorf("%s: an entry point %v of size %v", path, prog.Entry, prog.Size)
		}
	}
}
