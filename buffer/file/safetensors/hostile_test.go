// SPDX-License-Identifier: Apache-2.0

package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	oracle "github.com/nlpodyssey/safetensors"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	"github.com/sublet-gpu/sublet/internal/fault"
)

func TestDamaged(t *testing.T) {
	data := write(t, []tensor{
		filetest.New("a\u00e9", dtype.Float32, []byte("12345678"), 2, 1),
		filetest.New("none", dtype.BFloat16, nil, 0),
		filetest.New("b", dtype.Bool8, []byte{1}),
	}, 100, map[string]string{"k": "v"})
	try := func(b []byte) (err error) {
		t.Helper()
		frugal(t, func() {
			_, _, err = readAll(bytes.NewReader(b))
			typed(t, err, len(b))
			_, _, streamed := readAll(plain{bytes.NewReader(b)})
			typed(t, streamed, len(b))
			if (err == nil) != (streamed == nil) {
				t.Fatalf("%v, as a stream %v", err, streamed)
			}
		})
		return err
	}
	for b := range filetest.Prefixes(data) {
		if try(b) == nil {
			t.Errorf("%d of %d bytes are a whole file", len(b), len(data))
		}
	}
	for b := range filetest.Flips(data) {
		if try(b) == nil {
			if _, err := oracle.Deserialize(b); err != nil {
				t.Errorf("%q: the other implementation says %v", b, err)
			}
		}
	}
	if try(append(bytes.Clone(data), 0)) == nil {
		t.Error("a byte after the last tensor")
	}
}

func TestHostile(t *testing.T) {
	const ok = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`
	with := func(old, s string) string { return st(strings.Replace(ok, old, s, 1), "ab") }
	entry := func(begin, end string) string {
		return `{"dtype":"U8","shape":[2],"data_offsets":[` + begin + `,` + end + `]}`
	}
	length := func(n uint64, rest string) string {
		return string(binary.LittleEndian.AppendUint64(nil, n)) + rest
	}
	for name, c := range map[string]struct {
		data string
		want error
		at   int64 // -1: anywhere
	}{
		"empty":                {"", file.ErrTruncated, 0},
		"no length":            {"1234567", file.ErrTruncated, 7},
		"no header":            {length(2, ""), file.ErrTruncated, 8},
		"long header":          {length(100_000_001, "{}"), file.ErrTooLarge, 0},
		"longest header":       {length(100_000_000, "{}"), file.ErrTruncated, 10},
		"longest length":       {length(1<<64-1, "{}"), file.ErrTooLarge, 0},
		"header of nothing":    {length(0, "{}"), file.ErrFormat, 8},
		"space first":          {st(" {}", ""), file.ErrFormat, 8},
		"array":                {st("[]", ""), file.ErrFormat, 8},
		"open":                 {st("{", ""), file.ErrFormat, 9},
		"more":                 {st("{}{}", ""), file.ErrFormat, 10},
		"NUL after":            {st("{}\x00", ""), file.ErrFormat, 10},
		"data beyond":          {st(ok, "abc"), file.ErrFormat, int64(len(ok)) + 10},
		"data missing":         {st(ok, "a"), file.ErrTruncated, int64(len(ok)) + 9},
		"not UTF-8":            {with(`"a"`, "\"\xff\""), file.ErrFormat, 10},
		"not UTF-8 as text":    {with(`"a"`, `"\udc00"`), file.ErrFormat, -1},
		"half a pair":          {with(`"a"`, `"\ud800x"`), file.ErrFormat, -1},
		"half, then none":      {with(`"a"`, `"\ud800\u0041"`), file.ErrFormat, -1},
		"replaced":             {with(`"a"`, `"\\udc00\ufffd"`), nil, 0},
		"pair":                 {with(`"a"`, `"\ud83d\ude00\ufffd"`), nil, 0},
		"same name":            {st(`{"a":`+entry("0", "2")+`,"a":`+entry("2", "4")+`}`, "abcd"), file.ErrDuplicate, -1},
		"same name escaped":    {st(`{"a":`+entry("0", "2")+`,"\u0061":`+entry("2", "4")+`}`, "abcd"), file.ErrDuplicate, -1},
		"same key":             {with(`"shape"`, `"dtype":"U8","shape"`), file.ErrDuplicate, -1},
		"metadata twice":       {st(`{"__metadata__":{},"__metadata__":{}}`, ""), file.ErrDuplicate, -1},
		"metadata key twice":   {st(`{"__metadata__":{"a":"","a":""}}`, ""), file.ErrDuplicate, -1},
		"metadata of numbers":  {st(`{"__metadata__":{"a":1}}`, ""), file.ErrFormat, -1},
		"metadata of objects":  {st(`{"__metadata__":{"a":{}}}`, ""), file.ErrFormat, -1},
		"metadata null":        {st(`{"__metadata__":null}`, ""), file.ErrFormat, -1},
		"hole":                 {st(`{"a":`+entry("0", "2")+`,"b":`+entry("3", "5")+`}`, "abcde"), file.ErrFormat, -1},
		"hole in front":        {st(`{"a":`+entry("1", "3")+`}`, "abc"), file.ErrFormat, -1},
		"overlap":              {st(`{"a":`+entry("0", "2")+`,"b":`+entry("1", "3")+`}`, "abc"), file.ErrFormat, -1},
		"same bytes":           {st(`{"a":`+entry("0", "2")+`,"b":`+entry("0", "2")+`}`, "ab"), file.ErrFormat, -1},
		"backwards":            {with("[0,2]", "[2,0]"), file.ErrFormat, -1},
		"one offset":           {with("[0,2]", "[0]"), file.ErrFormat, -1},
		"three offsets":        {with("[0,2]", "[0,2,2]"), file.ErrTooLarge, -1},
		"negative offset":      {with("[0,2]", "[-2,0]"), file.ErrFormat, -1},
		"negative zero":        {with("[0,2]", "[-0,2]"), file.ErrFormat, -1},
		"fraction":             {with("[0,2]", "[0,2.0]"), file.ErrFormat, -1},
		"exponent":             {with("[0,2]", "[0,2e0]"), file.ErrFormat, -1},
		"offset of 64 bits":    {with("[0,2]", "[0,18446744073709551615]"), file.ErrFormat, -1},
		"offset as text":       {with("[0,2]", `[0,"2"]`), file.ErrFormat, -1},
		"offsets as object":    {with("[0,2]", `{"0":2}`), file.ErrFormat, -1},
		"size":                 {with("[2]", "[3]"), file.ErrFormat, -1},
		"size of type":         {with("U8", "U16"), file.ErrFormat, -1},
		"negative":             {with("[2]", "[-1,-2]"), file.ErrFormat, -1},
		"overflow":             {with("[2]", "[4294967297,4294967296,2]"), file.ErrFormat, -1},
		"wraps to 2":           {with("[2]", "[9223372036854775807,2,2]"), file.ErrFormat, -1},
		"petabytes":            {st(`{"a":{"dtype":"U8","shape":[1000000000000000],"data_offsets":[0,1000000000000000]}}`, "ab"), file.ErrTruncated, -1},
		"64-bit sum":           {st(`{"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}}`, "ab"), file.ErrTooLarge, -1},
		"65 dimensions":        {with("[2]", "["+strings.Repeat("1,", 64)+"2]"), file.ErrTooLarge, -1},
		"unknown type":         {with("U8", "F4"), file.ErrType, -1},
		"lower case":           {with("U8", "u8"), file.ErrType, -1},
		"type as number":       {with(`"U8"`, "8"), file.ErrFormat, -1},
		"unknown key":          {with(`"shape"`, `"strides":[1],"shape"`), file.ErrFormat, -1},
		"other case":           {with(`"shape"`, `"Shape"`), file.ErrFormat, -1},
		"no type":              {with(`"dtype":"U8",`, ""), file.ErrFormat, -1},
		"tensor as array":      {st(`{"a":[]}`, ""), file.ErrFormat, -1},
		"tensor null":          {st(`{"a":null}`, ""), file.ErrFormat, -1},
		"comma":                {st(`{"a":`+entry("0", "2")+`,}`, "ab"), file.ErrFormat, -1},
		"comment":              {st(`{/**/}`, ""), file.ErrFormat, -1},
		"deep":                 {st(`{"a":`+strings.Repeat("[", 1<<20), ""), file.ErrFormat, -1},
		"deep within a tensor": {st(`{"a":{"shape":`+strings.Repeat("[", 1<<20), ""), file.ErrFormat, -1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.data), plain{strings.NewReader(c.data)}} {
				frugal(t, func() {
					_, _, err := readAll(in)
					typed(t, err, len(c.data))
					if !errors.Is(err, c.want) {
						t.Fatalf("%v, want %v", err, c.want)
					}
					if e, ok := errors.AsType[*file.Error](err); ok && c.at >= 0 && e.Offset != c.at {
						t.Errorf("%v, want it at %d", err, c.at)
					}
				})
			}
		})
	}
}

func TestReaderSizes(t *testing.T) {
	data := st(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, "ab")
	size := len(data)
	for name, c := range map[string]struct {
		err, want error
	}{
		"no input": {second(safetensors.NewReader(nil)), fault.ErrInvalid},
		"right":    {second(safetensors.NewReader(sized{strings.NewReader(data), size})), nil},
		"shorter":  {second(safetensors.NewReader(sized{strings.NewReader(data), size - 1})), file.ErrTruncated},
		"longer":   {second(safetensors.NewReader(sized{strings.NewReader(data), size + 1})), file.ErrFormat},
		"short":    {second(safetensors.NewReader(sized{strings.NewReader(data), 1})), file.ErrTruncated},
		"more":     {second(safetensors.NewReader(sized{strings.NewReader(data + "more"), size})), nil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzSafetensors(f *testing.F) {
	// Small ones: the fuzzer takes minutes to find the smallest form of large ones.
	f.Add([]byte(st(`{"__metadata__":{"a":"b"}}`, "")))
	f.Add([]byte(st(`{"b":{"dtype":"F16","shape":[1],"data_offsets":[1,3]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}} `, "abc")))
	f.Add([]byte(st(`{"\ud83d\ude00":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}}`, "\x01")))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, metadata, err := readAll(bytes.NewReader(data))
		typed(t, err, len(data))
		_, _, streamed := readAll(plain{bytes.NewReader(data)})
		typed(t, streamed, len(data))
		if (err == nil) != (streamed == nil) {
			t.Fatalf("%v, as a stream %v", err, streamed)
		}
		if err != nil {
			return
		}
		again := write(t, got, 1<<10, metadata)
		back, _, err := readAll(bytes.NewReader(again))
		if err != nil {
			t.Fatal(err)
		}
		same(t, back, got, again)
	})
}
