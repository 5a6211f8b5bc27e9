#!/usr/bin/env bash
# All tests and the linters, from one build; the last line sums them up. Exits non-zero if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

# The end-to-end tests start the executables, which `cargo test` alone would not build.
cargo build --locked --workspace --all-targets || {
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# What tests of former runs said.
rm -rf "${CARGO_TARGET_DIR:-target}/tmp/pfcp"
cargo test --locked --workspace --no-fail-fast 2>&1 | tee "$log"
tests=${PIPESTATUS[0]}

scripts/decoders.sh
decoders=$?

scripts/lint.sh
lint=$?

# Advice, not a verdict: a shared machine may be slow for reasons of its own.
if [ -n "${CI:-}" ] && [ -f bench/baseline.json ]; then
    cargo build --locked --release -p anchorline &&
        timeout 180 "${CARGO_TARGET_DIR:-target}/release/anchorline" bench check || echo "bench: advice only, see above"
fi

# A test program that crashed left no result: it counts as one failure. So do the decoders, and the linters.
awk -v tests="$tests" -v decoders="$decoders" -v lint="$lint" '
    /^test result: / { passed += $4; failed += $6; skipped += $8 }
    END {
        if (tests && !failed) failed = 1
        if (decoders) { print "decoders: failed, see above"; failed++ }
        if (lint) { print "lint: failed, see above"; failed++ }
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }' "$log"
