# "make check" is what has to pass; the steps of .ci/run can be run one by one.
.PHONY: check quick test lint fuzz simulate bench cover fmt update temporal-soak

check:
	.ci/run

# For use after each edit. The go command keeps the results of tests that the edit does not concern.
quick:
	go vet ./...
	go test -short ./...
	go tool -modfile=tools/go.mod golangci-lint run .

test:
	go test ./...

lint:
	.ci/run format tidy lint

fuzz:
	.ci/run fuzz

simulate:
	go -C internal/tests/simulation run ./simulate -n 1000000

bench:
	cd benchmarks && go run ./report

cover:
	.ci/run race

fmt:
	go tool -modfile=tools/go.mod golangci-lint fmt

# make update MODULE=golang.org/x/time VERSION=v0.15.0
update:
	.ci/update "$(MODULE)" "$(VERSION)"

# A real server of Temporal; building it takes about 8 minutes the first time.
temporal-soak:
	GOBIN=$(CURDIR)/bin go install github.com/temporalio/cli/cmd/temporal@v1.5.1
	go -C temporalpayvault/internal/soak run . -temporal $(CURDIR)/bin/temporal
	go -C temporalpayvault/internal/soak run . -temporal $(CURDIR)/bin/temporal \
		-codec -cards 8000 -batches 4 -kills 2 -faults 0.2
