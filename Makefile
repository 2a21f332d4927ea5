# Keryx. `make help` lists the targets.

GO            ?= go
LINT          := tools/bin/golangci-lint
# The race detector makes tests slower; the bound is for each package.
TEST_TIMEOUT  ?= 20m

.DEFAULT_GOAL := all
.PHONY: all build lint test tools unit bench fmt generate image-files clean help

all: build test ## build, lint and test (the default)

build: ## build the three binaries into bin/
	$(GO) build -o bin/ ./cmd/...

lint: $(LINT) ## run the linters, check formatting and go.mod
	$(GO) mod tidy -diff
	$(LINT) run ./...

test: lint unit ## lint, then run all tests with the race detector

tools: ## get what the tests need beyond Go, where it is missing
	tools/fetch-test-tools

unit: tools ## run all tests with the race detector, without the linters
	$(GO) test -race -timeout $(TEST_TIMEOUT) ./...

# Add packages here, and rows in internal/benchreport/make.
BENCHES := 'Terminal|ExecToFirstByte|KeyToEcho|CommandToFollower|Appends|Page$$|Start$$|IdleSessions'

bench: ## compare with doing the same without Keryx, into docs/bench.md
	@mkdir -p bin
	$(GO) test -run '^$$' -bench $(BENCHES) -benchtime 1s -p 1 ./internal/process ./internal/execution \
		./internal/authority ./internal/sessionlog ./internal/node > bin/bench.txt
	$(GO) run ./internal/benchreport/make < bin/bench.txt > docs/bench.md
	@cat docs/bench.md

fmt: $(LINT) ## rewrite files as the formatters want them
	$(LINT) fmt ./...

generate: ## rewrite the schemas from the catalogue
	$(GO) generate ./...

image-files: ## put static binaries and what else the images need into image/
	tools/image-files

clean: ## remove what the other targets made
	rm -rf bin tools/bin image

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The linter has a module of its own, so that its dependencies stay out of ours.
$(LINT): tools/go.mod tools/go.sum
	$(GO) build -C tools -o bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
