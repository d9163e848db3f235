// SPDX-License-Identifier: Apache-2.0

package params_test

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// refusal is a file that must not be read, the kind of error and the first wrong byte. Where the size of the file is
// unknown the error may come only with its end: then stream says where.
type refusal struct {
	file      string
	err       error
	offset    int64
	stream    int64 // 0: as offset
	streamErr error // nil: as err
}

// TestRefused has a row for everything that a loader of TVM or CVM rejects, and for what they accept although it is wrong.
func TestRefused(t *testing.T) {
	const at = 24 + 9 + 8 // the tensor's header
	one := func(code, data string, shape ...int64) string { return list("s") + tensor(code, data, shape...) }
	patch := func(offset int, with string) string {
		return annotated[:offset] + with + annotated[offset+len(with):]
	}
	long := func(code string, size uint64, shape ...int64) string {
		return list("s") + head(code, shape...) + u64(size) + "data"
	}
	end := func(s string) int64 { return int64(len(s)) }
	wrapped := long(int8Code, 4, 1<<62+1, 4)
	for name, c := range map[string]refusal{
		// What the references reject, in reading order.
		"nothing":                   {"", file.ErrTruncated, 0, 0, nil},
		"less than 8 bytes":         {listMagic[:7], file.ErrTruncated, 7, 0, nil},
		"list magic":                {patch(3, "?"), file.ErrFormat, 3, 0, nil},
		"list magic, short":         {"\xb7\x9d", file.ErrFormat, 1, 0, nil},
		"no count":                  {annotated[:20], file.ErrTruncated, 20, 0, nil},
		"names truncated":           {annotated[:28], file.ErrTruncated, 16, 28, nil},
		"name truncated":            {list("name")[:34], file.ErrTruncated, 24, 34, nil},
		"more tensors than names":   {patch(33, "\x02"), file.ErrFormat, 33, 0, nil},
		"more names than tensors":   {patch(33, "\x00"), file.ErrFormat, 33, 0, nil},
		"no count of tensors":       {annotated[:33], file.ErrTruncated, 33, 0, nil},
		"huge count of names":       {patch(16, "\x00\x00\x00\x00\x00\x01\x00\x00"), file.ErrTruncated, 16, 0, file.ErrTooLarge},
		"names beyond any file":     {patch(16, "\x00\x00\x00\x00\x00\x00\x00\x10"), file.ErrTruncated, 16, 0, nil},
		"largest count of names":    {patch(16, strings.Repeat("\xff", 8)), file.ErrTruncated, 16, 0, nil},
		"huge length of a name":     {patch(24, "\x00\x00\x00\x00\x00\x00\x00\x10"), file.ErrTruncated, 24, 0, file.ErrTooLarge},
		"largest length of a name":  {patch(24, strings.Repeat("\xff", 8)), file.ErrTruncated, 24, 0, nil},
		"no tensor":                 {annotated[:at], file.ErrTruncated, at, 0, nil},
		"tensor magic":              {patch(at+7, "?"), file.ErrFormat, at + 7, 0, nil},
		"tensor magic, short":       {annotated[:at+3], file.ErrTruncated, at + 3, 0, nil},
		"tensor cut":                {annotated[:at+30], file.ErrTruncated, at + 30, 0, nil},
		"device 2":                  {patch(at+16, "\x02"), file.ErrFormat, at + 16, 0, nil},
		"device 15":                 {patch(at+16, "\x0f"), file.ErrFormat, at + 16, 0, nil},
		"device -1":                 {patch(at+16, "\xff\xff\xff\xff"), file.ErrFormat, at + 16, 0, nil},
		"device 257":                {patch(at+16, "\x01\x01"), file.ErrFormat, at + 17, 0, nil},
		"-1 dimensions":             {patch(at+24, "\xff\xff\xff\xff"), file.ErrFormat, at + 24, 0, nil},
		"huge number of dimensions": {patch(at+24, "\xff\xff\xff\x7f"), file.ErrFormat, at + 24, 0, nil},
		"33 dimensions":             {one(int8Code, "x", slices.Repeat([]int64{1}, 33)...), file.ErrFormat, at + 24, 0, nil},
		"shape cut":                 {one(int8Code, "x", 1, 1, 1)[:at+40], file.ErrTruncated, at + 40, 0, nil},
		"no lanes":                  {patch(at+30, "\x00\x00"), file.ErrType, at + 30, 0, nil},
		"12 bits":                   {patch(at+29, "\x0c"), file.ErrType, at + 29, 0, nil},
		"24 bits":                   {patch(at+29, "\x18"), file.ErrType, at + 29, 0, nil},
		"no bits":                   {patch(at+29, "\x00"), file.ErrType, at + 29, 0, nil},
		"data's size too large":     {patch(at+32, "\x05"), file.ErrFormat, at + 32, 0, nil},
		"data's size too small":     {patch(at+32, "\x03"), file.ErrFormat, at + 32, 0, nil},
		"data's size negative":      {patch(at+39, "\x80"), file.ErrFormat, at + 39, 0, nil},
		"no data":                   {annotated[:at+40], file.ErrTruncated, at + 40, 0, nil},
		// What both accept although it is wrong.
		"data cut after the first byte": {annotated[:at+41], file.ErrTruncated, at + 41, 0, nil},
		"data cut before the last byte": {annotated[:at+43], file.ErrTruncated, at + 43, 0, nil},
		"two negative dimensions":       {one(int8Code, "xx", -1, -2), file.ErrFormat, at + 32, 0, nil},
		"product that wraps":            {wrapped, file.ErrFormat, at + 40, 0, nil},
		"product that wraps by bytes":   {long(float32Code, 4, 1<<62+1), file.ErrFormat, at + 32, 0, nil},
		"lanes 4 with a quarter":        {one("\x00\x08\x04\x00", "x", 1), file.ErrType, at + 30, 0, nil},
		// What CVM and old TVM write and nobody can load.
		"bool of size 0": {list("s") + head("\x01\x01\x01\x00", 3) + u64(0), file.ErrFormat, at + 40, 0, nil},
		// Our own.
		"negative beside none":        {one(int8Code, "", 0, -1), file.ErrFormat, at + 40, 0, nil},
		"lowest dimension":            {one(int8Code, "", math.MinInt64), file.ErrFormat, at + 32, 0, nil},
		"int1":                        {patch(at+28, "\x00\x01"), file.ErrType, at + 29, 0, nil},
		"int4":                        {patch(at+28, "\x00\x04"), file.ErrType, at + 29, 0, nil},
		"bool of one bit":             {patch(at+28, "\x06\x01"), file.ErrType, at + 29, 0, nil},
		"float6":                      {patch(at+28, "\x0f\x06"), file.ErrType, at + 29, 0, nil},
		"more data than a file holds": {long(int8Code, math.MaxInt64, math.MaxInt64), file.ErrTruncated, end(long(int8Code, 0, 0)), at + 40, file.ErrFormat},
		"more data than there are":    {long(int8Code, 1<<40, 1<<40), file.ErrTruncated, end(long(int8Code, 0, 0)), 0, nil},
		"MXNet":                       {"\x12\x01\x00\x00\x00\x00\x00\x00" + zero + u64(1), file.ErrFormat, 0, 0, nil},
		"zip":                         {"PK\x03\x04 and more", file.ErrFormat, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readString(c.file)
			wantError(t, err, c.err, c.offset)
			_, _, err = scan(strings.NewReader(c.file), params.Options{})
			wantError(t, err, c.err, c.offset)
			_, err = readStream(c.file)
			kind, offset := c.err, c.offset
			if c.stream != 0 {
				offset = c.stream
			}
			if c.streamErr != nil {
				kind = c.streamErr
			}
			wantError(t, err, kind, offset)
		})
	}
}

func TestMXNet(t *testing.T) {
	_, err := readString("\x12\x01\x00\x00\x00\x00\x00\x00 and more")
	if err == nil || !strings.Contains(err.Error(), "MXNet NDArray list") {
		t.Error(err)
	}
}

// TestSecond finds what is wrong in a later tensor.
func TestSecond(t *testing.T) {
	s := list("a", "b") + tensor(float32Code, "12345678", 2) + tensor("\x02\x20\x02\x00", "12345678", 2)
	r, err := params.NewReader(strings.NewReader(s), params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := r.Next(); err != nil || h.Name != "a" {
		t.Fatal(h, err)
	}
	for range 2 { // errors stay
		_, err = r.Next()
		wantError(t, err, file.ErrType, 24+9+9+8+56+30)
		if err == nil || !strings.Contains(err.Error(), `"b"`) || !strings.Contains(err.Error(), "float32x2") {
			t.Errorf("says too little: %v", err)
		}
	}
	_, err = r.Read(make([]byte, 1))
	wantError(t, err, file.ErrType, 136)
	_, err = r.Trailing()
	wantError(t, err, file.ErrType, 136)
}

// TestFailingReaders passes the errors of readers on, and those of readers that break their contract.
func TestFailingReaders(t *testing.T) {
	broken := errors.New("the cable is loose")
	for i := range annotated {
		r, err := params.NewReader(io.MultiReader(strings.NewReader(annotated[:i]), iotest.ErrReader(broken)), params.Options{})
		if err == nil {
			_, err = filetest.ReadAll(r)
		}
		wantError(t, err, broken, int64(i))
	}
	r, err := params.NewReader(io.MultiReader(strings.NewReader(annotated), iotest.ErrReader(broken)), params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filetest.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	_, err = r.Trailing()
	wantError(t, err, broken, 85)
	_, _, err = scan(io.MultiReader(strings.NewReader(annotated), iotest.ErrReader(broken)), params.Options{Strict: true})
	wantError(t, err, broken, 85)

	_, err = params.NewReader(count(0), params.Options{})
	wantError(t, err, io.ErrNoProgress, 0)
	for _, n := range []int{-1, math.MinInt, 1 << 30} {
		_, err = params.NewReader(count(n), params.Options{})
		wantError(t, err, fault.ErrInvalid, 0)
	}
	if _, err := params.NewReader(nil, params.Options{}); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
	var none params.Reader // an empty dictionary
	if _, err := none.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := none.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := none.Trailing(); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
}

// count is a reader that always says so many bytes.
type count int

func (c count) Read([]byte) (int, error) { return int(c), nil }

// TestMemoryLimit sends more names than the limit allows.
func TestMemoryLimit(t *testing.T) {
	const limit, each = 64 << 20, 1 << 20
	long := u64(each) + strings.Repeat("x", each-8)
	var names []io.Reader
	for i := range 70 {
		names = append(names, strings.NewReader(long+u64(uint64(i))))
	}
	start := strings.NewReader(listMagic + zero + u64(70))
	_, err := params.NewReader(io.MultiReader(start, io.MultiReader(names...)), params.Options{})
	wantError(t, err, file.ErrTooLarge, 24+63*(each+8))

	_, err = readString(listMagic + zero + u64(1) + u64(limit) + strings.Repeat("x", limit))
	wantError(t, err, file.ErrTooLarge, 24)

	one := u64(limit-100) + strings.Repeat("x", limit-100)
	s := listMagic + zero + u64(1) + one + u64(1) + tensor(int8Code, "?")
	if _, err := readString(s); err != nil {
		t.Error(err)
	}
}
