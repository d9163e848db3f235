// The generator of the kernels for amd64 is a module of its own, so that the library does not depend on avo.
module github.com/sublet-gpu/sublet/internal/gemm/asm

go 1.26

require github.com/mmcloughlin/avo v0.6.0

require (
	golang.org/x/mod v0.33.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/tools v0.42.0 // indirect
)
