// SPDX-License-Identifier: Apache-2.0

package command

import (
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
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// runArray is an array of a run.
type runArray struct {
	name   string
	words  map[string]string // the flags, and the numbers of e and halo
	*array                   // without a path, zeros
	param  *cruncher.Any
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
	// source is a file or zeros, and lists of flags. Behind a name that ends with .npy, and behind zeros, it is clear what is no name.
	source = regexp.MustCompile(`(?s)^(?:((?i:.*?\.npy)|[\dx]+x[a-z]\w*)((?::[^:]*)*)|` +
		`(.*?)((?::` + flagPattern + `(?:,` + flagPattern + `)*)*))$`)
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
	parts := source.FindStringSubmatch(n.value)
	a := &runArray{name: n.name, words: map[string]string{}, array: &array{path: parts[1] + parts[3]}}
	if a.path == "" {
		return nil, cli.Usagef("want %s", arrayForm)
	}
	if typ, shape, ok := zeros(a.path); ok {
		if !slices.Contains(elemTypes, typ) {
			return nil, cli.Usagef("%q has %w; those are %s", a.path, errType, elemWords)
		}
		a.path, a.Header = "", npy.Header{Type: typ, Shape: shape}
	}
	list := strings.TrimPrefix(strings.TrimPrefix(parts[2]+parts[4], ":"), ":")
	for w := range strings.SplitSeq(strings.ReplaceAll(list, ":", ","), ",") {
		key, value, number := strings.Cut(w, "=")
		if list != "" && !flagWord.MatchString(w) || number && a.has(key) {
			return nil, cli.Usagef("%q is no flag, or there twice; there are: %s", w, flagWords)
		}
		a.words[key] = value
	}
	for word, others := range contradictions {
		for other := range strings.FieldsSeq(others) {
			if a.has(word) && a.has(other) {
				return nil, cli.Usagef("%s and %s exclude each other", word, other)
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
	dims, digits := numbers(s[:at], "x")
	for _, n := range dims {
		shape = append(shape, int64(n))
	}
	return typ, shape, ok && digits
}

// has reports whether one of the words is there.
func (a *runArray) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { _, ok := a.words[w]; return ok })
}

// check judges a file by its header.
func (a *runArray) check(x *array) error {
	if slices.Contains(elemTypes, x.Type) {
		return nil
	}
	advice := ""
	if len(x.Shape) <= 2 && x.Type.Code != dtype.Complex64.Code {
		advice = "; sublet eval A -i A=" + x.path + " --cast -o OUT.npy converts to float32 and reports the largest relative change"
	}
	return fault.Fail(x.path, errType, "the file is ", x.Type.String(), "; those are ", elemWords, advice)
}

// wrap makes an array of kernels, of zeros if there was no file: as many as the devices together could hold.
func (a *runArray) wrap(devices []*gpu.Device) (err error) {
	if a.path == "" {
		capacity := uint64(0)
		for _, d := range devices {
			capacity += d.Info().Limits.MaxBufferSize
		}
		_, size, ok := a.Type.Bytes(a.Shape)
		if !ok || uint64(size) > min(capacity, math.MaxInt) {
			return fault.Fail("array "+a.name, gpu.ErrLimit, fmt.Sprintf("%v of %v; the devices hold %d bytes", a.Shape, a.Type, capacity))
		}
		a.data = make([]byte, size)
	}
	if a.param, err = cruncher.WrapHost(a.name, a.Type, gpu.HostBytes(a.data), nil); err != nil {
		return err
	}
	f := a.param.Flags()
	if a.has("read", "partial-read", "write", "write-all", "none") {
		f.Read, f.PartialRead, f.Write, f.WriteAll = a.has("read"), a.has("partial-read"), a.has("write", "write-all"), a.has("write-all")
	}
	f.ReadOnly, f.WriteOnly = a.has("read-only"), a.has("write-only")
	if a.has("packed") {
		f.Mode = kernel.Packed
	} else if a.has("atomic") {
		f.Mode = kernel.Atomic
	}
	f.ElementsPerItem, _ = strconv.Atoi(a.words["e"]) // 0, which is 1 element, without a number
	f.Halo, _ = strconv.Atoi(a.words["halo"])
	return a.param.SetFlags(f)
}

// write writes the array as it is in memory: in the order of the file that it came from.
func (a *runArray) write(out io.Writer) error {
	w, err := npy.NewWriter(out, a.Header)
	if err != nil {
		return err
	}
	if _, err := w.Write(a.data); err != nil {
		return err
	}
	return w.Close()
}
