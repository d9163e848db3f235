// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// runTask is what sublet run is to do.
type runTask struct {
	wgsl, entry string
	rang        cruncher.Range
	calls       int
	devices     []int // nil: all
	arrays      []arraySpec
	scalars     []cruncher.Param
	outputs     []input
	watch       bool
}

// arraySpec is what -a says of an array.
type arraySpec struct {
	name  string
	path  string // "": zeros
	typ   dtype.Type
	shape []int64

	words       map[string]bool // e and halo, where they are given, too
	items, halo int
}

// elemTypes are what arrays can hold.
var elemTypes = []dtype.Type{
	dtype.Float32, dtype.Int32, dtype.Uint32, dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16,
}

const elemWords = "float32, int32, uint32, int8, uint8, int16 and uint16"

func itoa(i int) string { return strconv.Itoa(i) }

func inFile(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }

// parse checks everything that needs no file and no device.
func (o *runOptions) parse(path string) (*runTask, error) {
	t := &runTask{wgsl: path, entry: o.entry, calls: o.calls, watch: o.watch}
	for _, n := range []struct {
		flag    string
		v, from int
	}{{"-l", o.local, 0}, {"--offset", o.offset, 0}, {"--calls", o.calls, 1}, {"--repeat", o.repeat, 1}, {"--pipeline", o.blobs, 1}} {
		if n.v < n.from {
			return nil, usagef("%s %d: want %d or more", n.flag, n.v, n.from)
		}
	}
	t.rang = cruncher.Range{Local: o.local, Offset: o.offset, Repeat: o.repeat, Blobs: o.blobs, SyncKernel: o.sync}
	if o.grid == "" {
		return nil, usagef("no range: give -g N, WxH or WxHxD")
	}
	grid, ok := dims(o.grid)
	if !ok || len(grid) > 3 || slices.Contains(grid, 0) {
		return nil, usagef("-g %s: want N, WxH or WxHxD", o.grid)
	}
	last := len(grid) - 1
	t.rang.Global, t.rang.Inner = grid[last], grid[:last]
	var err error
	if t.devices, err = parseDevices(o.devices); err != nil {
		return nil, err
	}
	if len(o.arrays) == 0 {
		return nil, usagef("no arrays: give at least one -a NAME=FILE.npy")
	}
	seen := map[string]bool{}
	for _, s := range o.arrays {
		spec, err := parseArray(s, seen)
		if err != nil {
			return nil, err
		}
		t.arrays = append(t.arrays, spec)
	}
	return t, t.parseRest(o, seen)
}

// parseRest adds scalars and outputs.
func (t *runTask) parseRest(o *runOptions, seen map[string]bool) error {
	for _, s := range o.scalars {
		p, err := parseScalar(s, seen)
		if err != nil {
			return err
		}
		t.scalars = append(t.scalars, p)
	}
	for _, s := range o.outputs {
		name, path, err := splitNamed("-o", "NAME=FILE.npy", s, map[string]bool{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(t.arrays, func(a arraySpec) bool { return a.name == name }) {
			return usagef("-o %s: there is no array %s", s, name)
		}
		if slices.ContainsFunc(t.outputs, func(i input) bool { return samePath(i.path, path) }) {
			return usagef("-o %s: %s is there already", s, path)
		}
		t.outputs = append(t.outputs, input{name, path})
	}
	return nil
}

// samePath reports whether two paths are one, however they are spelled.
func samePath(a, b string) bool {
	return a == b || a != standard && b != standard && filepath.Clean(a) == filepath.Clean(b)
}

// dims reads numbers with an x between.
func dims(s string) ([]int, bool) {
	var list []int
	for part := range strings.SplitSeq(s, "x") {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return nil, false
		}
		list = append(list, int(n))
	}
	return list, true
}

// maxDevices is what balancers take.
const maxDevices = 1024

func parseDevices(s string) ([]int, error) {
	if s == "all" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || len(list) == maxDevices {
			return nil, usagef("--devices %s: want all, or up to %d numbers with commas between", s, maxDevices)
		}
		list = append(list, int(n))
	}
	return list, nil
}

const arrayForm = "NAME=FILE.npy:FLAGS:e=K"

// parseArray reads what -a says. Of what stands between colons the words at the end are flags, the rest is the file.
func parseArray(s string, seen map[string]bool) (arraySpec, error) {
	name, rest, err := splitNamed("-a", arrayForm, s, seen)
	spec := arraySpec{name: name, words: map[string]bool{}, items: 1}
	if err != nil {
		return spec, err
	}
	for {
		at := strings.LastIndexByte(rest, ':')
		if at < 0 {
			break
		}
		known, err := spec.add(rest[:at], rest[at+1:])
		if err != nil {
			return spec, usagef("-a %s: %w", s, err)
		}
		if !known {
			break
		}
		rest = rest[:at]
	}
	source, wrong, more := rest, "", false
	if i := strings.Index(strings.ToLower(rest), ".npy:"); i >= 0 {
		source, wrong, more = rest[:i+len(".npy")], rest[i+len(".npy:"):], true
	} else if before, after, cut := strings.Cut(rest, ":"); isZeros(before) {
		spec.typ, spec.shape, _ = zeros(before)
		if !slices.Contains(elemTypes, spec.typ) {
			return spec, usagef("-a %s: %q has %w; those are %s", s, before, errType, elemWords)
		}
		source, wrong, more = "", after, cut
	}
	switch {
	case more:
		return spec, usagef("-a %s: %q is no flag; there are: %s, e=K, halo=K", s, wrong, strings.Join(flagWords, ", "))
	case source == "" && spec.shape == nil:
		return spec, usagef("-a %s: want %s", s, arrayForm)
	}
	spec.path = source
	return spec, spec.check(s)
}

var flagWords = []string{"read", "partial-read", "write", "write-all", "read-only", "write-only", "none", "packed", "atomic"}

// add takes words with commas between, unless one of them is none. No words at all are the flags of what can be told from a file's name.
func (a *arraySpec) add(before, list string) (known bool, err error) {
	if list == "" {
		return strings.HasSuffix(strings.ToLower(before), ".npy") || isZeros(before), nil
	}
	words := strings.Split(list, ",")
	for _, w := range words {
		if !slices.Contains(flagWords, w) && !strings.HasPrefix(w, "e=") && !strings.HasPrefix(w, "halo=") {
			return false, nil
		}
	}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			a.words[w] = true
			continue
		}
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || key == "e" && n == 0 {
			return false, fmt.Errorf("%s wants a whole number, e one above 0", key)
		}
		if a.words[key] {
			return false, fmt.Errorf("%s is there twice", key)
		}
		a.words[key] = true
		if key == "e" {
			a.items = int(n)
		} else {
			a.halo = int(n)
		}
	}
	return true, nil
}

func isZeros(s string) bool {
	_, _, ok := zeros(s)
	return ok
}

// zeros reads the type and shape of an array without a file, such as 640x480xfloat32. The type need not be one of kernels.
func zeros(s string) (typ dtype.Type, shape []int64, ok bool) {
	at := strings.LastIndexByte(s, 'x')
	if at < 0 {
		return typ, nil, false
	}
	typ, ok = dtype.Parse(s[at+1:])
	numbers, digits := dims(s[:at])
	for _, n := range numbers {
		shape = append(shape, int64(n))
	}
	return typ, shape, ok && digits
}

// contradictions are words that exclude each other.
var contradictions = [][2]string{
	{"none", "read"},
	{"none", "partial-read"},
	{"none", "write"},
	{"none", "write-all"},
	{"read-only", "write"},
	{"read-only", "write-all"},
	{"read-only", "write-only"},
	{"write-only", "read"},
	{"write-only", "partial-read"},
	{"packed", "atomic"},
}

func (a *arraySpec) check(s string) error {
	for _, c := range contradictions {
		if a.words[c[0]] && a.words[c[1]] {
			return usagef("-a %s: %s and %s exclude each other", s, c[0], c[1])
		}
	}
	return nil
}

// set sets an array's flags.
func (a *arraySpec) set(to *cruncher.Any) error {
	w, f := a.words, to.Flags()
	if w["read"] || w["partial-read"] || w["write"] || w["write-all"] || w["none"] {
		f.Read, f.PartialRead, f.Write, f.WriteAll = w["read"], w["partial-read"], w["write"] || w["write-all"], w["write-all"]
	}
	f.ReadOnly, f.WriteOnly = w["read-only"], w["write-only"]
	if w["packed"] {
		f.Mode = kernel.Packed
	}
	if w["atomic"] {
		f.Mode = kernel.Atomic
	}
	f.ElementsPerItem, f.Halo = a.items, a.halo
	return to.SetFlags(f)
}

// parseScalar reads what -s says.
func parseScalar(s string, seen map[string]bool) (cruncher.Param, error) {
	name, value, err := splitNamed("-s", "NAME=VALUE:TYPE", s, seen)
	if err != nil {
		return nil, err
	}
	value, typ, given := strings.Cut(value, ":")
	if !given {
		typ = "float32"
		if _, err := strconv.ParseInt(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			typ = "int32"
		}
	}
	var p cruncher.Param
	switch typ {
	case "float32":
		var v float64
		v, err = strconv.ParseFloat(value, 32)
		p = cruncher.NewScalar(name, float32(v))
	case "int32":
		var v int64
		v, err = strconv.ParseInt(value, 10, 32)
		p = cruncher.NewScalar(name, int32(v))
	case "uint32":
		var v uint64
		v, err = strconv.ParseUint(value, 10, 32)
		p = cruncher.NewScalar(name, uint32(v))
	default:
		return nil, usagef("-s %s: want float32, int32 or uint32 as the type", s)
	}
	if err != nil {
		return nil, usagef("-s %s: %q is no %s", s, value, typ)
	}
	return p, nil
}

// elements returns how many there are, if so many can be addressed.
func (a *arraySpec) elements() (int, bool) {
	n, bytes, ok := a.typ.Bytes(a.shape)
	return int(n), ok && bytes <= math.MaxInt
}
