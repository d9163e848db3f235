// SPDX-License-Identifier: Apache-2.0

package front

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// reserved are the words that name nothing: the keywords of WGSL, and those that it keeps for later.
const reserved = " alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let " +
	"loop override requires return struct switch true var while " +
	"NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class co_await " +
	"co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr constinit crate " +
	"debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter " +
	"final finally friend from fxgroup get goto groupshared highp impl implements import inline instanceof interface layout lowp macro " +
	"macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent " +
	"noncoherent noperspective null nullptr of operator package packoffset partial pass patch pixelfragment precise precision premerge " +
	"priv protected pub public readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof " +
	"smooth snorm static static_assert static_cast std subroutine super target template this thread_local throw trait try type typedef " +
	"typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield "

// is reports whether the next token is a text.
func (p *parser) is(text string) bool { return p.At(p.i) == text }

// accept steps over the next token if it is a text.
func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.i++
		return true
	}
	return false
}

// expect steps over the next token, which must be a text.
func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.unexpected("expected " + text)
	}
}

// unexpected fails because of the next token.
func (p *parser) unexpected(what string) {
	if p.i >= len(p.Tokens) {
		p.fail(p.i, what, ", found the end of the text")
	}
	p.fail(p.i, what, ", found ", p.At(p.i))
}

// ident steps over a word.
func (p *parser) ident() string {
	if !p.IsWord(p.i) {
		p.unexpected("expected a name")
	}
	p.i++
	return p.At(p.i - 1)
}

// declared steps over a name that is declared.
func (p *parser) declared() string {
	name := p.ident()
	if strings.Contains(reserved, " "+name+" ") {
		p.fail(p.i-1, name, " is a reserved word")
	}
	if name == "_" || strings.HasPrefix(name, "__") {
		p.fail(p.i-1, name, " is no name: it must not begin with two underscores, or be one")
	}
	for _, r := range name {
		if r >= 0x80 && !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc) {
			p.fail(p.i-1, name, " is no name")
		}
	}
	return name
}

// joined returns the characters of the next n tokens if there are no blanks between them.
func (p *parser) joined(n int) string {
	for k := range n {
		if p.Char(p.i+k) == 0 || k > 0 && p.Tokens[p.i+k].Pos != p.Tokens[p.i+k-1].End {
			return ""
		}
	}
	return p.Text[p.Pos(p.i):p.Tokens[p.i+n-1].End]
}

// operator is one of two operands.
type operator struct {
	text  string
	op    ir.Op
	level int // how strongly it binds
}

// The levels of operators.
const (
	levelOr = 1 + iota
	levelAnd
	levelBits
	levelCompare
	levelShift
	levelAdd
	levelMul
)

// operators are those of two operands, the longer ones first.
var operators = []operator{
	{"||", ir.OrElse, levelOr},
	{"&&", ir.AndAlso, levelAnd},
	{"<<", ir.ShiftLeft, levelShift},
	{">>", ir.ShiftRight, levelShift},
	{"==", ir.Eq, levelCompare},
	{"!=", ir.Ne, levelCompare},
	{"<=", ir.Le, levelCompare},
	{">=", ir.Ge, levelCompare},
	{"<", ir.Lt, levelCompare},
	{">", ir.Gt, levelCompare},
	{"|", ir.Or, levelBits},
	{"^", ir.Xor, levelBits},
	{"&", ir.And, levelBits},
	{"+", ir.Add, levelAdd},
	{"-", ir.Sub, levelAdd},
	{"*", ir.Mul, levelMul},
	{"/", ir.Div, levelMul},
	{"%", ir.Mod, levelMul},
}

// binaryOperator returns the operator that comes next, or nil. One with an = behind it is an assignment.
func (p *parser) binaryOperator() *operator {
	c := p.Char(p.i)
	if c == 0 || c == '>' && p.noClose || p.assignment() != "" {
		return nil
	}
	for k := range operators {
		if o := &operators[k]; o.text[0] == c && o.text == p.joined(len(o.text)) {
			return o
		}
	}
	return nil
}

// assignment returns the assignment operator that comes next, or "".
func (p *parser) assignment() string {
	for n := 3; n > 0; n-- {
		s := p.joined(n)
		switch s {
		case "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--":
			return s
		case "==":
			return ""
		case "=":
			return s
		}
	}
	return ""
}

// number reads a literal.
func (p *parser) number() *operand {
	at := p.i
	text := p.At(at)
	if p.Char(at) == '.' {
		text += p.At(at + 1)
		p.i++
	}
	p.i++
	digits, suffix := text, byte(0)
	hex := len(text) > 1 && text[0] == '0' && text[1]|0x20 == 'x'
	if last := text[len(text)-1]; last == 'i' || last == 'u' || last == 'h' || last == 'f' && (!hex || strings.ContainsAny(text, "pP")) {
		digits, suffix = text[:len(text)-1], last
	}
	float := strings.ContainsAny(digits, ".pP") || !hex && strings.ContainsAny(digits, "eE") || suffix == 'f' || suffix == 'h'
	if strings.Contains(text, "_") || float && (suffix == 'i' || suffix == 'u') || !hex && !float && len(digits) > 1 && digits[0] == '0' {
		p.fail(at, text, " is no number")
	}
	if suffix == 'h' {
		p.fail(at, "f16 is not available")
	}
	if float {
		return p.float(at, text, digits, hex, suffix)
	}
	base := 10
	if hex {
		digits, base = digits[2:], 16
	}
	v, err := strconv.ParseUint(digits, base, 63)
	k, most := abstractInt, uint64(math.MaxInt64)
	switch suffix {
	case 'i':
		k, most = ir.I32, math.MaxInt32
	case 'u':
		k, most = ir.U32, math.MaxUint32
	}
	if errors.Is(err, strconv.ErrSyntax) {
		p.fail(at, text, " is no number")
	}
	if err != nil || v > most {
		p.fail(at, text, " is out of range")
	}
	return &operand{at: at, t: p.types.Scalar(k), c: []uint64{v}}
}

func (p *parser) float(at int, text, digits string, hex bool, suffix byte) *operand {
	if hex && !strings.ContainsAny(digits, "pP") {
		digits += "p0"
	}
	bits, k := 64, abstractFloat
	if suffix == 'f' {
		bits, k = 32, ir.F32
	}
	v, err := strconv.ParseFloat(digits, bits)
	if errors.Is(err, strconv.ErrSyntax) {
		p.fail(at, text, " is no number")
	}
	if err != nil {
		p.fail(at, text, " is out of range")
	}
	return &operand{at: at, t: p.types.Scalar(k), c: []uint64{math.Float64bits(v)}}
}

// isNumber reports whether a literal comes next.
func (p *parser) isNumber() bool {
	at := p.i
	if p.Char(at) == '.' && at+1 < len(p.Tokens) && p.Tokens[at].End == p.Tokens[at+1].Pos {
		at++
	}
	return at < len(p.Tokens) && p.Tokens[at].Kind == wgsl.Number
}
