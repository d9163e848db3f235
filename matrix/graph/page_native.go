// SPDX-License-Identifier: Apache-2.0

//go:build !js

package graph

// pageTurn is for pages, which share the program's thread.
type pageTurn struct{}

func (pageTurn) due(*Graph) bool { return false }
