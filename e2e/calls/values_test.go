// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package calls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

var (
	anyType     = reflect.TypeFor[any]()
	releaseType = reflect.TypeFor[func()]()
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	deviceType  = reflect.TypeFor[*gpu.Device]()
	driverType  = reflect.TypeFor[driver.Device]()
	hostType    = reflect.TypeFor[gpu.Host]()
)

// argument makes a value of a type: often one that makes sense.
func (c *caller) argument(t reflect.Type, depth int) value {
	switch t {
	case contextType:
		return c.context()
	case hostType:
		if c.IntN(4) > 0 {
			b := c.bytes()
			return value{reflect.ValueOf(gpu.HostBytes(b)), fmt.Sprintf("host(%d bytes)", len(b))}
		}
	}
	if v, ok := c.stream(t); ok {
		return v
	}
	if f := samples[t]; f != nil && (c.sane || c.IntN(2) == 0) {
		v := reflect.New(t).Elem()
		v.Set(reflect.ValueOf(f(c)))
		return value{v, fmt.Sprintf("%.200v", v)}
	}
	if t == deviceType && (c.sane || c.IntN(2) == 0) {
		return c.device()
	}
	if pooled(t) && (c.sane && c.IntN(30) > 0 || c.IntN(8) > 0) {
		if v, ok := c.known(t, depth); ok {
			return v
		}
	}
	v := c.made(t, depth)
	if pooled(t) && t.Kind() == reflect.Pointer && !v.IsNil() && c.IntN(8) == 0 && !c.synced {
		v.text = c.keep(v.Value) + " := " + v.text
	}
	return v
}

// device takes a device that can be used, or opens one.
func (c *caller) device() value {
	p := c.poolOf(deviceType)
	for range 4 {
		if v, ok := p.take(c.Rand, deviceType); ok && !v.IsNil() && v.Interface().(*gpu.Device).Usable() == nil {
			return v
		}
	}
	if c.borrowed {
		return value{reflect.Zero(deviceType), "nil"}
	}
	for _, open := range []any{open, connected} {
		c.invoke(callable{name: "helpers.open", call: reflect.ValueOf(open)}, 1)
	}
	v, ok := p.take(c.Rand, deviceType)
	if !ok {
		return value{reflect.Zero(deviceType), "nil"}
	}
	return v
}

// known takes a value from the pool, or has a function make one.
func (c *caller) known(t reflect.Type, depth int) (value, bool) {
	if t == anyType && c.IntN(3) == 0 {
		return value{}, false
	}
	take := func() (value, bool) {
		if c.synced && !slices.Contains(concurrent, t) {
			return value{}, false
		}
		v, ok := c.poolOf(t).take(c.Rand, t)
		for i := 0; i < 4 && ok && c.sane && dead(v.Value); i++ {
			v, ok = c.poolOf(t).take(c.Rand, t)
		}
		return v, ok && (!c.sane || !dead(v.Value))
	}
	v, ok := take()
	if !ok && depth < 3 && len(c.table.makers[t]) > 0 {
		list := c.table.makers[t]
		if n := slices.IndexFunc(list, func(f callable) bool { return !strings.HasPrefix(f.name, "helpers.") }); n > 0 && c.IntN(3) > 0 {
			list = list[:n]
		}
		c.invoke(pick(c, list), depth+1)
		v, ok = take()
	}
	if ok || t.Kind() != reflect.Interface {
		return v, ok
	}
	var have []reflect.Type
	for _, p := range []*pool{c.own, c.shared} {
		if p != nil {
			have = append(have, p.implementing(t)...)
		}
	}
	have = slices.DeleteFunc(have, func(t reflect.Type) bool { return c.synced && !slices.Contains(concurrent, t) })
	if len(have) == 0 {
		return value{}, false
	}
	impl := have[c.IntN(len(have))]
	if v, ok = c.poolOf(impl).take(c.Rand, impl); !ok {
		return v, false
	}
	if c.IntN(20) == 0 && impl.Kind() == reflect.Pointer {
		v = value{reflect.Zero(impl), "(" + impl.String() + ")(nil)"}
	}
	box := reflect.New(t).Elem()
	box.Set(v.Value)
	return value{box, v.text}, true
}

// dead reports whether a value is of a device that is gone.
func dead(v reflect.Value) bool {
	if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
		return true
	}
	of, ok := reflect.TypeAssert[interface{ Device() *gpu.Device }](v)
	return ok && of.Device().Usable() != nil
}

// made makes a value that is new.
func (c *caller) made(t reflect.Type, depth int) value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(c.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := c.integer(t)
		v.SetInt(n)
		c.ints = append(c.ints, int(n))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(c.integer(t)))
	case reflect.Float32, reflect.Float64:
		if v.SetFloat(pick(c, numbers)); c.sane {
			v.SetFloat(float64(c.IntN(4)))
		}
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(complex(pick(c, numbers), pick(c, numbers)))
	case reflect.String:
		v.SetString(c.string())
	case reflect.Pointer:
		if c.IntN(3) > 0 || depth > 3 || !ours(t.Elem()) {
			return value{v, "nil"}
		}
		v.Set(reflect.New(t.Elem()))
		if zeroOnly[t.Elem()] {
			return value{v, "new(" + t.Elem().String() + ")"}
		}
		e := c.made(t.Elem(), depth+1)
		v.Elem().Set(e.Value)
		return value{v, "&" + e.text}
	case reflect.Struct:
		return c.structure(v, depth)
	case reflect.Array:
		texts := make([]string, t.Len())
		for i := range t.Len() {
			e := c.argument(t.Elem(), depth+1)
			v.Index(i).Set(e.Value)
			texts[i] = e.text
		}
		return value{v, "{" + strings.Join(texts, ", ") + "}"}
	case reflect.Slice:
		return c.slice(v, depth)
	case reflect.Map:
		return c.mapping(v, depth)
	case reflect.Func:
		return c.function(v, depth)
	case reflect.Interface:
		return c.anything(v, depth)
	default: // channels, and pointers that are unsafe
		return value{v, "nil"}
	}
	if t.Kind() == reflect.String {
		return value{v, abridged(strconv.Quote(v.String()))}
	}
	return value{v, fmt.Sprint(v)}
}

func abridged(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

func pick[T any](c *caller, list []T) T { return list[c.IntN(len(list))] }

var numbers = []float64{
	0, 1, 2, -1, 0.5, 3, math.Copysign(0, -1),
	math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, 1e-40, math.MaxFloat32, math.MaxFloat64, 65520, 1 << 24,
}

// integer is small most of the time.
func (c *caller) integer(t reflect.Type) int64 {
	n := c.IntN(20)
	if c.sane {
		if n = min(n, 13); n > 11 && t.Kind() < reflect.Uint {
			n = 0
		}
	}
	switch {
	case n < 12:
		return int64(c.IntN(5))
	case n < 14:
		return int64(4 * c.IntN(20))
	case n < 15:
		return int64(256 * c.IntN(5))
	case n < 16:
		return -1
	case n < 17 && len(c.ints) > 0:
		return int64(c.ints[len(c.ints)-1]) << (64 - 8*t.Size()) >> (64 - 8*t.Size())
	}
	big := int64(1)<<c.IntN(64) + int64(c.IntN(3)) - 1
	if c.IntN(4) == 0 {
		big = -big
	}
	// What is between is memory that the machine may have or not, and tests of other packages want as well.
	if size := max(big, -big); size > 1<<20 && size < 1<<42 && (t.Size() == 8 && largest[base(c.callee)] || c.IntN(2) == 0) {
		big = pick(c, []int64{math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32 + 1, math.MaxUint32}) &^ (1<<40 - 1)
	}
	return big << (64 - 8*t.Size()) >> (64 - 8*t.Size())
}

// string is one that makes sense somewhere.
func (c *caller) string() string {
	if c.sane || c.IntN(5) > 0 {
		return pick(c, words)
	}
	b := make([]byte, c.IntN(40))
	for i := range b {
		b[i] = byte(c.Uint32())
	}
	if c.IntN(20) == 0 {
		return strings.Repeat(pick(c, words), 10000)
	}
	return string(b)
}

// length is that of a slice: what the numbers before it stand for, or another.
func (c *caller) length() int {
	if n := len(c.ints); n > 0 && (c.sane || c.IntN(3) > 0) {
		size := c.ints[n-1]
		if n > 1 && (c.sane || c.IntN(4) > 0) {
			size *= c.ints[n-2]
		}
		if size >= 0 && size <= 1<<16 {
			return size
		}
	}
	return pick(c, []int{0, 1, 2, 3, 4, 6, 8, 9, 12, 16, 64, 256, 1000})
}

func (c *caller) bytes() []byte {
	b := make([]byte, c.length())
	for i := range b {
		b[i] = byte(c.IntN(4))
	}
	return b
}

func (c *caller) slice(v reflect.Value, depth int) value {
	t := v.Type()
	if !c.sane && c.IntN(15) == 0 || depth > 4 {
		return value{v, "nil"}
	}
	n := c.length()
	flat := t.Elem().Kind() < reflect.Array && t.Elem().Kind() != reflect.Int || t.Elem().Size() <= 4
	if !flat {
		n = c.IntN(4)
	}
	if c.sane && n == 0 && c.IntN(4) > 0 {
		n = 1
	}
	v.Set(reflect.MakeSlice(t, n, n))
	ints, text := c.ints, ""
	for i := range n {
		e := c.argument(t.Elem(), depth+1)
		v.Index(i).Set(e.Value)
		if i < 8 || !flat {
			text += e.text + ", " //nolint:perfsprint // short
		}
	}
	c.ints = ints
	if n > 8 {
		text += fmt.Sprint("... of ", n)
	}
	return value{v, t.String() + "{" + strings.TrimSuffix(text, ", ") + "}"}
}

func (c *caller) mapping(v reflect.Value, depth int) value {
	if c.IntN(8) == 0 || depth > 4 {
		return value{v, "nil"}
	}
	v.Set(reflect.MakeMap(v.Type()))
	text := ""
	for range c.IntN(4) {
		k, e := c.argument(v.Type().Key(), depth+1), c.argument(v.Type().Elem(), depth+1)
		v.SetMapIndex(k.Value, e.Value)
		text += k.text + ": " + e.text + ", " //nolint:perfsprint // short
	}
	return value{v, v.Type().String() + "{" + text + "}"}
}

// structure sets some of the fields.
func (c *caller) structure(v reflect.Value, depth int) value {
	t := v.Type()
	text := t.String() + "{"
	if c.IntN(4) == 0 || depth > 4 || !ours(t) && t.Name() != "" {
		return value{v, text + "}"}
	}
	often := 1 + c.IntN(4)
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || c.IntN(often) > 0 {
			continue
		}
		e := c.argument(f.Type, depth+1)
		v.Field(i).Set(e.Value)
		text += f.Name + ": " + e.text + ", " //nolint:perfsprint // short
	}
	return value{v, strings.TrimSuffix(text, ", ") + "}"}
}

// function makes a function that does what callbacks do: nothing, fail, panic, call again.
func (c *caller) function(v reflect.Value, depth int) value {
	t := v.Type()
	if !c.sane && c.IntN(10) == 0 || depth > 2 {
		return value{v, "nil"}
	}
	kind := c.IntN(12)
	text := "func" + strconv.Itoa(kind)
	inner, mu := c.borrow(c.Uint64()), sync.Mutex{}
	v.Set(reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		mu.Lock()
		defer mu.Unlock()
		fails, many := kind == 4 || kind > 8 && inner.IntN(3) == 0, inner.IntN(3)
		if kind >= 6 && kind < 11 {
			if routine() == c.routine.Load() {
				c.within(args)
			} else {
				inner.within(args)
			}
		}
		if kind == 11 && many == 0 {
			panic(userPanic)
		}
		results := make([]reflect.Value, t.NumOut())
		for i := range results {
			results[i] = result(t.Out(i), args, fails)
		}
		return results
	}))
	return value{v, text}
}

// result is what a callback returns: one of its arguments if it can, true, or an error.
func result(t reflect.Type, args []reflect.Value, fails bool) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == errorType && fails:
		v.Set(reflect.ValueOf(errUser))
	case fails || t == errorType:
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case t.Kind() == reflect.Int:
		v.SetInt(1)
	default:
		for _, a := range args {
			if a.Type() == t {
				return a
			}
		}
	}
	return v
}

var errUser = errors.New("an error of the user's")

// anything fills an interface.
func (c *caller) anything(v reflect.Value, depth int) value {
	if v.Type() == errorType {
		v.Set(reflect.ValueOf(errUser))
		return value{v, "error"}
	}
	if v.Type() != anyType || c.IntN(6) == 0 || depth > 4 {
		return value{v, "nil"}
	}
	t := pick(c, anys)
	e := c.argument(t, depth+1)
	v.Set(e.Value)
	return value{v, t.String() + "(" + e.text + ")"}
}

// anys are types of what stands for anything.
var anys = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[string](), reflect.TypeFor[[]float32](), reflect.TypeFor[[]byte](), reflect.TypeFor[[]int32](),
	reflect.TypeFor[map[string]int](), reflect.TypeFor[func()](), reflect.TypeFor[gpu.Host](), reflect.TypeFor[*gpu.Buffer](),
	reflect.TypeFor[*gpu.Device](), reflect.TypeFor[driver.Device](), reflect.TypeFor[struct{ X []int }](), reflect.TypeFor[*int](),
}

// context is a context that ends.
func (c *caller) context() value {
	v := reflect.New(contextType).Elem()
	after := time.Duration(0)
	n := c.IntN(20)
	if c.sane {
		n = 5
	}
	switch n {
	case 0:
		return value{v, "nil"}
	case 1:
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errUser)
		v.Set(reflect.ValueOf(ctx))
		return value{v, "cancelled"}
	case 2:
		after = time.Nanosecond
	case 3, 4:
		after = time.Duration(c.IntN(3000)) * time.Microsecond
	default:
		after = 300 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), after)
	context.AfterFunc(ctx, cancel)
	v.Set(reflect.ValueOf(ctx))
	return value{v, "context(" + after.String() + ")"}
}
