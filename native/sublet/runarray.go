// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// runArray is an array of a run.
type runArray struct {
	name, path string            // without a path, zeros
	words      map[string]string // the flags, and the numbers of e and halo
	typ        dtype.Type
	shape      []int64

	file   *arrayFile // nil: zeros
	memory []byte
	*cruncher.Any
}

// elemTypes are what arrays can hold.
var elemTypes = []dtype.Type{
	dtype.Float32, dtype.Int32, dtype.Uint32, dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16,
}

const (
	elemWords = "float32, int32, uint32, int8, uint8, int16 and uint16"
	arrayForm = "NAME=FILE.npy:FLAGS:e=K"
	flagWords = "read, partial-read, write, write-all, read-only, write-only, none, packed, atomic, e=K, halo=K"
)

const flagPattern = `(?:read|partial-read|write|write-all|read-only|write-only|none|packed|atomic|e=0*[1-9]\d{0,8}|halo=\d{1,9})`

var (
	flagWord = regexp.MustCompile("^" + flagPattern + "$")
	// knownSource is where it is clear what is no flag: behind a name that ends with .npy, or behind zeros.
	knownSource = regexp.MustCompile(`^((?i:.*?\.npy)|[\dx]+x[a-z]\w*)((?::[^:]*)*)$`)
	otherSource = regexp.MustCompile(`^(.*?)((?::` + flagPattern + `(?:,` + flagPattern + `)*)*)$`)
)

// contradictions are words that exclude each other.
var contradictions = map[string]string{
	"none":       "read partial-read write write-all",
	"read-only":  "write write-all write-only",
	"write-only": "read partial-read",
	"packed":     "atomic",
}

// parseArray reads what -a says: a file or zeros, and lists of words behind colons, of which the first may be empty.
func parseArray(s string, seen map[string]bool) (*runArray, error) {
	n, err := splitNamed(arrayForm, s, seen)
	if err != nil {
		return nil, err
	}
	parts := knownSource.FindStringSubmatch(n.value)
	if parts == nil {
		parts = otherSource.FindStringSubmatch(n.value)
	}
	if parts == nil || parts[1] == "" {
		return nil, usagef("want %s", arrayForm)
	}
	a := &runArray{name: n.name, path: parts[1], words: map[string]string{}}
	if typ, shape, ok := zeros(a.path); ok {
		if !slices.Contains(elemTypes, typ) {
			return nil, usagef("%q has %w; those are %s", a.path, errType, elemWords)
		}
		a.path, a.typ, a.shape = "", typ, shape
	}
	list := strings.TrimPrefix(strings.TrimPrefix(parts[2], ":"), ":")
	for w := range strings.SplitSeq(strings.ReplaceAll(list, ":", ","), ",") {
		key, value, number := strings.Cut(w, "=")
		if list != "" && !flagWord.MatchString(w) || number && a.has(key) {
			return nil, usagef("%q is no flag, or there twice; there are: %s", w, flagWords)
		}
		a.words[key] = value
	}
	for word, others := range contradictions {
		for other := range strings.FieldsSeq(others) {
			if a.has(word) && a.has(other) {
				return nil, usagef("%s and %s exclude each other", word, other)
			}
		}
	}
	return a, nil
}

// zeros reads the type and shape of an array without a file, such as 640x480xfloat32. The type need not be one of kernels.
func zeros(s string) (typ dtype.Type, shape []int64, ok bool) {
	at := strings.LastIndexByte(s, 'x')
	if at < 0 {
		return typ, nil, false
	}
	typ, ok = dtype.Parse(s[at+1:])
	shape, digits := dims(s[:at])
	return typ, shape, ok && digits
}

// has reports whether one of the words is there.
func (a *runArray) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { _, ok := a.words[w]; return ok })
}

// open opens the file. What is wrong with it is found before a device is opened.
func (a *runArray) open(p *progress) (err error) {
	if a.path == "" {
		return nil
	}
	if a.file, err = openArray(a.path, p); err != nil {
		return err
	}
	a.typ, a.shape = a.file.Type, a.file.Shape
	if slices.Contains(elemTypes, a.typ) {
		return nil
	}
	advice := ""
	if len(a.shape) <= 2 && a.typ.Code != dtype.Complex64.Code {
		advice = "; sublet eval A -i A=" + a.path + " --cast -o OUT.npy converts to float32 and reports the largest relative change"
	}
	return fault.Fail(a.path, errType, "the file is ", a.typ.String(), "; those are ", elemWords, advice)
}

// load reads the elements, or makes zeros that the devices together could hold.
func (a *runArray) load(ctx context.Context, devices []*gpu.Device) (err error) {
	if a.file != nil {
		if a.memory, _, err = a.file.read(ctx, false); err != nil {
			return err
		}
	} else {
		room := uint64(0)
		for _, d := range devices {
			room += d.Info().Limits.MaxBufferSize
		}
		_, size, ok := a.typ.Bytes(a.shape)
		if !ok || uint64(size) > min(room, math.MaxInt) {
			return fault.Fail("array "+a.name, gpu.ErrLimit, fmt.Sprintf("%v of %v; the devices hold %d bytes", a.shape, a.typ, room))
		}
		a.memory = make([]byte, size)
	}
	if a.Any, err = cruncher.WrapHost(a.name, a.typ, gpu.HostBytes(a.memory), nil); err != nil {
		return err
	}
	f := a.Flags()
	if a.has("read", "partial-read", "write", "write-all", "none") {
		f.Read, f.PartialRead, f.Write, f.WriteAll = a.has("read"), a.has("partial-read"), a.has("write", "write-all"), a.has("write-all")
	}
	f.ReadOnly, f.WriteOnly = a.has("read-only"), a.has("write-only")
	if a.has("packed") {
		f.Mode = kernel.Packed
	} else if a.has("atomic") {
		f.Mode = kernel.Atomic
	}
	if f.ElementsPerItem = 1; a.has("e") {
		f.ElementsPerItem, _ = strconv.Atoi(a.words["e"]) // the pattern of flags has digits
	}
	f.Halo, _ = strconv.Atoi(a.words["halo"]) // 0 without one
	return a.SetFlags(f)
}

// write writes the array as it is in memory: in the order of the file that it came from.
func (a *runArray) write(out io.Writer) error {
	w, err := npy.NewWriter(out, npy.Header{Type: a.typ, Shape: a.shape, Fortran: a.file != nil && a.file.Fortran})
	if err != nil {
		return err
	}
	if _, err := w.Write(a.memory); err != nil {
		return err
	}
	return w.Close()
}
