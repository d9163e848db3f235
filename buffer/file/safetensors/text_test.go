// SPDX-License-Identifier: Apache-2.0

package safetensors_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/filetest"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
)

// nameOf reads a file whose only tensor has the name that a JSON text stands for.
func nameOf(text string) (string, error) {
	r, err := safetensors.NewReader(strings.NewReader(st(`{`+text+`:{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, "")))
	if err != nil {
		return "", err
	}
	h, err := r.Next()
	return h.Name, err
}

// TestTexts reads names as encoding/json does, but for halves of surrogate pairs, which that replaces.
func TestTexts(t *testing.T) {
	parts := []string{
		"a", `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0041`, `\u00e9`, `\uD83D\uDE00`, `\ufFfD`, "é", "😀", "\u2028", "\x7f", "/", `\u0000`,
		`\`, `\x`, `\u`, `\u12`, `\u12g4`, `\u+123`, `\ud800`, `\udc00`, `\ud800\u0041`, "\x00", "\n", "\t", "\x1f", `"`, "'",
	}
	random := rand.New(rand.NewPCG(1, 2))
	good := 0
	for range 20_000 {
		picked := make([]string, random.IntN(4))
		for i := range picked {
			picked[i] = parts[random.IntN(len(parts))]
		}
		text := `"` + strings.Join(picked, "") + `"`
		var want string
		valid := json.Unmarshal([]byte(text), &want) == nil
		half := strings.ContainsRune(want, utf8.RuneError) && !strings.Contains(text, `\ufFfD`)
		switch got, err := nameOf(text); {
		case !valid || half:
			if err == nil {
				t.Fatalf("%s is %q", text, got)
			}
			typed(t, err, 200)
		case err == nil:
			good++
			if got != want {
				t.Fatalf("%s is %q, want %q", text, got, want)
			}
		case !strings.Contains(text, `\ufFfD`): // beside it, a half is not told from it above
			t.Fatalf("%s: %v", text, err)
		}
	}
	if good < 1000 {
		t.Errorf("only %d names", good)
	}
}

// TestTextsWritten escapes what must be, and nothing else.
func TestTextsWritten(t *testing.T) {
	var all []rune
	for r := range rune(0x110) {
		all = append(all, r)
	}
	name := string(all) + "\u2028\u2029\ufffd<>&😀"
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, []file.Header{{Name: name, Type: dtype.Uint8, Shape: []int64{0}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	want := `{"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017` +
		`\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_` + "`ab"
	if !strings.HasPrefix(text[8:], want) || !strings.Contains(text, "\u2028\u2029\ufffd<>&😀\":{") {
		t.Errorf("%q", text)
	}
	var header map[string]any
	if err := json.Unmarshal(b.Bytes()[8:], &header); err != nil || header[name] == nil {
		t.Errorf("%v, %v", header, err)
	}
	r, err := safetensors.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := r.Next(); err != nil || h.Name != name {
		t.Errorf("%q, %v", h.Name, err)
	}
}

// TestLongHeader holds a header of 3 MB that is wrong at its end, and one of nothing but digits, to a few times its bytes.
func TestLongHeader(t *testing.T) {
	var many strings.Builder
	for i := range 50_000 {
		many.WriteString(`"layer.` + strconv.Itoa(i) + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`)
	}
	for name, header := range map[string]string{
		"many":   "{" + many.String() + "!",
		"digits": `{"a":{"shape":[` + strings.Repeat("1", 3<<20),
		"text":   `{"` + strings.Repeat("a", 3<<20),
		"spaces": "{" + strings.Repeat(" ", 3<<20),
	} {
		data := st(header, "")
		var err error
		used := filetest.Allocated(func() { _, err = safetensors.NewReader(strings.NewReader(data)) })
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		typed(t, err, len(data))
		if used > 12*uint64(len(data)) {
			t.Errorf("%s: %d bytes for %d", name, used, len(data))
		}
	}
}
