// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
)

// BenchmarkRead reads 256 MiB of 64 tensors into memory that is there already. It reports the best speed beside
// the best of copying the same bytes from the same source in turn.
func BenchmarkRead(b *testing.B) {
	const tensors, size = 64, 4 << 20
	var headers []file.Header
	for i := range tensors {
		headers = append(headers, file.Header{Name: fmt.Sprint("layer", i), Type: dtype.Float32, Shape: []int64{size / 4}})
	}
	var whole bytes.Buffer
	w, err := params.NewWriter(&whole, headers, params.Options{})
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i)
	}
	for range tensors {
		if _, err := w.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "x.params")
	if err := os.WriteFile(path, whole.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	dst := bytes.Repeat([]byte{1}, whole.Len()) // the pages are there
	for name, src := range map[string]io.ReadSeeker{"memory": bytes.NewReader(whole.Bytes()), "file": f} {
		b.Run(name, func(b *testing.B) { compareRead(b, src, dst) })
	}
}

func compareRead(b *testing.B, src io.ReadSeeker, dst []byte) {
	b.Helper()
	rewind := func() {
		if _, err := src.Seek(0, io.SeekStart); err != nil {
			b.Fatal(err)
		}
	}
	read, copied := time.Hour, time.Hour
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		rewind()
		start := time.Now()
		readInto(b, src, dst)
		read = min(read, time.Since(start))
		b.StopTimer()
		rewind()
		start = time.Now()
		if _, err := io.ReadFull(src, dst); err != nil {
			b.Fatal(err)
		}
		copied = min(copied, time.Since(start))
		b.StartTimer()
	}
	b.ReportMetric(copied.Seconds()/read.Seconds(), "of-copy")
}

// readInto reads all tensors one behind the other.
func readInto(b *testing.B, src io.Reader, dst []byte) {
	b.Helper()
	r, err := params.NewReader(src, params.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(r, dst[:h.Size]); err != nil {
			b.Fatal(err)
		}
		dst = dst[h.Size:]
	}
}
