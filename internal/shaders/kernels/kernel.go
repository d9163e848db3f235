// SPDX-License-Identifier: Apache-2.0

// Package kernels has the compute kernels of matrices: element-wise passes, reductions, softmax, products, and those of sparse
// matrices. Functions plan launches of them: which kernel in which size, how many workgroups, with which parameters. Most
// families have kernels for hardware and others for software adapters, which pay dearly for workgroup memory and barriers.
package kernels

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Device is what the choice of a kernel depends on.
type Device struct {
	Software    bool // it runs on the CPU
	SwiftShader bool // software with vectors of four and few registers, where large tiles take long to compile
	Quads       bool // it has subgroups, of which each four invocations in a row are a quad
	Native      bool // software that runs Go code in place of kernels
	Integrated  bool // hardware that shares the CPU's memory
	// SIMD is set for software with vectors of four that runs invocations one after another: to [SIMD], which only programs have that
	// may have such a device.
	SIMD           *Special
	MaxInvocations int       // of one workgroup
	MaxMemory      int       // bytes of workgroup memory of one kernel
	_              [0]func() // comparing devices would be code that programs for pages do not need
	Tuned          *Tuned    // nil if the device was not tuned
}

// Portable is the device that every WebGPU implementation is at least.
var Portable = Device{MaxInvocations: 256, MaxMemory: 16384}

var (
	//go:embed elementwise/linear.wgsl
	linearText string
	//go:embed elementwise/grid.wgsl
	gridText string
	//go:embed elementwise/block.wgsl
	blockText string
	//go:embed elementwise/words.wgsl
	wordsText string
	//go:embed reduce/rows.wgsl
	foldRowsText string
	//go:embed reduce/tree.wgsl
	foldTreeText string
	//go:embed reduce/cols.wgsl
	foldColsText string
	//go:embed softmax/rows.wgsl
	softmaxRowsText string
	//go:embed softmax/short.wgsl
	softmaxShortText string
	//go:embed softmax/group.wgsl
	softmaxGroupText string
	//go:embed softmax/hard.wgsl
	oneHotText string
	//go:embed sort/keys.wgsl
	sortKeysText string
	//go:embed sort/merge.wgsl
	sortMergeText string
	//go:embed sort/take.wgsl
	sortTakeText string
	//go:embed scan/parts.wgsl
	scanPartsText string
	//go:embed scan/rows.wgsl
	scanRowsText string
	//go:embed scan/chunks.wgsl
	scanChunksText string
	//go:embed product/tile.wgsl
	tileText string
	//go:embed product/outer.wgsl
	outerText string
	//go:embed product/group.wgsl
	groupText string
	//go:embed product/row.wgsl
	rowText string
	//go:embed product/stream.wgsl
	streamText string
	//go:embed product/sum.wgsl
	sumText string
	//go:embed sparse/rows.wgsl
	sparseRowsText string
	//go:embed sparse/sum.wgsl
	sparseSumText string
	//go:embed sparse/scatter.wgsl
	scatterText string
	//go:embed factor/eliminate.wgsl
	eliminateText string
	//go:embed factor/swap.wgsl
	swapText string
	//go:embed factor/invert.wgsl
	invertText string
	//go:embed factor/reflect.wgsl
	reflectText string
	//go:embed factor/rotate.wgsl
	rotateText string
)

// form is a kernel's file.
type form struct {
	name       string
	text       *string
	params     string // those that the text is specialised by
	own, shape int    // storage bindings before those of the function, and words of Shape
	member     *member
}

// member is what a form brings itself that only some programs have: one of a family, or one that comes with the rest of a page's program.
type member struct {
	part  func(*Kernel, *fuse.Func) string // returns the form's own text for the fused region
	whole func(*Kernel) bool               // reports whether each row ends with a whole vector; nil if indices may be out of range
}

var (
	mapLinear      = &form{"elementwise/linear", &linearText, "TAIL SIZE EACH", 0, 4, nil}
	mapGrid        = &form{"elementwise/grid", &gridText, "TAIL WX WY FOLD", 0, 4, nil}
	mapBlock       = &form{"elementwise/block", &blockText, "TAIL WX WY EACH EDGE FOLD", 0, 4, nil}
	mapWords       = &form{"elementwise/words", &wordsText, "EACH", 0, 4, nil}
	foldRows       = &form{"reduce/rows", &foldRowsText, "SIZE", 0, 8, nil}
	foldTree       = &form{"reduce/tree", &foldTreeText, "SIZE", 0, 8, nil}
	foldCols       = &form{"reduce/cols", &foldColsText, "WIDE", 0, 8, nil}
	softmaxRows    = &form{"softmax/rows", &softmaxRowsText, "LOG SIZE", 0, 4, nil}
	softmaxShort   = &form{"softmax/short", &softmaxShortText, "LOG SIZE QUADS", 0, 4, nil}
	softmaxGroup   = &form{"softmax/group", &softmaxGroupText, "LOG SIZE", 0, 4, nil}
	oneHotForm     = &form{"softmax/hard", &oneHotText, "", 0, 8, nil}
	scanPartsForm  = &form{"scan/parts", &scanPartsText, "", 0, 4, &member{part: scanText}}
	scanRowsForm   = &form{"scan/rows", &scanRowsText, "", 0, 4, &member{part: scanText}}
	scanChunksForm = &form{"scan/chunks", &scanChunksText, "", 1, 4, &member{part: scanText}}
	sortKeysForm   = &form{"sort/keys", &sortKeysText, "DOWN", 0, 4, &member{part: keyText}}
	sortMergeForm  = &form{"sort/merge", &sortMergeText, "", 1, 8, nil}
	sortTakeForm   = &form{"sort/take", &sortTakeText, "INDEX", 1, 4, nil}
	productTile    = &form{"product/tile", &tileText, "GROUP RQ RT CQ RAGGED EDGE", 2, 16, nil}
	productOuter   = &form{"product/outer", &outerText, "GROUP RQ RT CQ EDGE SHARE", 2, 16, nil}
	productQuads   = &form{"product/quads", &outerText, "GROUP RQ RT CQ EDGE SHARE", 2, 16, nil} // outer with SHARE
	productGroup   = &form{"product/group", &groupText, "TX TY THREADS RQ CQ KQ DEPTH AW BW LOADS BLOCKS_A BLOCKS A_ALONG_K B_ALONG_K", 2, 16, nil}
	productRow     = &form{"product/row", &rowText, "LANES COLS THREADS B_ALONG_K", 2, 16, nil}
	productStream  = &form{"product/stream", &streamText, "RAGGED", 2, 16, nil}
	productSum     = &form{"product/sum", &sumText, "", 1, 4, nil}
	sparseRows     = &form{"sparse/rows", &sparseRowsText, "PLACED SIZE WIDE", 4, 8, nil}
	sparseSum      = &form{"sparse/sum", &sparseSumText, "", 2, 4, nil}
	sparseScatter  = &form{"sparse/scatter", &scatterText, "", 3, 12, nil}
	eliminateForm  = &form{"factor/eliminate", &eliminateText, "SIZE PIVOT JORDAN", 0, 12, nil}
	swapForm       = &form{"factor/swap", &swapText, "REVERSE", 0, 8, nil}
	invertForm     = &form{"factor/invert", &invertText, "UNIT", 1, 8, nil}
	reflectForm    = &form{"factor/reflect", &reflectText, "SIZE COLS", 0, 4, nil}
	rotateForm     = &form{"factor/rotate", &rotateText, "PAIRS LANES", 0, 8, nil}
)

// Kernel is what the text of a kernel depends on beside its function.
type Kernel struct {
	form   *form
	params []int  // the values of those of its file
	fold   fold   // of folds
	a, b   Factor // of products
	lines  int    // of products: rows of A that are loaded at once
	native bool   // of products: by package gemm
}

// Launch is one launch of a kernel.
type Launch struct {
	Kernel
	Groups [3]uint32
	Shape  []int   // begins the parameter block
	Sooner *Launch // computes the same until the kernel is compiled; nil: it is worth waiting for
}

// launch completes the description of a launch.
func (k Kernel) launch(groups int, shape ...int) *Launch {
	return &Launch{Kernel: k, Groups: shaders.Fold(groups), Shape: append(shape, make([]int, k.form.shape-len(shape))...)}
}

// Key identifies the text of the kernel with a function, which may be nil for a kernel that has none.
func (k *Kernel) Key(f *fuse.Func) string {
	b := append([]byte(k.form.name), byte(k.fold.op), byte(k.fold.of), byte(shaders.Bit(k.fold.next)|2*shaders.Bit(k.fold.last)), k.a.key(), k.b.key(), byte(k.lines), byte(shaders.Bit(k.native)))
	for _, p := range k.params {
		b = binary.AppendUvarint(b, uint64(p))
	}
	if f != nil {
		b = f.Key(b)
	}
	return string(b)
}

// Name is for people.
func (k *Kernel) Name() string {
	words := []string{k.form.name}
	for _, p := range k.params {
		words = append(words, strconv.Itoa(p))
	}
	return strings.Join(words, " ")
}

// Program writes the text.
func (k *Kernel) Program(f *fuse.Func) shaders.Program {
	p := shaders.Program{Name: k.Name(), Own: k.form.own}
	fused := ""
	if f != nil {
		fused = f.Text(1+k.form.own, k.form == mapBlock, k.part(f))
		p.Inputs = len(f.Slots) - 1
	}
	if f == nil || len(f.Calls) == 0 {
		p.Reference = reference{k, f}
	}
	if runsNative && k.native {
		p.Native = reference{k, f}
	}
	params, names := make([]shaders.Param, len(k.params)), strings.Fields(k.form.params)
	for i, v := range k.params { // the file has values for the others
		params[i] = shaders.Param{Name: names[i], Value: v}
	}
	p.Source = shaders.Expand(*k.form.text, fused, params...)
	if k.form == productQuads { // the invocations of a quad have the same band, and so the same part and the same k
		p.Source = "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n" + p.Source
	}
	return p
}

// Exact reports whether a program keeps to its bindings: its form does, and its function reads vectors at most, of rows that end with
// one, or single elements.
func (k *Kernel) Exact(f *fuse.Func) bool {
	if f == nil {
		return false
	}
	whole := false // rows end with a vector
	switch k.form {
	case mapLinear, mapGrid:
		whole = k.params[0] == 0
	case foldRows, softmaxRows, softmaxShort:
	default:
		if k.form.member == nil || k.form.member.whole == nil {
			return false
		}
		whole = k.form.member.whole(k)
	}
	return len(f.Calls) == 0 && !slices.ContainsFunc(f.Loads, func(v fuse.View) bool {
		return v.Class != fuse.Vector && v.Class != fuse.Column && v.Class != fuse.Beside && (v.Class != fuse.Gather || !whole)
	})
}

// part is what the kernel itself has in the fused region.
func (k *Kernel) part(f *fuse.Func) string {
	t := f.Type
	switch k.form {
	case mapLinear, mapGrid:
		return f.Assign()
	case mapBlock:
		return f.Assign4()
	case mapWords:
		return f.Store.Type.Inserted(t)
	case foldRows, foldTree, foldCols:
		return k.fold.text()
	case softmaxRows, softmaxShort, softmaxGroup:
		return "fn logarithm(x: V) -> V { return " + fuse.OpLog.Text(t, "x") + "; }\n"
	case productOuter, productQuads:
		shared := k.form == productQuads
		return k.a.outerText("a", 1, k.lines, shared) + k.b.outerText("b", 2, 0, false) + addingText(t, shared)
	case productTile, productGroup, productRow, productStream:
		return k.a.text("a", 1, k.lines) + k.b.text("b", 2, 0)
	}
	if k.form.member != nil {
		return k.form.member.part(k, f)
	}
	return ""
}

// reference does what a kernel does, in Go. Kernels of one family differ only in which invocation computes what.
type reference struct {
	k *Kernel
	f *fuse.Func
}

// Run implements [shaders.Reference].
func (r reference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	shape := make([]int, r.k.form.shape)
	for i := range shape {
		shape[i] = int(word(params, i))
	}
	params = params[4*len(shape):]
	switch {
	case r.k.form == sparseScatter:
		scatter(shape, storage)
	case r.f == nil:
		r.factor(shape, storage)
	case r.f.Type == fuse.F32:
		run[float32](r, shape, params, storage)
	case r.f.Type == fuse.I32:
		run[int32](r, shape, params, storage)
	default:
		run[uint32](r, shape, params, storage)
	}
}

func run[N fuse.Num](r reference, shape []int, params []byte, storage [][]byte) {
	own := r.k.form.own
	e, ok := fuse.NewEval[N](r.f, params, storage[own:])
	if !ok {
		return
	}
	storage = storage[:own]
	switch r.k.form {
	case mapLinear:
		apply(e, 1, shape[0])
	case mapGrid, mapBlock, mapWords:
		apply(e, shape[0], shape[1])
	case foldRows, foldTree, foldCols:
		foldAll(r, e, shape)
	case softmaxRows, softmaxShort, softmaxGroup, softmaxHeld:
		softmax(r.k, e, shape[0], shape[1])
	case oneHotForm:
		oneHot(e, shape)
	case scanPartsForm, scanRowsForm, scanChunksForm:
		scan(r.k, e, shape)
	case sortKeysForm:
		sortKeys(r.k, e, shape[0], shape[1])
	case sortMergeForm:
		sortMerge(e, shape, storage[0])
	case sortTakeForm:
		sortTake(r.k, e, shape, storage[0])
	case productTile, productOuter, productQuads, productGroup, productRow, productLine, productDots, productStream:
		multiply(r.k, e, shape, storage)
	case productPanel:
		multiplyPanels(r.k, e, shape, storage)
	case productPack:
		packPanels(e, shape)
	case productSum, sparseSum:
		addParts(r, e, shape, storage)
	case sparseRows:
		multiplySparse(r.k, e, shape, storage)
	}
}

// word returns number k of some memory, and 0 beyond its end.
func word(mem []byte, k int) uint32 {
	if k < 0 || k >= len(mem)/4 {
		return 0
	}
	return binary.LittleEndian.Uint32(mem[4*k:])
}

// quads is how many vectors of four hold n elements.
func quads(n int) int { return shaders.Ceil(n, 4) }
