# make build   the static binary, in bin/
# make test    everything that CI checks: formatting, vet, staticcheck, catalogue lint, all tests
# make unit    the packages' own tests only, quickly
# make lint    the static checks
# make bench   speed and size against the bars (1 GiB a form; BENCH=-size=64MiB for a trial)
# make release VERSION=0.1.0   archives, what is in them (SBOM), and checksums, in dist/; see CONTRIBUTING.md

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION    ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
CYCLONEDX   ?= github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
PLATFORMS   ?= linux_amd64 linux_arm64
OUT         ?= bin/rwannotate
TOOLS       := $(CURDIR)/.tools

# A binary of less than 16 MB, as it is copied to every node: 18.2 with a plain go build. The catalogue is
# packed; there is no HTTP/2, which Loki's push does not need; and what never runs for a line of a log is
# not inlined.
OUTLINED := crypto/... encoding/asn1 encoding/json html/... internal/profile log/... math/big net/... runtime/pprof text/... vendor/... \
	github.com/goccy/... github.com/prometheus/... github.com/schollz/... github.com/spf13/... google.golang.org/...
BUILD := CGO_ENABLED=0 go build -trimpath -tags packed,nethttpomithttp2 $(OUTLINED:%=-gcflags=%=-l) -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)"

# Tests with real servers, browsers or clocks: run after the others, one package at a time, so
# that they have the machine to themselves. Most of them wait most of the time.
ALONE := ./test/loki ./test/scenarios ./test/torture ./test/web

export PATH := $(TOOLS):$(PATH)

.PHONY: build packed test unit lint fmt vet staticcheck catalogue tools bench release clean clean-dist

build: packed
	$(BUILD) -o $(OUT) ./cmd/rwannotate

packed:
	GOOS= GOARCH= go generate ./patterns

test: tools lint
	go test -race -timeout 15m $$(go list ./... | grep -vE '/test/(loki|scenarios|torture|web)(/|$$)')
	cd test/configs/k8s && go vet ./... && go test ./...
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

# The same commit gives the same bytes.
release: clean-dist $(PLATFORMS:%=dist/rwannotate_$(VERSION)_%.tar.gz)
	rm -rf dist/doc
	cd dist && sha256sum *.tar.gz *.cdx.json >SHA256SUMS && cat SHA256SUMS

# Nothing of an earlier release may stay.
clean-dist:
	rm -rf dist

dist/rwannotate_$(VERSION)_%.tar.gz: dist/doc packed
	rm -rf dist/$* && cp -r dist/doc dist/$*
	GOOS=$(word 1,$(subst _, ,$*)) GOARCH=$(word 2,$(subst _, ,$*)) $(BUILD) -o dist/$*/rwannotate ./cmd/rwannotate
	go run $(CYCLONEDX) bin -json -noserial -notimestamp -output dist/rwannotate_$(VERSION)_$*.cdx.json -version v$(VERSION) dist/$*/rwannotate
	tar -C dist/$* --sort=name --mtime=@$$(git log -1 --format=%ct) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - . | gzip -n9 >$@
	rm -rf dist/$*

dist/doc: clean-dist
	mkdir -p dist/doc/completion dist/doc/configs
	cp LICENSE README.md CHANGELOG.md dist/doc
	git archive HEAD configs | tar -x -C dist/doc
	go run -ldflags "-X main.version=$(VERSION)" ./cmd/rwannotate man dist/doc/man >/dev/null
	for shell in bash zsh fish powershell; do go run ./cmd/rwannotate completion $$shell >dist/doc/completion/rwannotate.$$shell || exit 1; done

clean: clean-dist
	rm -rf bin patterns/*.zst $(TOOLS)
