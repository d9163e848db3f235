// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// axe is axe-core, which finds what keeps people from using a page: too little contrast, fields without names, and so on.
var axe = filepath.Join("..", "web", "node_modules", "axe-core", "axe.min.js")

// TestPagesLooks opens every page of the npm package as it comes, on the CPU.
func TestPagesLooks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(dist, "*.html"))
	if err != nil || len(pages) < 4 {
		t.Fatalf("%v, %v", pages, err)
	}
	for _, path := range pages {
		name := strings.TrimSuffix(filepath.Base(path), ".html")
		t.Run(name, func(t *testing.T) {
			p := openDemoOn(t, "/"+name+".html", "the CPU", 1280, 900)
			checkLooks(t, p, name)
		})
	}
}

// checkLooks fails where axe-core finds anything serious on a page as wide as a phone or a desktop, in light or dark colours, or where
// the page is wider than the window or has no link to npm, to the source or to its code. It keeps a screenshot of each as name-width-scheme.png.
func checkLooks(t *testing.T, p *chrome.Page, name string) {
	t.Helper()
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Fatalf("%v; npm ci in web installs it", err)
	}
	chrome.Eval[bool](p, string(script)+";true")
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			p.Prefer("prefers-color-scheme", scheme)
			p.Resize(width, 900)
			what := name + "-" + strconv.FormatInt(width, 10) + "-" + scheme
			for _, found := range chrome.Eval[[]string](p, `axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations
				.filter(({impact}) => impact === 'serious' || impact === 'critical')
				.flatMap(({id, nodes}) => nodes.map(({target, failureSummary}) => id + ': ' + target.join(' ') + ': ' + failureSummary)))`) {
				t.Errorf("%s: %s", what, found)
			}
			if wide := chrome.Eval[int64](p, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s: the page is %d pixels wide", what, wide)
			}
			p.Resize(width, min(4000, chrome.Eval[int64](p, "document.documentElement.scrollHeight")))
			p.Screenshot(what)
		}
	}
	links := chrome.Eval[string](p, "[...document.querySelectorAll('footer .links a')].map((a) => a.href).join(' ')")
	for _, want := range []string{"https://www.npmjs.com/package/sublet", "https://github.com/sublet-gpu/sublet", "/blob/main/web/demo/"} {
		if !strings.Contains(links, want) {
			t.Errorf("%s: no link to %s among %s", name, want, links)
		}
	}
	p.Prefer("prefers-color-scheme", "light")
	p.Resize(1280, 900)
}
