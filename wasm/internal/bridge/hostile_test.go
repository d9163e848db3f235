// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"encoding/binary"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/ops"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

func TestMalformedMessages(t *testing.T) {
	const none = 999
	eval := func(expr ...[]uint32) []uint32 {
		return command(page.CmdEval, join(append([][]uint32{{9}}, expr...)...)...)
	}
	for name, message := range map[string][]uint32{
		"no command":             {0},
		"length 0":               {uint32(page.CmdFlush)},
		"beyond the end":         {5<<8 | uint32(page.CmdFlush), 1},
		"unknown command":        command(200),
		"too few words":          command(page.CmdNew, 9),
		"too many words":         command(page.CmdFlush, 1),
		"unknown type":           command(page.CmdNew, 9, 10, 1, 1, 0, 1),
		"unknown form":           command(page.CmdNew, 9, 1<<11, 1, 1, 0, 1),
		"handle in use":          command(page.CmdNew, 1, 0, 1, 1, 0, 1),
		"elements without bytes": command(page.CmdNew, 9, 0, 1, 1, 0, 1, none),
		"elements of no object":  command(page.CmdNew, 9, 0, 1, 1, 0, 1, none, 4),
		"too large":              command(page.CmdNew, 9, 0, math.MaxUint32, math.MaxUint32, 0, math.MaxUint32),
		"stride":                 command(page.CmdFrom, 9, 1, 0, 2, 2, 0, 1, none, 16),
		"no object":              command(page.CmdFrom, 9, 1<<8|1, 0, 1, 1, 0, 1, none, 0),
		"source flags":           command(page.CmdFrom, 9, 0xff, 0, 2, 2, 0, 2, none, 16),
		"source form":            command(page.CmdFrom, 9, 1, 1<<11, 2, 2, 0, 2, none, 16),
		"source offset":          command(page.CmdFrom, 9, 1, 0, 2, 2, math.MaxUint32, 2, none, 16),
		"alias of none":          command(page.CmdAlias, 9, none),
		"alias in use":           command(page.CmdAlias, 1, 1),
		"change of none":         command(page.CmdSetShape, 0, 9, none, 1, 1),
		"sparse of dense":        command(page.CmdSparseEval, join([]uint32{0, 9, 255, 0}, leaf(1))...),
		"sparse of none":         command(page.CmdSparseEval, join([]uint32{0, 9, 255, 0}, leaf(none))...),
		"sparse of nothing":      command(page.CmdSparseEval, 0, 9, 255, 0),
		"sparse format":          command(page.CmdSparseEval, join([]uint32{0, 9, 77, 0}, leaf(1))...),
		"columns of dense":       command(page.CmdSparseEval, join([]uint32{0, 9, 255, 1}, leaf(1))...),
		"values of none":         command(page.CmdValues, 9, none),
		"values of dense":        command(page.CmdValues, 9, 1),
		"data of none":           command(page.CmdData, none, none, 4),
		"data too short":         command(page.CmdData, 1, none, 4),
		"data too long":          command(page.CmdData, 1, none, 400),
		"touch of none":          command(page.CmdTouch, none),
		"empty expression":       eval(),
		"instruction length 0":   eval([]uint32{uint32(bridge.OpLeaf)}),
		"instruction too long":   eval([]uint32{9<<16 | uint32(bridge.OpLeaf), 1}),
		"unknown operation":      eval(leaf(1), instruction(30, f32, 0)),
		"unknown unary":          eval(leaf(1), instruction(249, f32, 0)),
		"unknown binary":         eval(leaf(1), instruction(250, f32, 0, 0)),
		"no such leaf":           eval(leaf(none)),
		"forward reference":      eval(instruction(bridge.OpUnary, f32, 1), leaf(1)),
		"own value":              eval(leaf(1), instruction(bridge.OpUnary, f32, 1)),
		"huge reference":         eval(leaf(1), instruction(bridge.OpUnary, f32, math.MaxUint32)),
		"words":                  eval(leaf(1), instruction(bridge.OpUnary, f32, 0, 0)),
		"slice":                  eval(leaf(1), instruction(bridge.OpSlice, f32, 0, 0, 9, 0, 1)),
		"negative slice":         eval(leaf(1), instruction(bridge.OpSlice, f32, 0, math.MaxUint32, 1, 0, 1)),
		"reshape":                eval(leaf(1), instruction(bridge.OpReshape, f32, 0, math.MaxUint32, math.MaxUint32)),
		"fill":                   eval(instruction(bridge.OpFill, f32, 0, math.MaxUint32, math.MaxUint32)),
		"reduction":              eval(leaf(1), instruction(bridge.OpReduce, f32, 0, 77, 0, 0)),
		"axis":                   eval(leaf(1), instruction(bridge.OpReduce, f32, 0, 0, 77, 0)),
		"no shaping":             eval(leaf(1), instruction(bridge.OpShape, f32, none, 0)),
		"shaping of too few":     eval(leaf(1), instruction(bridge.OpShape, f32, 11, none, 0)),
		"half a number":          eval(leaf(1), instruction(bridge.OpShape, f32, 11, 1, 0, 0, 0x40000000, 1)),
		"no tensor":              eval(leaf(1), instruction(bridge.OpTensor, f32, none, 1, 0, 1, 4)),
		"a tensor of nothing":    eval(leaf(1), instruction(bridge.OpTensor, f32, 0, 0)),
		"a shape without sizes":  eval(leaf(1), instruction(bridge.OpTensor, f32, 0, 1, 0, math.MaxUint32)),
		"no layer":               eval(leaf(1), layerOf(none, []uint32{0})),
		"a layer of nothing":     eval(leaf(1), layerOf(0, nil)),
		"a layer's half number":  eval(leaf(1), instruction(bridge.OpLayer, f32, 14, 2, 0, 0, 1)),
		"no training":            training(none, [3]uint32{9}, [3]uint32{}, [3]uint32{}, [6]uint32{}, leaf(1)),
		"training of nothing":    training(0, [3]uint32{9}, [3]uint32{}, [3]uint32{}, [6]uint32{}),
		"assign by training":     training(0, [3]uint32{1}, [3]uint32{1}, [3]uint32{}, [6]uint32{}, leaf(1)),
		"no function":            eval(leaf(1), instruction(bridge.OpCall, f32, none, 0)),
		"call without operands":  eval(leaf(1), instruction(bridge.OpCall, f32, none)),
		"element type":           eval(leaf(1), instruction(bridge.OpCast, 10, 0)),
		"assign without target":  command(page.CmdAssign, join([]uint32{0}, number(1))...),
		"assign to a number":     command(page.CmdAssign, join([]uint32{1}, leaf(1), number(1))...),
		"assign to no value":     command(page.CmdAssign, join([]uint32{99}, leaf(1), number(1))...),
		"assign to none":         command(page.CmdAssign, join([]uint32{0}, leaf(none), number(1))...),
		"assign another size":    command(page.CmdAssign, join([]uint32{1}, leaf(1), instruction(bridge.OpSlice, f32, 0, 0, 1, 0, 1), leaf(1))...),
		"assign a larger one":    command(page.CmdAssign, join([]uint32{0}, leaf(1), instruction(bridge.OpFill, f32, 0, 3, 3))...),
		"assign to what is made": command(page.CmdAssign, join([]uint32{1}, leaf(1), instruction(bridge.OpUnary, f32, 0), leaf(1))...),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.newMatrix(1, 2, 2, 1, 2, 3, 4)
			r.post(message)
			if err := r.ask(page.CmdWait); fault.Code(err) == "Error" || fault.Code(err) == page.ErrInternal.Code() {
				t.Errorf("error %v", err)
			}
			_, err := r.read(4, leaf(1)) // tells of an assignment that failed
			if err != nil && !strings.HasPrefix(name, "assign") && !strings.HasPrefix(name, "data") {
				t.Error(err)
			}
			r.wantRead([]float32{1, 2, 3, 4}, leaf(1))
		})
	}
}

func TestTicketsGetErrors(t *testing.T) {
	r := newRig(t)
	wantError(t, r.ask(page.CmdSync, 5), gpu.ErrInvalid)
	wantError(t, r.ask(page.CmdBuffer, 5), gpu.ErrInvalid)
	r.newMatrix(1, 2, 2, 1, 2, 3, 4)
	wantError(t, r.ask(page.CmdBuffer, 1), gpu.ErrUnsupported) // the oracle has none
	_, err := r.read(3, leaf(1))
	wantError(t, err, buffer.ErrShort)
}

func TestTooManyValues(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 1, 1)
	expr := leaf(1)
	for i := range uint32(1 << 16) {
		expr = append(expr, instruction(bridge.OpUnary, f32, i)...)
	}
	_, err := r.read(1, expr)
	wantError(t, err, gpu.ErrInvalid)
}

// FuzzMessage posts any words there are. The bridge must stay alive.
func FuzzMessage(f *testing.F) {
	add := func(words ...uint32) {
		var b []byte
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		f.Add(b)
	}
	add(command(page.CmdEval, join([]uint32{2}, leaf(1), number(1), instruction(bridge.OpBinary, f32, 0, 1))...)...)
	add(command(page.CmdAssign, join([]uint32{0}, leaf(1), leaf(1), instruction(bridge.OpMatMul, f32, 0, 1))...)...)
	add(command(page.CmdRead, join([]uint32{1, 1, 16}, leaf(1), instruction(bridge.OpSlice, f32, 0, 0, 1, 0, 1))...)...)
	add(command(page.CmdFrom, 3, 1, 0x103, 2, 2, 0, 2, 1, 8)...)
	add(command(page.CmdClose, 0, 1)...)
	add(join(command(page.CmdResize, 1, 2, 1, 1, 1), command(page.CmdSetValue, join([]uint32{1, 3, 2}, leaf(2))...))...)
	add(join(command(page.CmdSparse, 4, 1<<16, 0, 0, 1, 0, 1, 0, 1, 1), command(page.CmdEval, 5, 2<<16|1, 4))...)
	add(command(page.CmdSetFrom, 1, 2, 1, 1, 0, 1, 1, 0, 1, 1, 4)...)
	add(join(command(page.CmdLoad, 1, 4, 0, none32, none32, none32, none32), command(page.CmdPass, 2, 4, 1, 16), command(page.CmdTake, 3, 4, 5))...)
	add(join(command(page.CmdSave, 1, 4, 2, 0, 0), command(page.CmdPass, 2, 4, 1, 64), command(page.CmdPass, 3, 4, 1, 0))...)
	add(command(page.CmdEval, join([]uint32{2}, leaf(1), instruction(bridge.OpTensor, f32, 0, 1, 0, 2, 2, 2, 1, 0))...)...)
	add(command(page.CmdEval, join([]uint32{2}, leaf(1), layerOf(14, []uint32{0, 0}, 0.5))...)...)
	add(training(4, [3]uint32{2}, [3]uint32{1}, [3]uint32{}, [6]uint32{}, leaf(1))...)
	add(training(7, [3]uint32{2, 3, 4}, [3]uint32{1}, [3]uint32{}, [6]uint32{1}, leaf(1))...)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<12 {
			return
		}
		words := make([]uint32, len(b)/4)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		r := newRig(t)
		r.newMatrix(1, 2, 2, 1, 2, 3, 4)
		r.post(words)
		ended := false // by the words themselves
		select {
		case <-r.over:
			ended = true
		default:
		}
		if !ended {
			ticket, done := r.page.expect()
			r.post(command(page.CmdWait, ticket))
			select {
			case err := <-done:
				if fault.Code(err) == page.ErrInternal.Code() {
					t.Error(err)
				}
			case <-r.over:
			}
		}
	})
}

// commandNumbers returns the commands by JavaScript's names, as they stand in the protocol's source.
func commandNumbers(t *testing.T) map[string]int {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join("..", "page", "protocol.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check("page", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok && strings.HasPrefix(name, "Cmd") {
			numbers[strings.TrimPrefix(name, "Cmd")], _ = strconv.Atoi(c.Val().String())
		}
	}
	return numbers
}

// reductionNumbers returns the reductions of the table by their names.
func reductionNumbers() map[string]int {
	numbers := map[string]int{}
	for _, o := range ops.Table {
		if o.Class == ops.Reduction {
			numbers[o.Name] = len(numbers)
		}
	}
	return numbers
}

// TestProtocolInStep compares what JavaScript and Go call the commands and the operations.
func TestProtocolInStep(t *testing.T) {
	var text []byte
	for _, name := range []string{"protocol.mjs", "codes.mjs"} {
		part, err := os.ReadFile(filepath.Join("..", "..", "..", "web", "src", name))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	names := map[string]map[string]int{}
	for _, block := range regexp.MustCompile(`(?s)const (\w+) = Object\.freeze\([^{}]*\{(.*?)\}[,)]`).FindAllStringSubmatch(string(text), -1) {
		names[block[1]] = map[string]int{}
		for _, pair := range regexp.MustCompile(`(\w+): (\d+)`).FindAllStringSubmatch(block[2], -1) {
			name := pair[1]
			if block[1] == "ElementWise" {
				name = strings.ToLower(name)
			}
			names[block[1]][name], _ = strconv.Atoi(pair[2])
		}
	}
	for group, want := range map[string]map[string]int{
		"Command":     commandNumbers(t),
		"FileFlag":    {"Strict": strictly, "LastWins": lastWins, "Scan": scanning},
		"Op":          bridge.OpNumbers(),
		"ElementWise": bridge.ElementWiseNumbers(),
		"Reduction":   reductionNumbers(),
		"Axis":        {"All": int(fuse.AxisAll), "Rows": int(fuse.AxisRows), "Cols": int(fuse.AxisCols)},
	} {
		got := names[group]
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%s.%s is %d in JavaScript, %d in Go", group, name, got[name], n)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %d names in JavaScript, %d in Go", group, len(got), len(want))
		}
	}
}

func TestInternalErrorsHaveACode(t *testing.T) {
	if code := fault.Code(page.ErrInternal); code != "ErrInternal" {
		t.Errorf("code %q", code)
	}
}
