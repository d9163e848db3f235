// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package setup tests the script that installs what the tests need.
package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakes are the programs of a machine of root's that lacks a C compiler, until apt-get has installed one.
var fakes = map[string]string{
	"go":      `echo cc`,
	"npm":     ``,
	"node":    ``,
	"uname":   `echo Linux`,
	"id":      `echo 0`,
	"cc":      `[ -e "$FAKES/installed" ]`,
	"browser": ``,
	"apt-get": `echo "$@" >>"$FAKES/log"; case "$*" in *install*) : >"$FAKES/installed" ;; esac`,
}

// setup runs the script on such a machine. It returns what the script says and what it had apt-get do.
func setup(t *testing.T, env ...string) (said, done string, err error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range fakes {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "setup.sh", "run")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "FAKES="+dir, "CC=cc", "CHROME=browser", "SETUP=")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	log, logErr := os.ReadFile(filepath.Join(dir, "log"))
	if logErr != nil && !os.IsNotExist(logErr) {
		t.Fatal(logErr)
	}
	return string(out), string(log), err
}

const named = "gcc: compiles the drivers' C"

// TestInstalls wants each package to be named with its purpose and installed.
func TestInstalls(t *testing.T) {
	said, done, err := setup(t)
	if err != nil || !strings.Contains(said, named) || !strings.Contains(done, "install --no-install-recommends gcc libc6-dev") {
		t.Errorf("%v, apt-get did %q\n%s", err, done, said)
	}
}

// TestSetupNo wants the script to install nothing, to say what is missing and to fail.
func TestSetupNo(t *testing.T) {
	said, done, err := setup(t, "SETUP=no")
	if err == nil || !strings.Contains(said, named) || done != "" {
		t.Errorf("%v, apt-get did %q\n%s", err, done, said)
	}
}
