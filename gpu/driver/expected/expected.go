// SPDX-License-Identifier: Apache-2.0

// Package expected is the one table of the cases of the conformance suite, package gpu/gputest, that drivers are known to fail. The suite runs these cases, too, and fails if one of them passes, so that the table stays true.
package expected

import (
	"runtime"
	"strings"
)

// Failure is a case that a driver fails.
type Failure struct {
	Driver   string // the driver's name
	Platform string // as in "windows/amd64"; "" is every platform
	Case     string // the name of a case, or how the names of several begin
	Why      string
}

// For returns the failures of a driver that are expected on the platform of this program.
func For(driver string) []Failure { return on(runtime.GOOS+"/"+runtime.GOARCH, driver, table) }

func on(platform, driver string, table []Failure) []Failure {
	var list []Failure
	for _, f := range table {
		if f.Driver == driver && (f.Platform == "" || f.Platform == platform) {
			list = append(list, f)
		}
	}
	return list
}

// Covers reports whether the case of this name is one of those that fail.
func (f Failure) Covers(name string) bool { return strings.HasPrefix(name, f.Case) }
