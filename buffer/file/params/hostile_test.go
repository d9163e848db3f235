// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/params"
)

// try reads a file that may be anything: all of it, as a stream of unknown size, and its headers. It returns what was
// read, or nothing. What is read is held to save as the same file; an error is held to be one of a file.
func try(t testing.TB, s string) ([]entry, bool) {
	t.Helper()
	var all []entry
	var headers []file.Header
	var info extent
	var err, errStream, errScan error
	filetest.Frugal(t, func() {
		all, err = readString(s)
		_, errStream = readStream(s)
		headers, info, errScan = scan(strings.NewReader(s), params.Options{})
	})
	if (err == nil) != (errStream == nil) || (err == nil) != (errScan == nil) {
		t.Errorf("whole: %v, stream: %v, scan: %v", err, errStream, errScan)
	}
	for _, err := range []error{err, errStream, errScan} {
		filetest.Typed(t, err, len(s))
	}
	if err != nil {
		return nil, false
	}
	if len(headers) != len(all) || info.Size+info.Trailing != int64(len(s)) {
		t.Errorf("%d headers of %d, %+v of %d bytes", len(headers), len(all), info, len(s))
	}
	saved, err := write(all)
	if err != nil || saved != canonical(s, all)[:info.Size] {
		t.Fatalf("saved as %x: %v, want %x", saved, err, s)
	}
	if again, err := readString(saved, params.Options{Strict: true}); err != nil || !sameEntries(again, all) {
		t.Fatalf("read %+v, %v, want %+v", again, err, all)
	}
	return all, true
}

// canonical sets the fields that mean nothing to what is written there.
func canonical(s string, all []entry) string {
	b := []byte(s)
	clear(b[8:16])
	for _, e := range all {
		base := e.Offset - 40 - 8*int64(len(e.Shape))
		clear(b[base+8 : base+16])
		clear(b[base+20 : base+24])
	}
	return string(b)
}

// TestPrefixes reads every beginning of every sample. None is a dictionary.
func TestPrefixes(t *testing.T) {
	for name, s := range samples(t) {
		if _, ok := try(t, s); !ok {
			t.Errorf("%s: not read", name)
		}
		for b := range filetest.Prefixes([]byte(s)) {
			if all, ok := try(t, string(b)); ok {
				t.Errorf("%s: %d of %d bytes read as %+v", name, len(b), len(s), all)
			}
			if _, err := readString(string(b)); !errors.Is(err, file.ErrTruncated) {
				t.Errorf("%s, %d bytes: %v", name, len(b), err)
			}
		}
	}
}

// TestFlips turns every bit of every sample, and some bytes together.
func TestFlips(t *testing.T) {
	for name, s := range samples(t) {
		read, refused := 0, 0
		for b := range filetest.Flips([]byte(s)) {
			if _, ok := try(t, string(b)); ok {
				read++
			} else {
				refused++
			}
		}
		if refused == 0 || read == 0 { // a flip in data or in a reserved field does no harm
			t.Errorf("%s: %d read, %d refused", name, read, refused)
		}
	}
}

// TestClaims puts large numbers into every field that counts something.
func TestClaims(t *testing.T) {
	for _, s := range samples(t) {
		for i := 0; i+8 <= len(s); i++ {
			for _, n := range []uint64{1 << 63, 1<<63 - 1, 1<<64 - 1, 1 << 62, 1 << 40, 1 << 31, 1<<32 - 1, 100_000} {
				try(t, s[:i]+u64(n)+s[i+8:])
			}
		}
	}
}

// endless never stops sending.
type endless struct {
	start io.Reader
	fill  byte
}

func (e *endless) Read(b []byte) (int, error) {
	if n, err := e.start.Read(b); err == nil {
		return n, nil
	}
	for i := range b {
		b[i] = e.fill
	}
	return len(b), nil
}

// TestEndless reads dictionaries of more names than there is memory, and a name as long, from a source that would send
// them. The limit ends that.
func TestEndless(t *testing.T) {
	for name, start := range map[string]string{
		"a name":       listMagic + zero + u64(1) + u64(1<<40),
		"names":        listMagic + zero + u64(1<<40),
		"empty names":  listMagic + zero + u64(100_000),
		"larger names": listMagic + zero + u64(50_000) + u64(120<<20),
	} {
		var err error
		filetest.Frugal(t, func() {
			_, err = params.NewReader(&endless{start: strings.NewReader(start)}, params.Options{LastWins: true})
		})
		if name == "empty names" { // all the same, so that the last wins; then the count of tensors is not theirs
			wantError(t, err, file.ErrFormat, 24+8*100_000)
			continue
		}
		if !errors.Is(err, file.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
