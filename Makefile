# make build   the static binary, in bin/
# make test    everything that CI checks: formatting, vet, staticcheck, catalogue lint, all tests
# make unit    the packages' own tests only, quickly
# make lint    the static checks
# make bench   speed and size against the bars (1 GiB a form; BENCH=-size=64MiB for a trial)

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
TOOLS       := $(CURDIR)/.tools

# Tests with real servers, browsers or clocks: run after the others, one package at a time, so
# that they have the machine to themselves. Most of them wait most of the time.
ALONE := ./test/loki ./test/scenarios ./test/torture ./test/web

export PATH := $(TOOLS):$(PATH)

.PHONY: build test unit lint fmt vet staticcheck catalogue tools bench clean

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/rwannotate ./cmd/rwannotate

test: tools lint
	go test -race -timeout 15m $$(go list ./... | grep -vE '/test/(loki|scenarios|torture|web)(/|$$)')
	go test -count=1 -timeout 15m -p 1 -parallel 4 $$(go list $(foreach d,$(wildcard $(ALONE)),$d/...))

unit:
	go test ./cmd/... ./internal/... ./patterns/...

lint: fmt vet staticcheck catalogue

fmt:
	@diff=$$(gofmt -s -d cmd internal patterns test); [ -z "$$diff" ] || { echo "$$diff"; exit 1; }

vet:
	go vet ./...

staticcheck:
	go run $(STATICCHECK) ./...

catalogue:
	go run ./cmd/rwannotate patterns lint patterns

tools:
	@test/tools/install.sh $(TOOLS)

bench:
	go run ./test/bench $(BENCH)

clean:
	rm -rf bin $(TOOLS)
