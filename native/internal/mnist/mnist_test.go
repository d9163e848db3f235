// SPDX-License-Identifier: Apache-2.0

package mnist_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

type file struct{ name, text string }

// archive builds a package as the registry serves it.
func archive(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		if err := tw.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// digit returns a file of n images, each pixel of image i being i+1.
func digit(n int) string {
	var v []string
	for i := range n * mnist.Pixels {
		v = append(v, strconv.Itoa(i/mnist.Pixels+1))
	}
	return `{"data":[` + strings.Join(v, ",") + `]}`
}

func TestRead(t *testing.T) {
	d, err := mnist.Read(bytes.NewReader(archive(t,
		file{"package/src/digits/3.json", digit(2)}, file{"package/package.json", "{}"},
		file{"package/src/digits/README", "no JSON"}, file{"package/src/digits/0.json", digit(1)},
	)))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Labels, []uint8{3, 3, 0}) || len(d.Features) != 3*mnist.Pixels || d.Features[0] != 1 || d.Features[2*mnist.Pixels-1] != 2 {
		t.Errorf("%v, %d pixels", d.Labels, len(d.Features))
	}
}

func TestReadRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"no archive": []byte("no archive"),
		"no images":  archive(t, file{"package/package.json", "{}"}),
		"half image": archive(t, file{"package/src/digits/3.json", `{"data":[1,2,3]}`}),
		"no JSON":    archive(t, file{"package/src/digits/3.json", "data"}),
		"no digit":   archive(t, file{"package/src/digits/10.json", digit(1)}),
		"cut short":  archive(t, file{"package/src/digits/3.json", digit(1)})[:60],
	} {
		if _, err := mnist.Read(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOpenVerifies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mnist.tgz")
	if _, err := mnist.Open(path); err == nil {
		t.Error("no file was fine")
	}
	if err := os.WriteFile(path, archive(t, file{"package/src/digits/3.json", digit(1)}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := mnist.Open(path); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("an archive with another hash: %v", err)
	}
}
