// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

// prepare writes all images of the archive as one matrix.
func prepare(archive, out string) error {
	d, err := mnist.Open(archive)
	if err != nil {
		return err
	}
	m := &matrix{len(d.Labels), mnist.Pixels, d.Images}
	fmt.Printf("%s: %d images of %d pixels\n", out, m.rows, m.cols)
	return m.save(out)
}
