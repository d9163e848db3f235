// SPDX-License-Identifier: Apache-2.0

//go:build !js

package software

// copierOf returns memory that is not Go's as what copies it, or nil.
func copierOf(foreign any) copier {
	c, _ := foreign.(copier)
	return c
}
