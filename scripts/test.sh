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
small=
clean() {
    rm -f "$log"
    if [ -n "$small" ]; then
        umount "$small"
        rmdir "$small"
    fi
}
trap clean EXIT
# What tests of former runs said.
rm -rf "${CARGO_TARGET_DIR:-target}/tmp/pfcp"
cargo test --locked --workspace --no-fail-fast 2>&1 | tee "$log"
tests=${PIPESTATUS[0]}

# Tests that fill their disk, which only root can give them. One after the other: they share it. What they are named by must not
# come to mean none of them.
disk=0
if [ "$(id -u)" = 0 ] && [ "$tests" = 0 ]; then
    folder=$(mktemp -d)
    if mount -t tmpfs -o size=1m tmpfs "$folder"; then
        small=$folder
        echo "full disk:" >>"$log"
        TMPDIR=$small cargo test --locked --workspace --lib --bins -- --ignored --test-threads=1 \
            a_full_disk records_wait_for_room 2>&1 | tee -a "$log"
        disk=${PIPESTATUS[0]}
        [ "$(grep -cE '^test .*(a_full_disk|records_wait_for_room).* \.\.\. ok$' "$log")" -ge 4 ] || disk=1
    else
        rmdir "$folder"
    fi
fi

scripts/decoders.sh
decoders=$?

scripts/check-package.sh
package=$?

scripts/check-service.sh
service=$?

scripts/lint.sh
lint=$?

# Advice, not a verdict: a shared machine may be slow for reasons of its own. What it takes, a second build most of all, is what the
# tests have left of the minutes that a continuous integration has.
advise() {
    local left=$((33 * 60 - SECONDS))
    if [ "$left" -lt 60 ]; then
        echo "bench: no time is left for it; make bench-check does the same"
        return
    fi
    timeout "$left" cargo build --locked --release -p anchorline &&
        timeout 180 "${CARGO_TARGET_DIR:-target}/release/anchorline" bench check ||
        echo "bench: advice only, see above"
}
if [ -n "${CI:-}" ] && [ -f bench/baseline.json ]; then
    advise
fi

# A test program that crashed left no result: it counts as one failure. So do the decoders, the package, its service and the linters.
awk -v tests="$tests" -v disk="$disk" -v decoders="$decoders" -v package="$package" -v service="$service" -v lint="$lint" '
    /^full disk:/ { again = 1 }
    # What was skipped before and has passed now was not skipped.
    /^test result: / { passed += $4; failed += $6; skipped += again ? -$4 : $8 }
    END {
        if ((tests || disk) && !failed) failed = 1
        if (decoders) { print "decoders: failed, see above"; failed++ }
        if (package) { print "package: failed, see above"; failed++ }
        if (service) { print "service: failed, see above"; failed++ }
        if (lint) { print "lint: failed, see above"; failed++ }
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }' "$log"
