// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
)

// TestStreamed evaluates over mapped files on a device without room for the operands or the result: with the progress in per cent, and
// until the context ends, which leaves no file.
func TestStreamed(t *testing.T) {
	defer func(old int64) { mapped = old }(mapped)
	mapped = 1 << 10
	const n = 200
	v := make([]float32, n*n)
	for i := range v {
		v[i] = float32(i%7) - 3
	}
	a, out := floats(t, n, n, v...), filepath.Join(t.TempDir(), "out.npy")
	run := func(ctx context.Context, x string) (*lockedBuffer, error) {
		var drawn lockedBuffer
		task := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}, progress: startProgress(&drawn, 0), options: []gpu.Option{gpu.WithMemory(40 << 10)}}
		defer task.close()
		root := task.root()
		root.SetArgs([]string{"eval", x, "-i", "A=" + a, "-o", out, "--driver", "simd"})
		return &drawn, root.ExecuteContext(ctx)
	}
	drawn, err := run(t.Context(), "A*A - A")
	if err != nil {
		t.Fatal(err)
	}
	drawn.wait(t, "computing  50%")
	must(t, "eval", "A*A - A", "-i", "A="+a, "-o", out+".npy", "--driver", "cpu")
	_, got := read[float32](t, out)
	if _, want := read[float32](t, out+".npy"); !slices.Equal(got, want) {
		t.Error("the result is wrong")
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, "A*A"); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}
