// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && !sublet_page

package browser

import (
	"context"
	_ "embed"
	"sync"
	"syscall/js"
)

//go:embed glue.js
var glueText string

// glue is the helper of this realm, installed when it is first wanted. Whether that works depends on the page alone, so
// it is tried once: every refusal by a Content-Security-Policy is reported to the page's owner.
var glue struct {
	mu    sync.Mutex
	tried bool
}

func init() { provideHelper = installHelper }

func installHelper(ctx context.Context) {
	glue.mu.Lock()
	defer glue.mu.Unlock()
	if glue.tried {
		return
	}
	ways := []func(context.Context){inlineScript, blobScript}
	if js.Global().Get("document").Type() != js.TypeObject {
		ways = []func(context.Context){importScript, evaluate}
	}
	for _, way := range ways {
		if try(ctx, way); ctx.Err() != nil || !presentHelper().IsUndefined() {
			return
		}
	}
	glue.tried = true
}

// try goes one way. One that fails says so by exceptions, by events or not at all; what counts is whether the helper is there.
func try(ctx context.Context, way func(context.Context)) {
	var failed error
	defer rescue("browser: helper", &failed)
	way(ctx)
}

// scriptElement makes a script element that carries the nonce of the page's own scripts, if they have one: with it a
// strict policy lets the script run.
func scriptElement() js.Value {
	document := js.Global().Get("document")
	script := document.Call("createElement", "script")
	if own := document.Call("querySelector", "script[nonce]"); own.Type() == js.TypeObject {
		script.Set("nonce", own.Get("nonce"))
	}
	return script
}

// inlineScript runs the helper as an inline script: at once, where the policy allows it.
func inlineScript(context.Context) {
	script := scriptElement()
	script.Set("textContent", glueText)
	js.Global().Get("document").Get("documentElement").Call("append", script)
	script.Call("remove")
}

// blobScript loads the helper as a script from a blob: address.
func blobScript(ctx context.Context) {
	url, revoke := blobURL()
	defer revoke()
	script := scriptElement()
	script.Set("src", url)
	defer script.Call("remove")
	_, _ = await(ctx, "browser: helper", nil, func(ticket int) error {
		script.Call("addEventListener", "load", settler(ticket, true))
		script.Call("addEventListener", "error", settler(ticket, false))
		js.Global().Get("document").Get("documentElement").Call("append", script)
		return nil
	})
}

// importScript loads the helper in a classic worker. In a module worker importScripts throws.
func importScript(context.Context) {
	url, revoke := blobURL()
	defer revoke()
	js.Global().Call("importScripts", url)
}

// evaluate runs the helper in a module worker, of which no policy forbids eval.
func evaluate(context.Context) { js.Global().Call("eval", glueText) }

// blobURL makes an address of the helper's text.
func blobURL() (url js.Value, revoke func()) {
	kind := map[string]any{"type": "text/javascript"}
	blob := js.Global().Get("Blob").New([]any{glueText}, kind)
	url = js.Global().Get("URL").Call("createObjectURL", blob)
	return url, func() { js.Global().Get("URL").Call("revokeObjectURL", url) }
}
