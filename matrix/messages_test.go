// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/ops"
	"github.com/sublet-gpu/sublet/matrix"
)

// textCall is an operation of the table as a text of operands and of as many numbers as it has to be given, from one of them on.
func textCall(o ops.Operation, number int, operands ...string) string {
	count, numbers := o.Arity(), o.Least
	switch {
	case o.Class == ops.Limits:
		count, numbers = 1, 2
	case o.Class == ops.Shaping:
		count = len(operandsOf(o))
	case o.Takes == ops.Power || o.Takes == ops.Most:
		numbers = 1
	}
	args := slices.Clone(operands[:count])
	for i := range numbers {
		args = append(args, strconv.Itoa(number+i))
	}
	return o.Text[0] + "(" + strings.Join(args, ", ") + ")"
}

// operandsOf are the types of a shaping's operands.
func operandsOf(o ops.Operation) (list []string) {
	untyped := 0
	for part := range strings.SplitSeq(o.Params, ", ") {
		_, kind, typed := strings.Cut(part, " ")
		untyped++
		if !typed {
			continue
		}
		if strings.Contains(kind, "Operand") {
			list = append(list, slices.Repeat([]string{kind}, untyped)...)
		}
		untyped = 0
	}
	if len(list) == 1 && strings.HasPrefix(list[0], "...") {
		list = append(list, list[0])
	}
	return list
}

// anySize are the operations of several operands, or of sizes, whose operands may have any.
var anySize = []string{
	"Eye", "Arange", "Linspace", "Diag", "Diagonal", "Tril", "Triu", "Band", "RepeatRows", "RepeatCols", "Tile", "FlipRows", "FlipCols", "Roll", "Pad", "Kron",
	"LowerLU", "UpperLU", "PermutedLU", "QFactor", "RFactor", "SingularValues", "LeftVectors", "RightVectors", "PseudoInverse", "Rank", "Cond",
	"RandomBits", "Uniform", "Normal", "TruncatedNormal", "Gumbel", "RandomIntegers", "RandomMask", "Permutation", "Slice", "Histogram", "BinCount",
	"CountUnique", "Unique", "UniqueCounts", "Real", "Imag", "Angle", "Conj", "ConjTranspose",
}

// TestShapeMessages calls every operation with operands of sizes that do not go together: errors have the sizes, and say which would.
func TestShapeMessages(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, o := range ops.Table {
			if len(o.Text) == 0 {
				continue
			}
			found := false
			for _, first := range [][2]int{{2, 3}, {3, 3}} {
				vars := map[string]matrix.Operand[float32]{
					"A": matrix.Fill[float32](first[0], first[1], 1).On(dev), "B": matrix.Fill[float32](5, 7, 1).On(dev),
					"C": matrix.Fill[float32](4, 9, 1).On(dev), "D": matrix.Fill[float32](8, 6, 1).On(dev),
				}
				text := textCall(o, 4, "A", "B", "C", "D")
				err := matrix.Eval(text, vars).Err()
				var op *gpu.OpError
				square := errors.Is(err, matrix.ErrNotSquare)
				if !square && !errors.Is(err, buffer.ErrShape) {
					continue
				}
				found = true
				shapes := 2
				if square || len(operandsOf(o)) == 1 && o.Name != "Reshape" && o.Name != "BroadcastTo" {
					shapes = 1
				}
				if !errors.As(err, &op) || len(op.Shapes) != shapes || op.Detail == "" || !strings.HasSuffix(err.Error(), ": "+op.Detail) {
					t.Errorf("%s: %v", text, err)
				}
				if name := o.Every; !strings.Contains(err.Error(), ": "+name+": ") {
					t.Errorf("%s: %v does not name %s", text, err, name)
				}
			}
			one := o.Class != ops.Shaping && o.Arity() == 1 || o.Class == ops.Limits
			if free := one || slices.Contains(anySize, o.Name); found == free {
				t.Errorf("%s: an error is %t", o.Name, found)
			}
		}
	})
}

// TestTypeMessages calls every operation with operands of every type: what refuses one lists those that it takes, and no others.
func TestTypeMessages(t *testing.T) {
	types := []matrix.DType{
		matrix.Float32, matrix.Int32, matrix.Uint32, matrix.Float16, matrix.Int8, matrix.Uint8, matrix.Int16, matrix.Uint16, matrix.Bool, matrix.Complex64,
	}
	refused := 0
	for _, o := range ops.Table {
		if len(o.Text) == 0 || o.Class == ops.Shaping && len(operandsOf(o)) == 0 {
			continue
		}
		var takes []string
		errs := map[string]error{}
		for _, dt := range types {
			one := matrix.Fill[matrix.Any](2, 2, 1).ConvertTo(dt)
			err := matrix.Eval(textCall(o, 2, "A", "A", "A", "A"), map[string]matrix.Operand[matrix.Any]{"A": one}).Err()
			if errors.Is(err, gpu.ErrUnsupported) {
				errs[dt.String()] = err
			} else if err == nil || !errors.Is(err, gpu.ErrInvalid) {
				takes = append(takes, dt.String())
			}
		}
		fits := strings.Join(takes, ", ")
		if n := len(takes); n == len(types)-1 {
			fits = "all others"
		} else if n > 1 {
			fits = strings.Join(takes[:n-1], ", ") + " and " + takes[n-1]
		}
		for dt, err := range errs {
			refused++
			if want := "not defined for " + dt + ", but for " + fits; !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", o.Text[0], err, want)
			}
		}
	}
	if refused < 100 {
		t.Error("only so many were refused:", refused)
	}
}

// TestMixedMessages has operands of several types, and a result of another one.
func TestMixedMessages(t *testing.T) {
	vars := map[string]matrix.Operand[matrix.Any]{
		"A": matrix.Fill[matrix.Any](2, 2, 1).ConvertTo(matrix.Float32), "K": matrix.Fill[matrix.Any](2, 2, 1).ConvertTo(matrix.Int32),
		"Z": matrix.Fill[matrix.Any](2, 2, 1).ConvertTo(matrix.Complex64),
	}
	for text, want := range map[string]string{
		"A + K": "Add: invalid argument: float32 with int32; convert one, as in float32(A)", "K * A": "Mul: invalid argument: int32 with float32; convert one, as in float32(A)",
		"Z + K": "Add: invalid argument: int32 with complex64; convert one, as in float32(A)", "vstack(A, K)": "VStack: invalid argument: float32 with int32; convert one, as in float32(A)",
	} {
		if err := matrix.Eval(text, vars).Err(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
