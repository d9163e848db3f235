// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package calls

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
)

// stream makes readers and writers, which tell the truth or not.
func (c *caller) stream(t reflect.Type) (value, bool) {
	if t.Kind() != reflect.Interface || t.NumMethod() == 0 || ours(t) {
		return value{}, false
	}
	s := &stream{kind: c.IntN(10), text: pick(c, streams)}
	if !reflect.TypeOf(s).Implements(t) {
		return value{}, false
	}
	v := reflect.New(t).Elem()
	name := fmt.Sprintf("stream%d(%d bytes)", s.kind, len(s.text))
	n := c.IntN(6)
	if c.sane {
		n = max(n, 1+c.IntN(2))
	}
	switch n {
	case 0:
		return value{v, "nil"}, true
	case 1:
		v.Set(reflect.ValueOf(s))
	default:
		if buffer := reflect.ValueOf(bytes.NewBufferString(s.text)); buffer.Type().Implements(t) {
			v.Set(buffer)
			return value{v, name}, true
		}
		v.Set(reflect.ValueOf(bytes.NewReader([]byte(s.text))))
		c.ints = append(c.ints, len(s.text))
	}
	return value{v, name}, true
}

// stream is a reader and writer that does not keep to the rules.
type stream struct {
	kind int
	text string
	at   int
}

func (s *stream) Read(p []byte) (int, error) {
	if s.at++; s.at > 100 {
		return 0, errUser
	}
	switch s.kind {
	case 0:
		return 0, nil
	case 1:
		return len(p) + 1, nil
	case 2:
		return -1, nil
	case 3:
		return 0, errUser
	case 4:
		panic(userPanic)
	case 5:
		return copy(p[:min(1, len(p))], s.text[min(s.at, len(s.text)):]), nil
	}
	n := copy(p, s.text)
	s.text = s.text[n:]
	if s.text == "" {
		return n, io.EOF
	}
	return n, nil
}

func (s *stream) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(s.text)) {
		return 0, errUser
	}
	return (&stream{kind: s.kind, text: s.text[off:]}).Read(p)
}

func (s *stream) Write(p []byte) (int, error) {
	switch s.kind {
	case 0:
		return 0, nil
	case 1:
		return len(p) + 1, nil
	case 2:
		return -1, nil
	case 3:
		return 0, errUser
	case 4:
		panic(userPanic)
	case 5:
		return len(p) / 2, nil
	}
	return len(p), nil
}

func (s *stream) Seek(offset int64, _ int) (int64, error) {
	if s.kind < 5 {
		return -offset - 1, nil
	}
	return offset, nil
}
