// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/params"
)

// sparse is a dictionary of equal tensors whose data are zeros that nobody stores. It counts what is read of it.
type sparse struct {
	list, head string
	data       int64 // of each tensor
	read       int64
}

func newSparse(tensors int, size int64) (*sparse, *io.SectionReader) {
	names := make([]string, tensors)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	s := &sparse{list: list(names...), head: head(int8Code, size) + u64(uint64(size)), data: size}
	return s, io.NewSectionReader(s, 0, int64(len(s.list))+int64(tensors)*(int64(len(s.head))+size))
}

func (s *sparse) ReadAt(b []byte, off int64) (int, error) {
	s.read += int64(len(b))
	for i := range b {
		switch p := off + int64(i); {
		case p < int64(len(s.list)):
			b[i] = s.list[p]
		default:
			b[i] = 0
			if p = (p - int64(len(s.list))) % (int64(len(s.head)) + s.data); p < int64(len(s.head)) {
				b[i] = s.head[p]
			}
		}
	}
	return len(b), nil
}

// TestSeek scans files of 8 GiB and of 1 TiB, of which only the headers are read.
func TestSeek(t *testing.T) {
	for _, c := range []struct {
		tensors int
		size    int64
	}{{8, 1 << 30}, {128, 8 << 30}, {1, 1 << 40}} {
		s, r := newSparse(c.tensors, c.size)
		headers, info, err := scan(r, params.Options{Strict: true})
		if err != nil || len(headers) != c.tensors || info.Size != r.Size() {
			t.Fatalf("%d headers, %+v, %v", len(headers), info, err)
		}
		last := headers[c.tensors-1]
		if last.Name != strconv.Itoa(c.tensors-1) || last.Size != c.size || last.Offset+c.size != r.Size() {
			t.Errorf("%+v", last)
		}
		if most := int64(c.tensors+1) * 8 << 10; s.read > most {
			t.Errorf("%d bytes read of %d, want at most %d", s.read, r.Size(), most)
		}
	}
	// A file that ends a byte early is found out although its data are not read.
	_, r := newSparse(8, 1<<30)
	short := io.NewSectionReader(r, 0, r.Size()-1)
	_, _, err := scan(short, params.Options{})
	wantError(t, err, file.ErrTruncated, short.Size())
}

// TestFile scans a file of the system, and reads from a pipe, which refuses to seek.
func TestFile(t *testing.T) {
	data := strings.Repeat("0123456789", 1000)
	s := list("a", "b") + strings.Repeat(tensor(int8Code, data, 10_000), 2)
	path := filepath.Join(t.TempDir(), "x.params")
	if err := os.WriteFile(path, []byte(s+"tail"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	headers, info, err := scan(f, params.Options{})
	if err != nil || len(headers) != 2 || info != (extent{Size: int64(len(s)), Trailing: 4}) {
		t.Errorf("%+v, %+v, %v", headers, info, err)
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	go func() {
		_, _ = pw.WriteString(s)
		_ = pw.Close()
	}()
	p, err := params.NewReader(pr, params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := filetest.ReadAll(p); err != nil || len(all) != 2 || string(all[1].Data) != data {
		t.Errorf("%d, %v", len(all), err)
	}
	if null, err := os.Open(os.DevNull); err == nil {
		_, _, err := scan(null, params.Options{})
		wantError(t, err, file.ErrTruncated, 0)
		_ = null.Close()
	}
}

// lame is a seeker that fails after so many calls.
type lame struct {
	*strings.Reader
	calls int
}

var errLame = errors.New("lame")

func (l *lame) Seek(offset int64, whence int) (int64, error) {
	if l.calls--; l.calls < 0 {
		return 0, errLame
	}
	return l.Reader.Seek(offset, whence)
}

// TestFailingSeek reads without a seeker that fails before it moved, and passes on the error of one that fails later.
func TestFailingSeek(t *testing.T) {
	s := list("a", "b") + strings.Repeat(tensor(int8Code, strings.Repeat("x", 10_000), 10_000), 2)
	for calls := range 2 {
		if _, info, err := scan(&lame{strings.NewReader(s), calls}, params.Options{}); err != nil || info.Size != int64(len(s)) {
			t.Error(calls, info, err)
		}
	}
	_, _, err := scan(&lame{strings.NewReader(s), 2}, params.Options{}) // it cannot go back
	wantError(t, err, errLame, 0)
	_, _, err = scan(&lame{strings.NewReader(s), 3}, params.Options{})
	wantError(t, err, errLame, int64(len(list("a", "b"))+48))
}
