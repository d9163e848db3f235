// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package calls

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// callable is a function, or a method of a type: what a caller chooses from.
type callable struct {
	name     string
	call     reflect.Value // of a function
	receiver reflect.Type  // of a method, of an interface or pointer type
	method   int
}

// table has the callables by package and by name: a function of many instances is as likely as one that has none.
type table struct {
	packages []string
	names    map[string][]string
	byName   map[string][]callable
	makers   map[reflect.Type][]callable // functions by the types of their results
	methods  map[reflect.Type][]callable // by receivers
}

func newTable() *table {
	t := &table{
		names: map[string][]string{}, byName: map[string][]callable{},
		makers: map[reflect.Type][]callable{}, methods: map[reflect.Type][]callable{},
	}
	for _, f := range slices.Concat(functions, helpers) {
		v := reflect.ValueOf(f.call)
		if t.add(f.name, callable{name: f.name, call: v}); excluded[base(f.name)] != "" {
			continue
		}
		for r := range v.Type().Outs() {
			if pooled(r) {
				t.makers[r] = append(t.makers[r], callable{name: f.name, call: v})
			}
		}
	}
	for _, typ := range types {
		receiver := typ
		if typ.Kind() != reflect.Interface {
			receiver = reflect.PointerTo(typ)
		}
		for i := range receiver.NumMethod() {
			if m := receiver.Method(i); m.IsExported() {
				name := "(" + typ.String() + ")." + m.Name
				f := callable{name: name, receiver: receiver, method: i}
				if t.add(name, f); excluded[base(name)] != "" {
					continue
				}
				t.methods[receiver] = append(t.methods[receiver], f)
				for r := range m.Type.Outs() {
					if pooled(r) {
						t.makers[r] = append(t.makers[r], f)
					}
				}
			}
		}
	}
	return t
}

func (t *table) add(name string, c callable) {
	base := base(name)
	if excluded[base] != "" {
		return
	}
	pkg, _, _ := strings.Cut(strings.TrimPrefix(base, "("), ".")
	if t.byName[base] == nil {
		t.names[pkg] = append(t.names[pkg], base)
		if n := len(t.names[pkg]); n == 1 || n%16 == 0 { // large packages come oftener
			t.packages = append(t.packages, pkg)
		}
	}
	t.byName[base] = append(t.byName[base], c)
}

// base is the name of a function or method without type arguments.
func base(name string) string {
	begin, end := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']')
	if begin < 0 {
		return name
	}
	return name[:begin] + name[end+1:]
}

// pooled reports whether values of a type are kept for later calls.
func pooled(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return pooled(t.Elem()) || ours(t.Elem())
	case reflect.Struct, reflect.Interface, reflect.Func, reflect.Slice:
		return ours(t) || t == anyType || t == releaseType
	}
	return false
}

func ours(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), module) }

// value is an argument or a result, and how the log writes it.
type value struct {
	reflect.Value
	text string
}

// pool keeps results for later calls.
type pool struct {
	mu     sync.Mutex
	values map[reflect.Type][]value
	types  []reflect.Type
	count  *atomic.Int64 // of all pools, for names
	slots  int
}

func (p *pool) take(r *rand.Rand, t reflect.Type) (v value, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.values[t]
	if len(list) == 0 {
		return v, false
	}
	if r.IntN(2) == 0 { // what was made last fits together
		return list[len(list)-1], true
	}
	return list[r.IntN(len(list))], true
}

// drop forgets a value.
func (p *pool) drop(v value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[v.Type()] = slices.DeleteFunc(p.values[v.Type()], func(o value) bool { return o.text == v.text })
}

// implementing returns the types of values that can stand for an interface.
func (p *pool) implementing(t reflect.Type) (list []reflect.Type) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, have := range p.types {
		if have != t && have.Implements(t) {
			list = append(list, have)
		}
	}
	return list
}

// put keeps a value, and returns the one whose place it took.
func (p *pool) put(r *rand.Rand, v reflect.Value) (put, old value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	put = value{v, fmt.Sprint("v", p.count.Add(1))}
	list := p.values[v.Type()]
	if list == nil {
		p.types = append(p.types, v.Type())
	}
	if len(list) < p.slots {
		p.values[v.Type()] = append(list, put)
		return put, value{}
	}
	i := r.IntN(len(list))
	old = list[i]
	p.values[v.Type()] = append(slices.Delete(list, i, i+1), put)
	return put, old
}

// caller makes random calls, one after the other.
type caller struct {
	*rand.Rand
	table    *table
	own      *pool
	shared   *pool // of all callers; of types that may be used from several goroutines. Nil if there is one caller.
	faults   *faults
	log      io.Writer
	name     string
	began    atomic.Int64 // when the call in progress began; 0 for none
	current  atomic.Pointer[string]
	ints     []int // the last ones among the arguments
	callee   string
	sane     bool // the arguments of this call are to make sense
	synced   bool // what is made now is for a function that another goroutine may call
	stepping int
	inner    int          // calls of the user's functions that are under way
	routine  atomic.Value // a string: the goroutine that it calls from, which functions on other goroutines compare with theirs
	borrowed bool         // it is that of a function that somebody else's goroutine calls
}

// faults are what callers found.
type faults struct {
	mu   sync.Mutex
	seen map[string]bool
	out  io.Writer
}

func (f *faults) add(what string, cause any, stack []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := origin(stack)
	if !f.seen[at] {
		f.seen[at] = true
		fmt.Fprintf(f.out, "FAULT %s: %v\n%s\n", what, cause, stack)
	}
}

// origin is the first line of ours below the panic.
func origin(stack []byte) string {
	_, below, _ := strings.Cut(string(stack), "panic(")
	for line := range strings.Lines(below) {
		if strings.HasPrefix(line, "\t") && strings.Contains(line, "/sublet") || strings.Contains(line, "\t/work") {
			return line
		}
	}
	return below
}

// step makes a call.
func (c *caller) step() {
	c.stepping++
	c.routine.Store(routine())
	names := c.table.names[pick(c, c.table.packages)]
	name := names[c.IntN(len(names))]
	for ending(name) && c.IntN(8) > 0 { // or else nothing lives long
		name = names[c.IntN(len(names))]
	}
	list := c.table.byName[name]
	c.invoke(list[c.IntN(len(list))], 0)
}

// routine tells which goroutine this is.
func routine() string {
	b := make([]byte, 40)
	s, _, _ := strings.Cut(string(b[:runtime.Stack(b, false)]), " [")
	return s
}

// within makes some calls inside a function of the user's: mostly methods of what that was given.
func (c *caller) within(args []reflect.Value) {
	if c.inner > 1 {
		return
	}
	c.inner++
	defer func() { c.inner-- }()
	began, text := c.began.Load(), c.current.Load()
	var methods []callable
	for _, a := range args {
		if k := a.Kind(); !pooled(a.Type()) || (k == reflect.Pointer || k == reflect.Interface) && a.IsNil() {
			continue
		}
		if a.Kind() != reflect.Func && a.Kind() != reflect.Struct {
			c.keep(a)
			methods = append(methods, c.table.methods[a.Type()]...)
		}
	}
	for range 1 + c.IntN(3) {
		if len(methods) > 0 && (c.borrowed || c.IntN(4) > 0) {
			c.invoke(pick(c, methods), 2)
		} else if !c.borrowed {
			c.step()
		}
	}
	c.current.Store(text)
	c.began.Store(began)
}

// borrow is the caller for a function that a goroutine of the library's calls.
func (c *caller) borrow(seed uint64) *caller {
	own := &pool{values: map[reflect.Type][]value{}, count: c.own.count, slots: 4}
	return &caller{
		Rand: rand.New(rand.NewPCG(seed, 1)), table: c.table, own: own, shared: c.shared, faults: c.faults, log: c.log,
		name: c.name + "b", borrowed: true,
	}
}

// ending reports whether a method ends what it is called on.
func ending(name string) bool {
	for _, s := range []string{".Close", ".Teardown", ".Stop", ".SetLost", ".lose"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// invoke calls something with random arguments and keeps the results.
func (c *caller) invoke(f callable, depth int) {
	if call, ok := c.prepare(f, depth); ok {
		c.run(call)
	}
}

// call is a call with its arguments.
type call struct {
	text string
	f    reflect.Value
	args []reflect.Value
}

func (c *caller) prepare(f callable, depth int) (call, bool) {
	ints, callee, sane := c.ints, c.callee, c.sane
	defer func() { c.ints, c.callee, c.sane = ints, callee, sane }()
	c.ints, c.callee, c.sane = nil, f.name, c.IntN(5) > 1
	fn, text := f.call, f.name
	if f.receiver != nil {
		r := c.argument(f.receiver, depth)
		if ending(f.name) && depth == 0 && c.IntN(16) > 0 && r.Type() == f.receiver && pooled(r.Type()) {
			c.poolOf(r.Type()).drop(r)
		}
		fn = method(r.Value, f.method)
		if !fn.IsValid() {
			return call{}, false
		}
		text = f.name + " of " + r.text + " "
	}
	var args []reflect.Value
	var texts []string
	for i := range fn.Type().NumIn() {
		t := fn.Type().In(i)
		if fn.Type().IsVariadic() && i == fn.Type().NumIn()-1 {
			n := c.IntN(4) * c.IntN(2)
			if c.sane && c.IntN(4) > 0 && t.Elem().Kind() != reflect.Int && t.Elem().Kind() != reflect.Interface {
				n = 0
			}
			for range n {
				a := c.argument(t.Elem(), depth)
				args, texts = append(args, a.Value), append(texts, a.text)
			}
			break
		}
		a := c.argument(t, depth)
		args, texts = append(args, a.Value), append(texts, a.text)
	}
	return call{text + "(" + strings.Join(texts, ", ") + ")", fn, args}, true
}

// method is a method of a value, or nothing if Go itself would panic.
func method(v reflect.Value, i int) reflect.Value {
	if v.IsNil() {
		if v.Kind() == reflect.Interface {
			return reflect.Value{}
		}
		name, elem := v.Type().Method(i).Name, v.Type().Elem()
		if _, ofValue := elem.MethodByName(name); ofValue || promoted(elem, name) {
			return reflect.Value{}
		}
	}
	return v.Method(i)
}

// run makes a call, with a watch on how long it takes.
func (c *caller) run(f call) {
	text := fmt.Sprintf("%s%d: %s", c.name, c.stepping, f.text)
	fmt.Fprintln(c.log, text)
	c.current.Store(&text)
	c.began.Store(time.Now().UnixNano())
	results, ok := c.protected(f)
	c.began.Store(0)
	if !ok {
		return
	}
	var texts []string
	for _, r := range results {
		texts = append(texts, c.keep(r))
	}
	if len(texts) > 0 {
		fmt.Fprintf(c.log, "%s    -> %s\n", c.name, strings.Join(texts, ", "))
	}
}

// userPanic is what functions of the caller's panic with. It may come out of the call that called them.
const userPanic = "a panic of the user's function"

func (c *caller) protected(f call) (results []reflect.Value, ok bool) {
	defer func() {
		if p := recover(); p != nil && p != userPanic {
			c.faults.add(f.text, p, debug.Stack())
		}
	}()
	return f.f.Call(f.args), true
}

// keep puts a result into the pool.
func (c *caller) keep(v reflect.Value) string {
	t := v.Type()
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Func, reflect.Slice, reflect.Map:
		if v.IsNil() {
			return "nil"
		}
	}
	if err, ok := reflect.TypeAssert[error](v); ok {
		if v.Kind() == reflect.Interface {
			return "error " + message(err)
		}
	}
	if t.Kind() == reflect.Slice && !pooled(t) && pooled(t.Elem()) {
		var texts []string
		for i := range v.Len() {
			texts = append(texts, c.keep(v.Index(i)))
		}
		return "{" + strings.Join(texts, ", ") + "}"
	}
	if !pooled(t) {
		return t.String()
	}
	if e, ok := reflect.TypeAssert[interface{ Err() error }](v); ok && e.Err() != nil && c.IntN(8) > 0 {
		return "failed " + message(e.Err())
	}
	if t.Kind() == reflect.Struct { // an addressable one, so that methods of its pointer can be called
		p := reflect.New(t)
		p.Elem().Set(v)
		v = p.Elem()
	}
	put, old := c.poolOf(t).put(c.Rand, v)
	if old.IsValid() {
		c.end(old)
	}
	return put.text
}

// message is the text of an error, which is to have one.
func message(err error) string {
	s := err.Error()
	return fmt.Sprintf("%.160q", s)
}

// enders are methods that give back what a value has.
var enders = []string{"Close", "Release", "Teardown"}

// end gives a value back.
func (c *caller) end(v value) {
	if v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
	}
	for _, name := range enders {
		if m := v.MethodByName(name); m.IsValid() && m.Type().NumIn() == 0 {
			c.run(call{v.text + "." + name + "()", m, nil})
			return
		}
	}
	if v.Type() == releaseType {
		c.run(call{v.text + "()", v.Value, nil})
	}
}

// endAll gives back everything that is left, of types that are devices or of others.
func (c *caller) endAll(p *pool, devices bool) {
	for _, t := range p.types {
		if (t == deviceType || t == driverType) != devices {
			continue
		}
		for _, v := range p.values[t] {
			c.end(v)
		}
		delete(p.values, t)
	}
}

func (c *caller) poolOf(t reflect.Type) *pool {
	if c.shared != nil && slices.Contains(concurrent, t) {
		return c.shared
	}
	return c.own
}

// watch ends the program when a call of one of the callers does not return.
func watch(callers []*caller, limit time.Duration) {
	for range time.Tick(time.Second) {
		for _, c := range callers {
			if at := c.began.Load(); at != 0 && time.Since(time.Unix(0, at)) > limit {
				fmt.Fprintf(os.Stderr, "HANG %s\n", *c.current.Load())
				debug.SetTraceback("all")
				panic("a call does not return")
			}
		}
	}
}
