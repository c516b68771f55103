# Shared by the scripts of this folder: Go programs with pinned modules, npm packages, Debian packages, and the
# comparison of what was seen with what was seen before. A script sets dir to a temporary folder, which is removed at
# the end.
# shellcheck shell=bash
set -euo pipefail
servers=()                                # process IDs that finish stops
date=$(sed -n 's/^# Date: *//p' "$0") # of the header, as are the facts that seen_is compares with
cd "$dir"

finish() {
	if ((${#servers[@]} > 0)); then
		kill "${servers[@]}" 2>/dev/null || true
		wait "${servers[@]}" 2>/dev/null || true
	fi
	chmod -R u+w "$dir"
	rm -rf "$dir"
}
trap finish EXIT

# go_run runs the Go program on standard input with the modules given as path@version, and adds its output to the file
# seen. The variable release names another Go release.
go_run() {
	mkdir -p program
	cat >program/main.go
	(
		cd program
		export GOWORK=off GOFLAGS=-mod=mod GOTOOLCHAIN=${release:-go1.26.8}
		rm -f go.mod go.sum
		go mod init finding
		for module in "$@"; do go mod edit -require="$module"; done
		go build -o run .
	) >log 2>&1 || { cat log >&2; return 1; }
	./program/run 2>&1 | tee -a seen
}

# npm_install installs packages given as name@version. Nothing that they bring is run at installation.
npm_install() {
	npm install --ignore-scripts --no-audit --no-fund "$@" >log 2>&1 || { cat log >&2; return 1; }
}

# debian installs the packages that are not installed. It needs root for those.
debian() {
	local package
	for package in "$@"; do
		dpkg -s "$package" >/dev/null 2>&1 && continue
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package"; } >log 2>&1 ||
			{ cat log >&2; return 1; }
	done
}

# seen_is fails unless the file seen equals standard input.
seen_is() {
	if ! diff - seen; then
		echo "This has changed: < is what was seen on $date, > is what was seen now." >&2
		return 1
	fi
	echo "As on $date."
}
