// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/tune/timing"
)

// Path is the file of an adapter: sublet/tune-HASH.json in the folder that [os.UserCacheDir] names.
func Path(i gpu.AdapterInfo) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fail("Path", gpu.ErrUnsupported, err.Error())
	}
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(timing.Describe(i)) // never fails
	return filepath.Join(dir, "sublet", "tune-"+strconv.FormatUint(h.Sum64(), 16)+".json"), nil
}

// Load reads the file of an adapter. Where there is none the results are empty. The errors are those of [Read].
func Load(i gpu.AdapterInfo) (*Results, error) {
	path, err := Path(i)
	if err != nil {
		return timing.Fresh(i), nil //nolint:nilerr // without a cache folder there is nothing to read
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return timing.Fresh(i), nil
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

// Save writes results to the file of their adapter, in place of what is there.
func Save(r *Results, i gpu.AdapterInfo) error {
	const op = "Save"
	if r == nil {
		return fail(op, gpu.ErrInvalid, "no results")
	}
	if err := r.Check(i); err != nil {
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
