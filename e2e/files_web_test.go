// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/buffer/file/safetensors"
	mtx "github.com/sublet-gpu/sublet/buffer/file/sparse"
	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// filesOfGo are files of one matrix, or of one with the name w, that the Go packages write.
func filesOfGo(t *testing.T, elements []float32) map[string][]byte {
	t.Helper()
	named := []file.Header{{Name: "w", Type: dtype.Float32, Shape: []int64{2, 3}}}
	var one, market bytes.Buffer
	dense := make([]float64, len(elements))
	for i, v := range elements {
		dense[i] = float64(v)
	}
	if err := errors.Join(
		npy.Write(&one, npy.Header{Type: dtype.Float32, Shape: []int64{2, 3}}, elements),
		mtx.WriteMTX(&market, &mtx.Matrix{Rows: 2, Cols: 3, Dense: dense}),
	); err != nil {
		t.Fatal(err)
	}
	var coordinates bytes.Buffer
	if err := mtx.WriteMTX(&coordinates, &mtx.Matrix{
		Rows: 2, Cols: 3, ByRows: true, Values: dense, Indices: []int32{0, 1, 2, 0, 1, 2}, Pointers: []int32{0, 3, 6},
	}); err != nil {
		t.Fatal(err)
	}
	data := one.Bytes()[one.Len()-24:]
	list := map[string][]byte{"npy": one.Bytes(), "mtx": market.Bytes(), "sparse.mtx": coordinates.Bytes()}
	for name, open := range map[string]func(w io.Writer) (file.Writer, error){
		"npz":          func(w io.Writer) (file.Writer, error) { return npy.NewZipWriter(w, named, zip.Store) },
		"deflated.npz": func(w io.Writer) (file.Writer, error) { return npy.NewZipWriter(w, named, zip.Deflate) },
		"safetensors": func(w io.Writer) (file.Writer, error) {
			return safetensors.NewWriter(w, named, map[string]string{"made by": "Go"})
		},
	} {
		var out bytes.Buffer
		w, err := open(&out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		list[name] = out.Bytes()
	}
	return list
}

// firstOf is the first tensor of a file.
func firstOf(r file.Reader, err error) (file.Header, []byte, error) {
	if err != nil {
		return file.Header{}, nil, err
	}
	h, err := r.Next()
	if err != nil {
		return h, nil, err
	}
	data, err := io.ReadAll(r)
	return h, data, err
}

// TestWebFilesOfGo loads in a page what the Go packages write, and reads with these what the page saves.
func TestWebFilesOfGo(t *testing.T) {
	want := []float32{1, -2.5, 0.1, 1e-30, 16777216, 7}
	written := filesOfGo(t, want)
	p := openWeb(t, "")
	given, err := json.Marshal(written) // bytes in base64
	if err != nil {
		t.Fatal(err)
	}
	back := chrome.Eval[map[string][]byte](p, `(async (files) => {
		const {init} = await import('/dist/index.mjs'), gpu = await init({device: 'simd'}), saved = {};
		const base64 = (blob) => new Promise((done) => Object.assign(new FileReader(), {onload: ({target}) => done(target.result.split(',')[1])}).readAsDataURL(blob));
		for (const [name, text] of Object.entries(files)) {
			const format = name.split('.').pop(), x = await gpu.load(await fetch('data:;base64,' + text)), one = x.get?.('w') ?? x;
			if (one.shape.join() !== '2,3') throw new Error(name + ' is ' + one.shape);
			if ((await one.read()).join() !== Float32Array.of(1, -2.5, 0.1, 1e-30, 16777216, 7).join()) throw new Error(name + ' holds ' + await one.read());
			saved[name] = await base64(await gpu.save(x === one ? one : x, {format, ...name === 'deflated.npz' ? {compress: true} : {}}));
			x.close();
		}
		gpu.close();
		return saved;
	})(`+string(given)+`)`)

	data := written["npy"][len(written["npy"])-24:]
	for name, saved := range back {
		var (
			h   file.Header
			got []byte
			err error
		)
		switch name {
		case "npy":
			if !bytes.Equal(saved, written[name]) {
				t.Errorf("%s: the page saves %q, Go %q", name, saved, written[name])
			}
			continue
		case "mtx", "sparse.mtx":
			m, err := mtx.ReadMTX(bytes.NewReader(saved))
			if err != nil {
				t.Fatal(name, err)
			}
			values := append(slices.Clone(m.Dense), m.Values...)
			if m.Sparse() != (name == "sparse.mtx") || m.Rows != 2 || m.Cols != 3 || len(values) != len(want) {
				t.Fatalf("%s: %+v", name, m)
			}
			for i, v := range values {
				if float32(v) != want[i] {
					t.Errorf("%s: element %d is %v, want %v", name, i, v, want[i])
				}
			}
			continue
		case "safetensors":
			h, got, err = firstOf(safetensors.NewReader(bytes.NewReader(saved)))
		default:
			h, got, err = firstOf(npy.NewZipReader(bytes.NewReader(saved), int64(len(saved))))
		}
		if err != nil || h.Name != "w" || h.Type != dtype.Float32 || !slices.Equal(h.Shape, []int64{2, 3}) || !bytes.Equal(got, data) {
			t.Errorf("%s: %v, %+v, %v", name, err, h, got)
		}
	}
	if len(back) != len(written) {
		t.Errorf("%d files of %d came back", len(back), len(written))
	}
}

// TestWebFilesInParts loads one of several tensors of a file on a server, which sends no more than that and the header; a server that knows
// no ranges sends everything, and one whose file changes meanwhile is an error.
func TestWebFilesInParts(t *testing.T) {
	const elements = 1 << 18
	headers := []file.Header{{Name: "a", Type: dtype.Int32, Shape: []int64{elements}}, {Name: "b", Type: dtype.Int32, Shape: []int64{elements}}}
	var large bytes.Buffer
	w, err := safetensors.NewWriter(&large, headers, nil)
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for i := range 2 * elements {
		data = binary.LittleEndian.AppendUint32(data, uint32(i))
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}

	var sent, version atomic.Int64
	mux := webHandler(t)
	mux.HandleFunc("/large.safetensors", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "whole" {
			r.Header.Del("Range")
		}
		if r.URL.RawQuery == "changes" {
			version.Add(1)
		}
		w.Header().Set("ETag", `"`+strconv.FormatInt(version.Load(), 10)+`"`)
		http.ServeContent(counter{w, &sent}, r, "", time.Time{}, bytes.NewReader(large.Bytes()))
	})
	p := chrome.Start(t).OpenFor(t, webTimeout, chrome.Serve(t, mux)+"/")
	await(t, p, "document.body?.dataset.ready === 'true'")
	load := func(query string) string {
		sent.Store(0)
		return chrome.Eval[string](p, `(async () => {
			const {init} = await import('/dist/index.mjs'), gpu = await init({device: 'simd'});
			const said = await gpu.load('/large.safetensors`+query+`', {names: ['b']}).then(async (file) => {
				const x = await file.get('b').read();
				return [...file.keys()] + ': ' + [x[0], x.at(-1), x.length];
			}, ({code}) => code);
			gpu.close();
			return said;
		})()`)
	}
	const want = "b: 262144,524287,262144"
	if got := load(""); got != want || sent.Load() > 4*elements+1<<17 {
		t.Errorf("%q of %d bytes, want %q of half the file", got, sent.Load(), want)
	}
	if got := load("?whole"); got != want || sent.Load() < 8*elements {
		t.Errorf("%q of %d bytes, want %q of all", got, sent.Load(), want)
	}
	if got := load("?changes"); got != "ErrStream" {
		t.Errorf("a file that changes: %q", got)
	}
}

// counter counts what a handler sends.
type counter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.sent.Add(int64(n))
	return n, err
}
