// SPDX-License-Identifier: Apache-2.0

//go:build !js

package chrome

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// result is a test of the program and what it printed.
type result struct {
	name     string
	action   string // pass, fail, skip; empty if it did not finish
	seconds  float64
	output   strings.Builder
	children []*result
}

// report replays what the program did as subtests of t.
func report(t *testing.T, pkg string, r *run) {
	t.Helper()
	tree, err := parse(t.Context(), r.out.String())
	if err != nil {
		t.Errorf("chrome: %v in\n%s", err, r.out.String())
	}
	for _, c := range tree.children {
		c.output.WriteString("took " + strconv.FormatFloat(c.seconds, 'f', 2, 64) + " s in the browser\n")
		t.Run(c.name, func(t *testing.T) { c.replay(t, r.end == "") })
	}
	// Panics and whatever else belongs to no test.
	for _, text := range []string{tree.output.String(), r.errs.String()} {
		if text = strings.TrimSpace(text); text != "" && text != "PASS" {
			t.Log(pkg + ":\n" + text)
		}
	}
	if len(tree.children) == 0 {
		t.Errorf("chrome: %s ran no test", pkg)
	}
	if r.end != "" {
		t.Errorf("chrome: %s: %s", pkg, r.end)
	}
}

// replay makes t what the test was in the browser. Benchmarks do not tell how they end; they are well if the program is.
func (r *result) replay(t *testing.T, well bool) {
	_, _ = io.WriteString(t.Output(), r.output.String())
	for _, c := range r.children {
		t.Run(c.name, func(t *testing.T) { c.replay(t, well) })
	}
	switch {
	case r.action == "fail":
		t.Fail()
	case r.action == "skip":
		t.Error("skipped in the browser")
	case r.action == "" && !well:
		t.Error("did not finish in the browser")
	}
}

// event is what test2json prints.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

// parse turns the output of a test binary that ran with -test.v=test2json into a tree of results.
func parse(ctx context.Context, out string) (*result, error) {
	tree := &result{}
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t") // -t: with times
	// A program that died leaves its last test's verdict pending; another marker of test2json's releases it.
	cmd.Stdin = strings.NewReader(out + "\x16=== NAME  \n")
	lines, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New("test2json: " + string(exit.Stderr))
		}
		return tree, err
	}
	byName := map[string]*result{"": tree}
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return tree, nil
		} else if err != nil {
			return tree, err
		}
		lookup(byName, e.Test).note(e)
	}
}

// lookup finds the result of a test, making it and its parents where they are new.
func lookup(byName map[string]*result, name string) *result {
	if r := byName[name]; r != nil {
		return r
	}
	parent, base := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		parent, base = name[:i], name[i+1:]
	}
	r := &result{name: base}
	byName[name] = r
	p := lookup(byName, parent)
	p.children = append(p.children, r)
	return r
}

func (r *result) note(e event) {
	switch e.Action {
	case "output":
		if line := strings.TrimLeft(e.Output, " "); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			r.output.WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		r.action, r.seconds = e.Action, e.Elapsed
	}
}
