// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
)

// version is that of the files, and the most bytes, choices, variants and runs that one may have.
const (
	version     = 1
	mostBytes   = 4 << 20
	mostChoices = 1000
	mostOthers  = 100
	mostTime    = int64(1e13) // ns
	mostName    = 200
)

// Path is the file of an adapter: sublet/tune-HASH.json in the folder that [os.UserCacheDir] names.
func Path(i gpu.AdapterInfo) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fail("Path", gpu.ErrUnsupported, err.Error())
	}
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(describe(i)) // never fails
	return filepath.Join(dir, "sublet", "tune-"+strconv.FormatUint(h.Sum64(), 16)+".json"), nil
}

// Load reads the file of an adapter. Where there is none the results are empty. The errors are those of [Read].
func Load(i gpu.AdapterInfo) (*Results, error) {
	path, err := Path(i)
	if err != nil {
		return fresh(i), nil //nolint:nilerr // without a cache folder there is nothing to read
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fresh(i), nil
	case err == nil && !info.Mode().IsRegular(): // a pipe would be waited for
		return nil, fail("Load", gpu.ErrInvalid, path, " is no file")
	case err != nil:
		return nil, fail("Load", gpu.ErrInvalid, err.Error())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fail("Load", gpu.ErrInvalid, err.Error())
	}
	defer func() { _ = f.Close() }() // it was only read
	return Read(f, i)
}

// fresh is results without timings.
func fresh(i gpu.AdapterInfo) *Results {
	return &Results{Version: version, Kernels: kernels.Checksum(), Adapter: describe(i), Choices: []Choice{}}
}

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
	r := new(Results)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fail(op, gpu.ErrInvalid, err.Error())
	}
	if err := r.check(i); err != nil {
		return nil, err
	}
	for k := range r.Choices {
		r.Choices[k].Best, _ = r.Choices[k].decide()
	}
	return r, nil
}

// Write writes the results as JSON.
func (r *Results) Write(to io.Writer) error {
	if r == nil || to == nil {
		return fail("Write", gpu.ErrInvalid, "no results, or no writer")
	}
	text, err := json.Marshal(r)
	if err == nil {
		_, err = to.Write(append(text, '\n'))
	}
	if err != nil {
		return fail("Write", gpu.ErrInvalid, err.Error())
	}
	return nil
}

// check tells why the results are not for an adapter.
func (r *Results) check(i gpu.AdapterInfo) error {
	const op = "Read"
	want := describe(i)
	switch {
	case r.Version != version:
		return fail(op, gpu.ErrUnsupported, "timings of version ", r.Version, ", not ", version)
	case r.Adapter != want:
		return fail(op, gpu.ErrUnsupported, "timings of ", fault.Short(r.Adapter.Name), " by ", fault.Short(r.Adapter.Driver), ", not of ", want.Name, " by ", want.Driver)
	case r.Kernels != kernels.Checksum():
		return fail(op, gpu.ErrUnsupported, "timings of other kernels; sublet tune times these")
	case len(r.Choices) > mostChoices:
		return fail(op, gpu.ErrInvalid, len(r.Choices), " choices, the most are ", mostChoices)
	}
	for k := range r.Choices {
		if c := &r.Choices[k]; !c.valid() {
			return fail(op, gpu.ErrInvalid, "choice ", k, " has no known family and type, or impossible timings")
		}
	}
	return nil
}

// valid reports whether a choice can be that of a tuner.
func (c *Choice) valid() bool {
	_, ok := c.class()
	names := []string{c.Shape, c.Usual, c.Best}
	for i := range c.Timings {
		t := &c.Timings[i]
		names = append(names, t.Variant)
		impossible := func(ns int64) bool { return ns <= 0 || ns > mostTime }
		if len(t.Runs) > mostOthers || t.First < 0 || t.First > mostTime || slices.ContainsFunc(t.Runs, impossible) {
			return false
		}
	}
	return ok && len(c.Timings) <= mostOthers && !slices.ContainsFunc(names, func(s string) bool { return len(s) > mostName })
}

// Save writes the results to the file of their adapter, in place of what is there.
func (r *Results) Save(i gpu.AdapterInfo) error {
	const op = "Save"
	if r == nil {
		return fail(op, gpu.ErrInvalid, "no results")
	}
	if err := r.check(i); err != nil {
		return err
	}
	path, err := Path(i)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fail(op, gpu.ErrInvalid, err.Error())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "tune-*.tmp") // renamed when it is complete: nobody reads half of it
	if err != nil {
		return fail(op, gpu.ErrInvalid, err.Error())
	}
	defer func() { _ = os.Remove(f.Name()) }() // which is not there any more if all went well
	if err = errors.Join(r.Write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fail(op, gpu.ErrInvalid, err.Error())
	}
	return nil
}
