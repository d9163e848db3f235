// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tempPrefix begins the names of files that get another name when they are complete.
const tempPrefix = ".sublet-"

// createTemp makes such a file, and locks it as long as lock is open, where the system can. It removes what processes have left in the
// folder that ended in the middle.
func createTemp(dir string) (f, lock *os.File, err error) {
	list, _ := os.ReadDir(dir) // what cannot be listed keeps what was left
	for _, e := range list {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			removeLeft(filepath.Join(dir, e.Name()))
		}
	}
	for {
		name := filepath.Join(dir, tempPrefix+strconv.FormatUint(rand.Uint64(), 36))
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			return nil, nil, err
		}
		if lock, err = hold(name); !errors.Is(err, errHeld) && !errors.Is(err, fs.ErrNotExist) {
			return f, lock, nil
		}
		_ = f.Close() // another process took it for one that was left, and removes it
	}
}

// removeLeft removes a file that no process holds. Where that cannot be known, a day has to have passed.
func removeLeft(name string) {
	st, err := os.Lstat(name)
	if err != nil || !st.Mode().IsRegular() {
		return
	}
	lock, err := hold(name)
	if err == nil || errors.Is(err, errors.ErrUnsupported) && time.Since(st.ModTime()) > 24*time.Hour {
		_ = os.Remove(name) // it may be somebody else's
	}
	_ = lock.Close() // nil is an error
}

var errHeld = errors.New("held by a process")
