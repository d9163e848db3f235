// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// PageTimeout is how long a page may live unless [Browser.OpenFor] says otherwise.
const PageTimeout = 2 * time.Minute

// Page is a tab. What it writes to its console goes to the test's log.
type Page struct {
	t     testing.TB
	ctx   context.Context // the tab, see Browser.ctx
	end   context.CancelCauseFunc
	relay sync.WaitGroup
}

var errCrashed = errors.New("the page has crashed")

// Open opens a tab, goes to the address and waits until the page has loaded. The tab closes when t ends.
func (b *Browser) Open(t testing.TB, url string) *Page {
	t.Helper()
	p := b.tab(t, PageTimeout)
	p.Go(url)
	return p
}

// OpenFor is Open with another timeout.
func (b *Browser) OpenFor(t testing.TB, timeout time.Duration, url string) *Page {
	t.Helper()
	p := b.tab(t, timeout)
	p.Go(url)
	return p
}

func (b *Browser) tab(t testing.TB, timeout time.Duration) *Page {
	t.Helper()
	tab, closeTab := chromedp.NewContext(b.ctx)
	if err := chromedp.Do(tab); err != nil {
		closeTab()
		t.Fatalf("chrome: new tab: %v", err)
	}
	timed, cancel := context.WithTimeout(tab, timeout)
	ctx, end := context.WithCancelCause(timed)
	p := &Page{t: t, ctx: ctx, end: end}
	t.Cleanup(func() {
		end(nil)
		cancel()
		p.relay.Wait() // nobody may log after the end of the test
		closeTab()
	})
	p.log()
	return p
}

// log relays the console, and ends the page's context when its renderer crashes, which would otherwise look like a hang.
func (p *Page) log() {
	messages := chromedp.Console(p.ctx)
	crashes := chromedp.Events(p.ctx, inspector.TargetCrashed)
	p.relay.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.t.Log("console: " + m.String())
		}
	})
	p.relay.Go(func() {
		for _, err := range crashes {
			if err == nil {
				p.end(errCrashed)
			}
		}
	})
}

// why adds to an error why the page has ended, if it has.
func (p *Page) why(err error) error {
	if cause := context.Cause(p.ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// Go navigates and waits until the page has loaded.
func (p *Page) Go(url string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(url)); err != nil {
		p.t.Fatalf("chrome: %s: %v", url, p.why(err))
	}
}

// RequireWebGPU fails the test unless the page can get a WebGPU adapter, and logs which.
func (p *Page) RequireWebGPU() {
	p.t.Helper()
	const js = `navigator.gpu ? navigator.gpu.requestAdapter().then(a => a ? a.info.vendor + ' ' + a.info.architecture : '') : ''`
	name := Eval[string](p, js)
	if name == "" {
		p.t.Fatal("chrome: the browser has no WebGPU adapter; it must be Chromium 121 or later, started with SwiftShader " +
			"(Debian: the package chromium brings it)")
	}
	p.t.Log("WebGPU adapter: " + name)
}

// Eval evaluates JavaScript in the page and decodes the result. A promise is awaited. An exception fails the test.
func Eval[T any](p *Page, js string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("chrome: evaluating %.200s: %v", js, p.why(err))
	}
	return v
}

// Screenshot saves what the page shows as e2e/artifacts/name.png and returns the path.
func (p *Page) Screenshot(name string) string {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("chrome: screenshot %s: %v", name, p.why(err))
	}
	path := filepath.Join(root(p.t), "e2e", "artifacts", name+".png")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatalf("chrome: screenshot %s: %v", name, err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		p.t.Fatalf("chrome: screenshot %s: %v", name, err)
	}
	return path
}

// messages makes name a function of the page, in every document that it loads, and returns what it is called with.
func (p *Page) messages(name string) <-chan string {
	p.t.Helper()
	calls := chromedp.Events(p.ctx, runtime.BindingCalled)
	add := func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, runtime.AddBinding, runtime.AddBindingParams{Name: name})
		return err
	}
	if err := chromedp.Do(p.ctx, chromedp.Func(add)); err != nil {
		p.t.Fatalf("chrome: adding %s: %v", name, err)
	}
	out := make(chan string)
	p.relay.Go(func() {
		defer close(out)
		for c, err := range calls {
			if err != nil {
				return
			}
			if c.Name != name {
				continue
			}
			select {
			case out <- c.Payload:
			case <-p.ctx.Done():
				return
			}
		}
	})
	return out
}

// root is the folder of the module that the test belongs to.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("chrome: %v", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			t.Fatalf("chrome: no go.mod above %s", dir)
		}
	}
}
