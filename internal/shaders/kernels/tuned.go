// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Class is what a tuner has one answer for: a family of kernels, an element type, how operands lie, and sizes between powers of two.
type Class struct {
	Family Family
	Type   fuse.Type
	Layout uint8    // of products: 1 where A is stored by columns, plus 2 where B is
	Log    [3]uint8 // the binary logarithms of the sizes, rounded up: rows and columns, of products m, n and k
}

// newClass returns the class of sizes.
func newClass(family Family, t fuse.Type, layout uint8, sizes ...int) Class {
	c := Class{Family: family, Type: t, Layout: layout}
	for i, n := range sizes {
		c.Log[i] = uint8(bits.Len(uint(max(n, 1) - 1)))
	}
	return c
}

// distance returns how far sizes are from those of the class, in powers of two; not ok where they are not neighbours, or something
// else differs.
func (c *Class) distance(from *Class) (sum int, ok bool) {
	if c.Family != from.Family || c.Type != from.Type || c.Layout != from.Layout {
		return 0, false
	}
	for i, n := range c.Log {
		d := max(n, from.Log[i]) - min(n, from.Log[i])
		if d > 1 {
			return 0, false
		}
		sum += int(d)
	}
	return sum, true
}

// Answer is the variant that is used for a class, or "" for the usual one. Sooner, unless it is "", is the one that is used until its
// kernel is compiled.
type Answer struct {
	Class
	Best, Sooner string
}

// Tuned is what a tuner found out about a device. It is not changed once a device has it.
type Tuned struct {
	Answers []Answer
	// Asked, unless it is nil, is told of each choice: the class, the names of the variants on offer, and that of the one which is used
	// where there is no answer.
	Asked func(c Class, names []string, usual string)
}

// find returns the answer for a class, or that of a neighbour.
func (t *Tuned) find(c *Class) (found Answer, exact bool) {
	nearest := len(c.Log) + 1
	for i := range t.Answers {
		a := &t.Answers[i]
		if d, ok := c.distance(&a.Class); ok && d < nearest {
			found, nearest = *a, d
		}
	}
	return found, nearest == 0
}

// choose returns the variant that a pass over rows x cols elements is planned by, where the device was tuned.
// later tells that the usual one is used until it is compiled.
func (d *Device) choose(family Family, t fuse.Type, rows, cols int, usual *pass) (v *pass, later bool) {
	return d.chosen(newClass(family, t, 0, rows, cols), usual)
}

// untuned is the device as if it had not been tuned.
func (d *Device) untuned() *Device {
	u := *d
	u.Tuned = nil
	return &u
}

func (d *Device) chosen(c Class, usual *pass) (v *pass, later bool) {
	offer := passes[c.Family]
	if ask := d.Tuned.Asked; ask != nil {
		var names []string
		for _, v := range offer {
			if v.fits(d) {
				names = append(names, v.name())
			}
		}
		ask(c, names, usual.name())
	}
	if a, _ := d.Tuned.find(&c); a.Best != "" && a.Best != usual.name() {
		for _, v := range offer {
			if v.fits(d) && v.name() == a.Best {
				return v, a.Sooner != ""
			}
		}
	}
	return usual, false
}

// The names of products that are not computed by a variant of a table.
const (
	namedNative = "native"
	namedSIMD   = "simd"
	namedStream = "stream"
)

// PartsMark stands before the number of parts in the name of a product.
const PartsMark = " in "

// name is what the variant is called in files of timings.
func (v *variant) name() string {
	k := Kernel{form: v.form}
	k.params = v.params(k.a, k.b, false, false)
	return k.variant()
}

// variant is the name of the variant that the kernel of a product is of.
func (k *Kernel) variant() string {
	_, name, _ := strings.Cut(k.form.name, "/")
	p := k.params
	switch k.form {
	case productTile, productOuter, productQuads:
		return named(name, p[:4]...)
	case productGroup:
		return named(name, p[0], p[1], p[3], p[4], p[5])
	case productRow:
		return named(name, p[:2]...)
	case productStream:
		return namedStream
	}
	return namedSIMD
}

func (c *choice) name() string { return c.variant.name() + PartsMark + strconv.Itoa(c.parts) }

// named joins a name and numbers, but for zeros at the end.
func named(name string, numbers ...int) string {
	for len(numbers) > 0 && numbers[len(numbers)-1] == 0 {
		numbers = numbers[:len(numbers)-1]
	}
	words := []string{name}
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, " ")
}

// affordable reports whether a device can run the variant, whatever its class usually does. Tiles are kept to sizes that compile in
// reasonable time.
func (v *variant) affordable(r *Request) bool {
	d := r.Device
	switch {
	case v.outer():
		return r.M > 1 && (d.Quads || v.form == productOuter)
	case v.form == productTile:
		return v.rq*v.cq <= 8 && v.tx*v.ty <= d.MaxInvocations
	case v.threads() > d.MaxInvocations || v.memory() > d.MaxMemory || (v.form == productRow) != (r.M == 1):
		return false
	}
	return v.form != productRow || v.tx == v.ty || (v.ty > v.tx) == r.B.ColMajor
}

// tuned plans the product by the answer of the device's tuner, or as usual. all is the choices of the device's class.
func (r *Request) tuned(all []choice) (*Product, error) {
	untuned := *r
	untuned.Device = r.Device.untuned()
	usual, err := untuned.Pick()
	if err != nil || r.Stack > 0 || r.A.Type != r.B.Type {
		return usual, err
	}
	for i := range variants {
		if v := &variants[i]; v.affordable(r) && !slices.ContainsFunc(all, func(c choice) bool { return c.variant == v }) {
			all = r.cut(all, v)
		}
	}
	c := r.class()
	if ask := r.Device.Tuned.Asked; ask != nil {
		names := r.others()
		for i := range all {
			names = append(names, all[i].name())
		}
		ask(c, names, usual.name())
	}
	a, exact := r.Device.Tuned.find(&c)
	p := r.named(all, a.Best, 0, exact)
	if p == nil {
		return usual, nil
	}
	if p.Sooner = r.named(all, a.Sooner, p.Parts, exact); p.Sooner != nil && (p.Sooner.Pack != nil || p.Sooner.First.native) {
		p.Sooner = nil
	}
	return p, nil
}

func (r *Request) class() Class {
	family := FamilyProduct
	var layout uint8
	if r.B.ColMajor {
		layout = 2
	}
	if r.M == 1 {
		family = FamilyVector
	} else if r.A.ColMajor {
		layout++
	}
	return newClass(family, r.A.Type, layout, r.M, r.N, r.K)
}

// others lists the names of plans that are made otherwise than by the table.
func (r *Request) others() (names []string) {
	if runsNative && r.native() {
		names = append(names, namedNative)
	}
	if f := r.Device.SIMD; runsSIMD && f != nil && f.product(r) != nil {
		names = append(names, namedSIMD)
	}
	if r.streams() {
		names = append(names, namedStream)
	}
	return names
}

// named plans the product of a name, or returns nil where there is none. Of sizes that were not timed themselves it takes the number
// of parts that promises the most. parts, unless it is 0, is how many there have to be.
func (r *Request) named(all []choice, name string, parts int, exact bool) *Product {
	switch name {
	case namedNative:
		if runsNative && r.native() && parts == 0 {
			return r.planNative()
		}
	case namedStream:
		if r.streams() && parts == 0 {
			return r.planStream()
		}
	case namedSIMD:
		if f := r.Device.SIMD; runsSIMD && f != nil && parts == 0 {
			return f.product(r)
		}
	}
	var best *choice
	variant, _, _ := strings.Cut(name, PartsMark)
	for i := range all {
		c := &all[i]
		if c.variant.name() != variant || parts != 0 && c.parts != parts {
			continue
		}
		if exact && c.name() == name {
			best = c
			break
		}
		if best == nil || c.cost < best.cost {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	return r.plan(*best)
}

// name is what the plan is called in files of timings.
func (p *Product) name() string {
	if p.First.native {
		return namedNative
	}
	if name := p.First.variant(); name == namedSIMD || name == namedStream {
		return name
	}
	return p.First.variant() + PartsMark + strconv.Itoa(p.Parts)
}

// Checksum identifies the texts, the variants and the defaults that there are: timings are of use for these only.
func Checksum() string {
	h := fnv.New64a()
	add := func(text string) { _, _ = h.Write([]byte(text + "\x00")) } // never fails
	for _, list := range passes {
		for _, v := range list {
			add(v.name())
		}
	}
	for i := range variants {
		add(variants[i].name())
	}
	for _, d := range table {
		for _, v := range []*pass{d.linear[0], d.linear[1], d.rows, d.grid, d.block[0], d.block[1], d.cols[0], d.cols[1], d.softmax[0], d.softmax[1]} {
			add(v.name())
		}
	}
	forms := []*form{
		mapLinear, mapGrid, mapBlock, foldRows, foldTree, foldCols, softmaxRows, softmaxShort, softmaxGroup,
		productTile, productOuter, productGroup, productRow, productSum, productStream,
	}
	if runsSIMD {
		forms = append(forms, softmaxHeld, productPanel, productPack, productLine, productDots)
	}
	for _, f := range forms {
		add(f.name)
		add(*f.text)
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
