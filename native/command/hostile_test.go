// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// asCommand makes the test's program the command.
const asCommand = "SUBLET_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main()
	}
	_ = os.Setenv("SUBLET_TUNE", "off") // tests compute as usual, whatever this machine was tuned to
	os.Exit(m.Run())
}

// process runs the command as a process of its own, in a folder.
func process(t *testing.T, folder string, stdin *os.File, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // only a hang takes that long
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Dir = folder
	c.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+folder)
	if stdin != nil {
		c.Stdin = stdin
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if ctx.Err() != nil {
		t.Fatalf("sublet %q does not end", args)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("sublet %q: %v", args, err)
	}
	return outcome{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// TestTimeout ends what would never end: a read of a pipe that nobody writes, an output that nobody reads, and calls without number.
func TestTimeout(t *testing.T) {
	folder := t.TempDir()
	source := wgsl(t, "fn f(i: u32) { a[i] = a[i] + 1u; }")
	silence, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = silence.Close(), writer.Close() }()
	for name, args := range map[string][]string{
		"a read":   {"params", "convert", "-", "out.npz", "--from", "params"},
		"calls":    {"run", source, "-g", "64", "-a", "a=64xuint32", "-o", "a=out.npy", "--calls", "1000000000"},
		"no time":  {"run", source, "-g", "64", "-a", "a=64xuint32", "-o", "a=out.npy", "--timeout", "1ns"},
		"pipeline": {"run", source, "-g", "64", "-a", "a=64xuint32", "--repeat", "1000000000"},
	} {
		args = append([]string{"--json", "--timeout", "300ms"}, args...)
		o := process(t, folder, silence, args...)
		var failed struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(o.stdout), &failed); err != nil || o.status != 1 || failed.Error.Code != "DeadlineExceeded" {
			t.Errorf("%s: %+v", name, o)
		}
		if !strings.HasPrefix(o.stderr, "sublet: --timeout ") || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %q", name, o.stderr)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", err, left)
	}
	in := floats(t, 1, 2, 3, 4)
	if got := must(t, "eval", "A", "-i", "A="+in, "--timeout", "10m"); !strings.Contains(got, "3  4") {
		t.Errorf("in time: %q", got)
	}
}

// hostileFolder has files of all sorts, whole and broken, under names of which arguments are made.
func hostileFolder(t testing.TB) (folder string, names []string) {
	folder = t.TempDir()
	put := func(name string, data []byte) {
		names = append(names, name)
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	array := func(h npy.Header, v any) []byte {
		var b bytes.Buffer
		var err error
		switch v := v.(type) {
		case []float32:
			err = npy.Write(&b, h, v)
		case []uint32:
			err = npy.Write(&b, h, v)
		case []float64:
			err = npy.Write(&b, h, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	square := array(npy.Header{Type: dtype.Float32, Shape: []int64{2, 2}}, []float32{1, 2, 3, 4})
	put("a.npy", square)
	put("u.npy", array(npy.Header{Type: dtype.Uint32, Shape: []int64{8}}, make([]uint32, 8)))
	put("d.npy", array(npy.Header{Type: dtype.Float64, Shape: []int64{1, 3}}, []float64{1e300, 2, 3}))
	put("empty.npy", array(npy.Header{Type: dtype.Float32, Shape: []int64{0, 3}}, []float32{}))
	put("cut.npy", square[:len(square)-3])
	put("huge.npy", []byte(strings.Replace(string(square), "(2, 2)", "(1<<40,", 1)))
	put("claim.npy", []byte(strings.Replace(string(square), "(2, 2), }      ", "(99999999, 2), }", 1)))
	put("nothing.npy", nil)
	put("text.npy", []byte("\x93NUMPY\x01\x00\xff\xff{'descr': '\x1b[31m'"))
	put("bad.params", []byte("\x12\x34\x56\x78\x9a\xbc\xde\xf0 and then nothing"))
	put("bad.safetensors", []byte("\xff\xff\xff\xff\xff\xff\xff\x7f{}"))
	put("good.safetensors", []byte("\x08\x00\x00\x00\x00\x00\x00\x00{}      "))
	put("bad.npz", []byte("PK\x05\x06"+strings.Repeat("\xff", 18)))
	put("k.wgsl", []byte("fn f(i: u32) { a[i] = a[i] + a[i]; }"))
	put("bad.wgsl", []byte("fn f(i: u32) { a[i] = ; }}}} \x00"))
	put("näme \u202e.npy", square)
	return folder, names
}

// words are what arguments are made of, beside the names of files.
var words = []string{
	"info", "mul", "eval", "params", "run", "list", "get", "convert", "verify", "--json", "--cast", "--driver", "cpu", "cogent", "nodriver",
	"--adapter", "--timeout", "1ns", "20s", "-1s", "-i", "A=a.npy", "B=d.npy", "A=cut.npy", "A=", "=", "A==a.npy", "E=empty.npy", "-o", "-", "out.npy",
	"out.params", "out.npz", "out.safetensors", ".", "..", "/dev/null", "/dev/full", "nowhere/out.npy", "A*A", "A", "A*T(A)+B", "fill(1<<60,1,1)", "-A", "--A", "B = A; B[0]", "out.csv", "A=-", "B=out.npy", "--header",
	"((((((", strings.Repeat("(", 5000), strings.Repeat("A+", 5000), "\xff\xfe", "\x1b[31m", "", " ", "--", "--help", "--version", "help", "completion", "bash",
	"-g", "8", "0", "2147483647", "4x2", "65535x65535x65535", "-l", "--offset", "9223372036854775807", "--calls", "--repeat", "2", "-3", "--pipeline",
	"--devices", "0", "0,0", "7", "all", "1,2,3", "-a", "a=u.npy", "a=8xuint32", "a=8xuint32:write", "a=2147483647x2147483647xfloat32", "a=8xuint32:e=999999999",
	"a=8xuint32:halo=999999999", "a=8xuint32:partial-read,write", "a=u.npy:packed", "-s", "n=1:uint32", "n=1e999", "n=", "--entry", "f", "f f", "g", "--sync-kernel",
	"--sha256", "--from", "npz", "params", "safetensors", "--strict", "--watch", "a=out.npy", "weights",
}

// starts are beginnings of commands that get further than words at random.
var starts = [][]string{
	{"info"},
	{"mul", "a.npy", "a.npy"},
	{"mul"},
	{"eval", "A*A", "-i", "A=a.npy"},
	{"eval"},
	{"params", "list"},
	{"params", "get"},
	{"params", "convert"},
	{"params", "verify"},
	{"run", "k.wgsl", "-g", "8", "-a", "a=8xuint32"},
	{"run", "k.wgsl", "-g", "8", "-a", "a=u.npy", "-o", "a=out.npy"},
	{"run"},
	{},
}

// arguments makes a command line of random numbers.
func arguments(next func(n int) int, files []string) []string {
	args := slices.Clone(starts[next(len(starts))])
	for range next(6) {
		word := ""
		if k := next(len(words) + len(files)); k < len(words) {
			word = words[k]
		} else {
			word = files[k-len(words)]
		}
		at := len(args)
		if at > 0 && next(4) == 0 {
			at = 1 + next(at)
		}
		args = slices.Insert(args, at, word)
	}
	return append(args, "--timeout=60s")
}

// judge wants what the help says of every command: a status of 0 or 1, one line that says why, no trace of a crash, and no file but
// whole ones.
func judge(t *testing.T, folder string, names, args []string, o outcome) {
	t.Helper()
	for _, sign := range []string{"panic:", "goroutine ", "fatal error", "SIGSEGV", "runtime error", "panicked at"} {
		if strings.Contains(o.stderr, sign) || strings.Contains(o.stdout, sign) && sign != "panic:" {
			t.Fatalf("sublet %q: %.2000s", args, o.stderr)
		}
	}
	if o.status != 0 && o.status != 1 {
		t.Fatalf("sublet %q: status %d, %.2000q", args, o.status, o.stderr)
	}
	if o.status == 1 && (!strings.HasPrefix(o.stderr, "sublet: ") && !strings.Contains(o.stderr, "\nsublet: ")) {
		t.Errorf("sublet %q: status 1, %.500q", args, o.stderr)
	}
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if slices.Contains(names, f.Name()) {
			continue
		}
		path := filepath.Join(folder, f.Name())
		if strings.HasPrefix(f.Name(), ".") || o.status != 0 {
			t.Errorf("sublet %q: status %d, and %q is left", args, o.status, f.Name())
		}
		if filepath.Ext(path) == ".npy" && f.Type().IsRegular() {
			if b, err := os.ReadFile(path); err != nil || second(npy.NewReader(bytes.NewReader(b), int64(len(b)))) != nil {
				t.Errorf("sublet %q: %q is not whole", args, f.Name())
			}
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

func second[V any](_ V, err error) error { return err }

// TestHostileCommands calls the command, as processes, with command lines and files that make no sense or too much.
func TestHostileCommands(t *testing.T) {
	folder, names := hostileFolder(t)
	rng := rand.New(rand.NewPCG(1, 13))
	for range devtest.Times(40) {
		args := arguments(rng.IntN, names)
		before := map[string]string{}
		for _, n := range names {
			before[n] = slurp(t, filepath.Join(folder, n))
		}
		o := process(t, folder, nil, args...)
		judge(t, folder, names, args, o)
		for _, n := range names {
			if o.status != 0 && slurp(t, filepath.Join(folder, n)) != before[n] {
				t.Errorf("sublet %q failed and changed %q", args, n)
			}
		}
		folder, names = hostileFolder(t) // in place of those that an output replaced
	}
}

// FuzzFlags: any text after -a, -s, -g and --devices is an array, a number, a range or devices, or wrong usage.
func FuzzFlags(f *testing.F) {
	for _, w := range words {
		f.Add(w)
	}
	f.Add("a=in.npy:read,write:e=4:halo=1")
	f.Add("a=2147483647x2147483647x2147483647x2147483647x2147483647xint8")
	f.Add("a=8xfloat32x65535:e=0")
	f.Fuzz(func(t *testing.T, s string) {
		wrong := func(what string, err error) bool {
			if err != nil && (!errors.Is(err, cli.ErrUsage) || utf8.ValidString(s) && !utf8.ValidString(err.Error())) {
				t.Fatalf("%s %q: %v", what, s, err)
			}
			return err != nil
		}
		if a, err := parseArray(s, map[string]bool{}); !wrong("-a", err) {
			if !strings.HasPrefix(s, a.name+"=") || (a.path == "") == (a.Shape == nil) {
				t.Fatalf("-a %q: %+v", s, a)
			}
		}
		if p, err := parseScalar(s, map[string]bool{}); !wrong("-s", err) && p == nil {
			t.Fatalf("-s %q is nothing", s)
		}
		var r runTask
		if !wrong("-g", r.addGlobal(s)) && (r.rang.Global < 1 || len(r.rang.Inner) > 2) {
			t.Fatalf("-g %q: %+v", s, r.rang)
		}
		if !wrong("--devices", r.addDevices(s)) && len(r.devices) > maxDevices {
			t.Fatalf("--devices %q: %d", s, len(r.devices))
		}
	})
}
