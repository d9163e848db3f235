// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// webPeers is what a run of web/bench-peer.mjs beside other libraries leaves.
type webPeers struct {
	When, Chrome string
	Machine      struct {
		CPU   string
		Cores int
	}
	Peers map[string]struct{ Info struct{ Version string } }
	Items map[string]struct {
		Peers map[string]struct {
			Ms    float64
			Wrong bool
		}
	}
	Cold map[string]struct {
		Total float64 `json:"total_ms"`
		Bytes float64 `json:"bytes_gzip"`
	}
}

// nativePeers is what a run of native/peer beside other libraries leaves.
type nativePeers struct {
	When, Machine string
	Peers         []struct{ Name, Note string }
	Items         []string
	Cells         map[string]map[string]struct {
		Median  float64
		Err, NA string
	}
}

// known are the names of libraries in such results, in the order of the tables.
var known = [][2]string{
	{"sublet", ours},
	{"ours", ours},
	{"raw", "by hand"},
	{"jaxjs", "jax-js"},
	{"tfjs", "TensorFlow.js"},
	{"ort", "ONNX Runtime Web"},
	{"torch", "webgpu-torch"},
}

// peers keeps results of one of the two kinds.
func peers(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var web webPeers
	if err := json.Unmarshal(b, &web); err == nil && web.Chrome != "" {
		return web.set().save("peers-web")
	}
	var native nativePeers
	if err := json.Unmarshal(b, &native); err != nil || len(native.Cells) == 0 {
		return cmp.Or(err, errors.New("these are results of neither benchmark"))
	}
	return native.set().save("peers-native")
}

func title(name string) (string, int) {
	if i := slices.IndexFunc(known, func(k [2]string) bool { return k[0] == name }); i >= 0 {
		return known[i][1], i
	}
	return name, len(known)
}

// ordered sorts names of libraries as the tables have them.
func ordered(names []string) []string {
	slices.SortStableFunc(names, func(a, b string) int {
		_, i := title(a)
		_, j := title(b)
		return cmp.Or(cmp.Compare(i, j), cmp.Compare(a, b))
	})
	return names
}

const byHand = "By hand is WGSL written for the one size against the bare API, right where sides are multiples of 4."

func (w *webPeers) set() *set {
	s := &set{
		Title: "In Chromium, beside other libraries", When: w.When[:min(10, len(w.When))],
		Machine: fmt.Sprintf("%s, %d cores, Chromium %s with SwiftShader", w.Machine.CPU, w.Machine.Cores, w.Chrome),
		Command: "go run ./native/bench peers FILE.json", Notes: []string{byHand, "The entry of Sublet is web/bench-peer.mjs."},
	}
	var names, items []string
	for name := range w.Peers {
		names = append(names, name)
	}
	for item := range w.Items {
		items = append(items, item)
	}
	slices.Sort(items)
	for _, name := range ordered(names) {
		column, _ := title(name)
		s.Columns = append(s.Columns, column)
		if v := w.Peers[name].Info.Version; v != "" {
			s.Notes = append(s.Notes, column+" is version "+v+".")
		}
	}
	for _, item := range items {
		one := row{item, map[string]float64{}}
		for _, name := range names {
			if c := w.Items[item].Peers[name]; c.Ms > 0 && !c.Wrong {
				column, _ := title(name)
				one.Ms[column] = c.Ms
			}
		}
		s.Rows = append(s.Rows, one)
	}
	cold := row{"first product of a fresh page", map[string]float64{}}
	for _, name := range names {
		if c := w.Cold[name]; c.Total > 0 {
			column, _ := title(name)
			cold.Ms[column] = c.Total
			if name == "sublet" {
				s.Notes = append(s.Notes, fmt.Sprintf("A fresh page loads %.0f KiB of Sublet, compressed by gzip.", c.Bytes/1024))
			}
		}
	}
	if len(cold.Ms) > 0 {
		s.Rows = append(s.Rows, cold)
	}
	return s
}

func (n *nativePeers) set() *set {
	s := &set{
		Title: "Natively, beside other libraries", When: n.When[:min(10, len(n.When))], Machine: n.Machine,
		Command: "go run ./native/bench peers FILE.json", Notes: []string{byHand, "The entry of Sublet is native/peer."},
	}
	var names []string
	for _, p := range n.Peers {
		names = append(names, p.Name)
	}
	for _, name := range ordered(names) {
		column, _ := title(name)
		s.Columns = append(s.Columns, column)
	}
	for _, p := range n.Peers {
		if column, at := title(p.Name); at == len(known) {
			s.Notes = append(s.Notes, column+": "+p.Note+".")
		}
	}
	for _, item := range n.Items {
		one := row{item, map[string]float64{}}
		for _, name := range names {
			if c := n.Cells[item][name]; c.Median > 0 && c.Err == "" && c.NA == "" {
				column, _ := title(name)
				one.Ms[column] = c.Median
			}
		}
		s.Rows = append(s.Rows, one)
	}
	return s
}
