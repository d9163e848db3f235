// SPDX-License-Identifier: Apache-2.0

package mapfile_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/mapfile"
)

// A file with eight bytes of header and the 2x3 matrix {1 2 3; 4 5 6} is doubled where it lies.
func Example() {
	path := filepath.Join(os.TempDir(), "sublet-example")
	contents := append([]byte("matrix\x02\x03"), bytesOf([]float32{1, 2, 3, 4, 5, 6})...)
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.Remove(path) }()
	if err := double(context.Background(), path); err != nil {
		log.Fatal(err)
	}
	b, err := os.ReadFile(path)
	doubled := string(b[8:]) == string(bytesOf([]float32{2, 4, 6, 8, 10, 12}))
	fmt.Printf("%s, doubled in the file: %v %v\n", b[:6], doubled, err)
	// Output:
	// [2 4 6 8 10 12] <nil>
	// matrix, doubled in the file: true <nil>
}

func double(ctx context.Context, path string) (err error) {
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu")) // leave the option out to get the best one
	if err != nil {
		return err
	}
	defer dev.Close()

	f, err := mapfile.OpenWritable(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, err := mapfile.Wrap[float32](dev, f, 8, 2, 3)
	if err != nil {
		return err
	}
	defer m.Close()

	if err := m.Assign(matrix.Scale(2, m)); err != nil {
		return err
	}
	if err := m.Sync(ctx); err != nil {
		return err
	}
	fmt.Println(m.Read(ctx))
	return f.Flush()
}
