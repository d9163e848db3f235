// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && sublet_page

package browser

import "context"

// provideHelper does nothing: with the tag sublet_page the page brings the helper, always, as the npm package does. A program is
// then smaller by the copy of it.
func provideHelper(context.Context) {}
