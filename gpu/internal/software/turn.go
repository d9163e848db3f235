// SPDX-License-Identifier: Apache-2.0

//go:build !js

package software

// nextTurn is for pages.
func nextTurn() <-chan struct{} { return nil }
