// SPDX-License-Identifier: Apache-2.0

package command

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/matrix"
)

// write makes a file of the test's own bytes.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withTexts is a file as the reference implementation of safetensors writes it for PyTorch: 88 bytes of header.
const withTexts = "\x58\x00\x00\x00\x00\x00\x00\x00" +
	`{"__metadata__":{"format":"pt"},"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}    ` + "\x01\xff"

// TestParamsTexts converts a file with texts beside its tensors: they stay where the other format has such, and are
// reported where they do not.
func TestParamsTexts(t *testing.T) {
	in := write(t, "in.safetensors", []byte(withTexts))
	out := filepath.Join(t.TempDir(), "out.safetensors")
	if text := must(t, "params", "convert", in, out); text != "tensors: 1, bytes of data: 2\n" || slurp(t, out) != withTexts {
		t.Errorf("%q: %q", text, slurp(t, out))
	}
	for _, to := range []string{"out.params", "out.npz"} {
		out := filepath.Join(t.TempDir(), to)
		if text := must(t, "params", "convert", in, out); text != "tensors: 1, bytes of data: 2, texts left out: 1\n" {
			t.Errorf("%s: %q", to, text)
		}
		var c converted
		if err := json.Unmarshal([]byte(must(t, "params", "convert", in, out, "--json")), &c); err != nil || c.Texts != 1 || c.Trailing != 0 {
			t.Errorf("%s: %+v, %v", to, c, err)
		}
	}
}

// TestParamsTail reports the bytes after a dictionary that a conversion leaves out.
func TestParamsTail(t *testing.T) {
	in := write(t, "in.params", append([]byte(slurp(t, dictionary)), "stale!"...))
	out := filepath.Join(t.TempDir(), "out.params")
	text := must(t, "params", "convert", in, out)
	if !strings.HasSuffix(text, ", bytes after the last tensor left out: 6\n") || slurp(t, out) != slurp(t, dictionary) {
		t.Errorf("%q", text)
	}
	var c converted
	if err := json.Unmarshal([]byte(must(t, "params", "convert", in, out, "--json")), &c); err != nil || c.Trailing != 6 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestParamsGetBeside takes a tensor out of an archive in which others cannot be read, as NumPy's texts and objects are.
func TestParamsGetBeside(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, a := range [][2]string{{"text", "'<U1'"}, {"object", "'|O'"}, {"number", "'<i4'"}} {
		w, err := z.Create(a[0] + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		header := "{'descr': " + a[1] + ", 'fortran_order': False, 'shape': (), }\n"
		if _, err := io.WriteString(w, "\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), 0})+header+"\x07\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	in := write(t, "in.npz", b.Bytes())
	if text := must(t, "params", "get", in, "number"); text != "  7\nnumber: scalar int32, 4 bytes\n" {
		t.Errorf("%q", text)
	}
	o := sublet("params", "list", in, "--json")
	var list []listed
	if o.status != 0 || json.Unmarshal([]byte(o.stdout), &list) != nil || len(list) != 1 || list[0].Name != "number" {
		t.Errorf("list: %+v", o)
	}
	for _, name := range []string{"text", "object"} {
		if !strings.Contains(o.stderr, strconv.Quote(name)) {
			t.Errorf("list: %s", o.stderr)
		}
	}
	for _, c := range []struct {
		name, says string
		want       error
	}{
		{"text", `"text"`, file.ErrType},
		{"object", `"object"`, file.ErrType},
		{"none", `"none"`, matrix.ErrName},
	} {
		f := &archive{app: &app{progress: &progress{bar: silent}}, path: in}
		err := f.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.find(t.Context(), c.name)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		f.close()
	}
}
