// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/gpu"
)

// Read reads results that [Results.Write] wrote, perhaps on another machine with the same adapter. What is no such file is
// [gpu.ErrInvalid]; timings of another adapter or driver, or of other kernels than this program's, are [gpu.ErrUnsupported].
func Read(from io.Reader, i gpu.AdapterInfo) (*Results, error) {
	const op = "Read"
	if from == nil {
		return nil, fail(op, gpu.ErrInvalid, "no reader")
	}
	text, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	if err != nil {
		return nil, fail(op, gpu.ErrInvalid, err.Error())
	}
	return Parse(string(text), i)
}

// Parse is [Read] for a text.
func Parse(text string, i gpu.AdapterInfo) (*Results, error) {
	if len(text) > mostBytes {
		return nil, fail("Read", gpu.ErrInvalid, "more than ", mostBytes, " bytes")
	}
	p, r := &reader{text: text}, new(Results)
	p.results(r)
	if p.peek(); p.at < len(text) {
		p.stop("the text goes on after its }")
	}
	if p.err != nil {
		return nil, p.err
	}
	if err := r.Check(i); err != nil {
		return nil, err
	}
	for k := range r.Choices {
		r.Choices[k].Best, _ = r.Choices[k].decide()
	}
	return r, nil
}

// reader walks over a text of JSON. After an error nothing more is read. Package encoding/json, and a decoder of all of JSON, would take more of
// the program of a page than everything else that a tuner needs.
type reader struct {
	text  string
	at    int
	depth int
	err   error
}

// mostDepth is how deep values may be nested.
const mostDepth = 20

func (p *reader) stop(detail ...any) {
	if p.err == nil {
		p.err = fail("Read", gpu.ErrInvalid, append([]any{"byte ", p.at, ": "}, detail...)...)
	}
}

// peek returns the byte with which the next token begins, 0 at the end and after an error.
func (p *reader) peek() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.err != nil || p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// next reads a byte that has to be there.
func (p *reader) next(want byte) {
	if p.peek() != want {
		p.stop("expected a ", strconv.QuoteRune(rune(want)))
		return
	}
	p.at++
}

// several calls item for each of the values between two brackets, to read it.
func (p *reader) several(from, to byte, item func()) {
	p.next(from)
	if p.depth++; p.depth > mostDepth {
		p.stop("values nested too deep")
	}
	for first := true; p.err == nil && p.peek() != to; first = false {
		if !first {
			p.next(',')
		}
		item()
	}
	p.depth--
	p.next(to)
}

// object calls field for each key of an object, to read its value. A value that is not read is skipped.
func (p *reader) object(field func(key string)) {
	p.several('{', '}', func() {
		var key string
		p.string(&key)
		p.next(':')
		p.peek()
		before := p.at
		if field(key); p.at == before {
			p.skip()
		}
	})
}

func (p *reader) list(item func()) { p.several('[', ']', item) }

// skip reads any value.
func (p *reader) skip() {
	var text string
	switch p.peek() {
	case '{':
		p.object(func(string) {})
	case '[':
		p.list(p.skip)
	case '"':
		p.string(&text)
	default:
		if p.word() == "" {
			p.stop("expected a value")
		}
	}
}

// word reads a number, or true, false or null.
func (p *reader) word() string {
	p.peek()
	from := p.at
	for p.err == nil && p.at < len(p.text) && strings.IndexByte(",]}: \t\r\n\"[{", p.text[p.at]) < 0 {
		p.at++
	}
	return p.text[from:p.at]
}

func (p *reader) flag(to *bool) {
	word := p.word()
	if *to = word == "true"; !*to && word != "false" {
		p.stop("expected true or false")
	}
}

// number reads a whole number of so many bits.
func (p *reader) number(bits int) int64 {
	n, err := strconv.ParseInt(p.word(), 10, 64)
	if err != nil || n < 0 && bits < 63 || bits < 63 && n>>bits != 0 {
		p.stop("expected a whole number of ", bits, " bits")
	}
	return n
}

// string reads a text.
func (p *reader) string(to *string) {
	var text []byte
	for p.next('"'); p.err == nil; {
		switch c := p.byte(); {
		case c == '"':
			*to = string(text)
			return
		case c < ' ':
			p.stop("a text without an end, or with control characters")
		case c != '\\':
			text = append(text, c)
		default:
			text = p.escape(text)
		}
	}
}

// byte reads one within a text, 0 at the end.
func (p *reader) byte() (c byte) {
	if p.at < len(p.text) {
		c = p.text[p.at]
		p.at++
	}
	return c
}

// escape appends what stands behind a backslash.
func (p *reader) escape(text []byte) []byte {
	c := p.byte()
	if i := strings.IndexByte("\"\\/bfnrt", c); i >= 0 {
		return append(text, "\"\\/\b\f\n\r\t"[i])
	}
	if c != 'u' {
		p.stop("an unknown escape")
		return text
	}
	r := p.unit()
	if utf16.IsSurrogate(r) && strings.HasPrefix(p.text[p.at:], `\u`) {
		p.at += 2
		r = utf16.DecodeRune(r, p.unit())
	}
	return utf8.AppendRune(text, r)
}

// unit reads four hexadecimal digits.
func (p *reader) unit() rune {
	digits := p.text[p.at:min(p.at+4, len(p.text))]
	n, err := strconv.ParseUint(digits, 16, 16)
	if err != nil || len(digits) < 4 {
		p.stop("an unknown escape")
	}
	p.at += len(digits)
	return rune(n)
}

func (p *reader) results(r *Results) {
	p.object(func(key string) {
		switch key {
		case "version":
			r.Version = int(p.number(31))
		case "kernels":
			p.string(&r.Kernels)
		case "adapter":
			p.adapter(&r.Adapter)
		case "off":
			p.flag(&r.Off)
		case "choices":
			r.Choices = []Choice{}
			p.list(func() {
				var c Choice
				p.choice(&c)
				r.Choices = append(r.Choices, c)
			})
		}
	})
}

func (p *reader) adapter(a *Adapter) {
	texts := map[string]*string{"driver": &a.Driver, "name": &a.Name, "vendor": &a.Vendor, "backend": &a.Backend, "kind": &a.Kind}
	p.object(func(key string) {
		switch to := texts[key]; {
		case to != nil:
			p.string(to)
		case key == "max_invocations":
			a.MaxInvocations = uint32(p.number(32))
		case key == "max_workgroup_memory":
			a.MaxMemory = uint32(p.number(32))
		}
	})
}

func (p *reader) choice(c *Choice) {
	texts := map[string]*string{"family": &c.Family, "dtype": &c.DType, "shape": &c.Shape, "usual": &c.Usual, "best": &c.Best}
	p.object(func(key string) {
		switch to := texts[key]; {
		case to != nil:
			p.string(to)
		case key == "layout":
			c.Layout = uint8(p.number(8))
		case key == "log2":
			i := 0
			p.list(func() {
				if n := uint8(p.number(8)); i < len(c.Log2) {
					c.Log2[i] = n
				}
				i++
			})
		case key == "timings":
			p.list(func() {
				var t Timing
				p.timing(&t)
				c.Timings = append(c.Timings, t)
			})
		}
	})
}

func (p *reader) timing(t *Timing) {
	p.object(func(key string) {
		switch key {
		case "variant":
			p.string(&t.Variant)
		case "first_ns":
			t.First = p.number(63)
		case "ns":
			p.list(func() { t.Runs = append(t.Runs, p.number(63)) })
		case "wrong":
			p.flag(&t.Wrong)
		}
	})
}

// Write writes the results as JSON.
func (r *Results) Write(to io.Writer) error {
	const op = "Write"
	if r == nil || to == nil {
		return fail(op, gpu.ErrInvalid, "no results, or no writer")
	}
	if _, err := io.WriteString(to, r.Text()+"\n"); err != nil {
		return fail(op, gpu.ErrInvalid, err.Error())
	}
	return nil
}

// Text is what [Results.Write] writes, of nil results nothing.
func (r *Results) Text() string {
	w := &writer{}
	if r != nil {
		w.results(r)
	}
	return string(w.text)
}

// writer appends to a text.
type writer struct{ text []byte }

// add appends texts of JSON, and numbers, which are values.
func (w *writer) add(parts ...any) {
	for _, part := range parts {
		switch v := part.(type) {
		case string:
			w.text = append(w.text, v...)
		case int64:
			w.text = strconv.AppendInt(w.text, v, 10)
		case bool:
			w.text = strconv.AppendBool(w.text, v)
		}
	}
}

// fields appends keys with values that are texts.
func (w *writer) fields(pairs ...string) {
	for i, text := range pairs {
		if i%2 == 0 {
			w.add(`"`, text, `":`)
			continue
		}
		w.add(`"`)
		for _, r := range text { // of which some may be no characters
			if r < ' ' || r == '"' || r == '\\' {
				w.text = append(w.text, `\u00`...)
				w.text = append(w.text, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
				continue
			}
			w.text = utf8.AppendRune(w.text, r)
		}
		w.add(`",`)
	}
}

// list appends an array of so many values.
func (w *writer) list(count int, add func(i int)) {
	w.add("[")
	for i := range count {
		if i > 0 {
			w.add(",")
		}
		add(i)
	}
	w.add("]")
}

func (w *writer) results(r *Results) {
	a := &r.Adapter
	w.add(`{"version":`, int64(r.Version), ",")
	w.fields("kernels", r.Kernels)
	w.add(`"adapter":{`)
	w.fields("driver", a.Driver, "name", a.Name, "vendor", a.Vendor, "backend", a.Backend, "kind", a.Kind)
	w.add(`"max_invocations":`, int64(a.MaxInvocations), `,"max_workgroup_memory":`, int64(a.MaxMemory), `},"off":`, r.Off, `,"choices":`)
	w.list(len(r.Choices), func(i int) { w.choice(&r.Choices[i]) })
	w.add("}")
}

func (w *writer) choice(c *Choice) {
	w.add("{")
	w.fields("family", c.Family, "dtype", c.DType)
	w.add(`"layout":`, int64(c.Layout), `,"log2":`)
	w.list(len(c.Log2), func(i int) { w.add(int64(c.Log2[i])) })
	w.add(",")
	w.fields("shape", c.Shape, "usual", c.Usual, "best", c.Best)
	w.add(`"timings":`)
	w.list(len(c.Timings), func(i int) {
		t := &c.Timings[i]
		w.add("{")
		w.fields("variant", t.Variant)
		w.add(`"first_ns":`, t.First, `,"ns":`)
		w.list(len(t.Runs), func(i int) { w.add(t.Runs[i]) })
		w.add(`,"wrong":`, t.Wrong, "}")
	})
	w.add("}")
}
