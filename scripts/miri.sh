#!/usr/bin/env bash
# Interprets the tests of what holds `unsafe` and of the rings between workers with Miri, which sees undefined behaviour
# and data races that a run does not. Needs rustup: Miri comes with nightly compilers alone. The crate `dpdk` calls C,
# which Miri cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
rustup component list --toolchain nightly --installed 2>/dev/null | grep -q '^miri' ||
    rustup toolchain install nightly --profile minimal --component miri,rust-src
# Property tests want the time of day and a place for what fails; every case costs seconds here.
export MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES="${PROPTEST_CASES:-4}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
cargo +nightly miri test --locked -p anchorline-dataplane --lib -- \
    state::tags state::memory state::blocks state::flows state::table state::cells lasting::table steering:: arrangement
