// SPDX-License-Identifier: Apache-2.0

package matrix

// LimitSparseScratch makes products with long rows use so few bytes of temporary memory at a time, until restore is called.
func LimitSparseScratch(bytes int) (restore func()) {
	old := maxScratch
	maxScratch = bytes
	return func() { maxScratch = old }
}
