// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"bytes"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

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
	switch {
	case err != nil:
		return nil, fail(op, gpu.ErrInvalid, err.Error())
	case len(text) > mostBytes:
		return nil, fail(op, gpu.ErrInvalid, "more than ", mostBytes, " bytes")
	}
	p, r := &reader{in: jsontext.NewDecoder(bytes.NewBuffer(text))}, new(Results)
	p.results(r)
	if rest := text[p.in.InputOffset():]; p.err == nil && len(bytes.TrimSpace(rest)) > 0 {
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

// reader walks over a text token by token. After an error nothing more is read. Package encoding/json would be a tenth of the program of a
// page.
type reader struct {
	in  *jsontext.Decoder
	err error
}

func (p *reader) stop(detail ...any) {
	if p.err == nil {
		p.err = fail("Read", gpu.ErrInvalid, append([]any{"byte ", p.in.InputOffset(), ": "}, detail...)...)
	}
}

// next reads a token of a kind and returns its text.
func (p *reader) next(kind jsontext.Kind) string {
	if p.err != nil {
		return ""
	}
	t, err := p.in.ReadToken()
	switch {
	case err != nil:
		p.stop(err.Error())
	case t.Kind() != kind:
		p.stop("expected a ", kind.String())
	default:
		return t.String()
	}
	return ""
}

// object calls field for each key of an object, to read its value. A value that is not read is skipped.
func (p *reader) object(field func(key string)) {
	p.next('{')
	for p.err == nil && p.in.PeekKind() != '}' {
		key := p.next('"')
		before := p.in.InputOffset()
		if field(key); p.err == nil && p.in.InputOffset() == before {
			if err := p.in.SkipValue(); err != nil {
				p.stop(err.Error())
			}
		}
	}
	p.next('}')
}

// list calls item for each element of an array, to read it.
func (p *reader) list(item func()) {
	p.next('[')
	for p.err == nil && p.in.PeekKind() != ']' {
		item()
	}
	p.next(']')
}

func (p *reader) text(to *string) { *to = p.next('"') }

func (p *reader) flag(to *bool) {
	if p.err != nil {
		return
	}
	t, err := p.in.ReadToken()
	switch {
	case err != nil:
		p.stop(err.Error())
	case t.Kind() != 't' && t.Kind() != 'f':
		p.stop("expected true or false")
	default:
		*to = t.Kind() == 't'
	}
}

// number reads a whole number of so many bits.
func (p *reader) number(bits int) int64 {
	n, err := strconv.ParseInt(p.next('0'), 10, bits+1)
	if err != nil || n < 0 && bits < 63 {
		p.stop("no number of ", bits, " bits")
	}
	return n
}

func (p *reader) results(r *Results) {
	p.object(func(key string) {
		switch key {
		case "version":
			r.Version = int(p.number(31))
		case "kernels":
			p.text(&r.Kernels)
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
			p.text(to)
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
			p.text(to)
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
			p.text(&t.Variant)
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
	w := &writer{}
	w.results(r)
	if w.err == nil {
		_, w.err = to.Write(append(w.text, '\n'))
	}
	if w.err != nil {
		return fail(op, gpu.ErrInvalid, w.err.Error())
	}
	return nil
}

// writer appends to a text.
type writer struct {
	text []byte
	err  error
}

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
		var err error
		if w.text, err = jsontext.AppendQuote(w.text, text); w.err == nil {
			w.err = err
		}
		w.add(",")
	}
}

// listed appends an array.
func listed[T any](w *writer, list []T, add func(v *T)) {
	w.add("[")
	for i := range list {
		if i > 0 {
			w.add(",")
		}
		add(&list[i])
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
	listed(w, r.Choices, w.choice)
	w.add("}")
}

func (w *writer) choice(c *Choice) {
	w.add("{")
	w.fields("family", c.Family, "dtype", c.DType)
	w.add(`"layout":`, int64(c.Layout), `,"log2":`)
	listed(w, c.Log2[:], func(n *uint8) { w.add(int64(*n)) })
	w.add(",")
	w.fields("shape", c.Shape, "usual", c.Usual, "best", c.Best)
	w.add(`"timings":`)
	listed(w, c.Timings, func(t *Timing) {
		w.add("{")
		w.fields("variant", t.Variant)
		w.add(`"first_ns":`, t.First, `,"ns":`)
		listed(w, t.Runs, func(ns *int64) { w.add(*ns) })
		w.add(`,"wrong":`, t.Wrong, "}")
	})
	w.add("}")
}
