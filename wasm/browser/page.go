// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && sublet_page

package browser

import (
	"context"
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// With the tag sublet_page the page brings the helper, always, as the npm package does. A program is then smaller by the
// copy of it and by what does without.

func provideHelper(context.Context) (js.Value, error) {
	return js.Undefined(), fault.Fail("browser: Open", fault.ErrUnsupported, "the page has not loaded glue.js of this version")
}

func newDirect(*device) engine { return nil }
