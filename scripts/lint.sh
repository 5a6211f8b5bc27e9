#!/usr/bin/env bash
# Formatting and clippy, each where it is installed; and that fuzz targets, a workspace of their own, still compile.
set -euo pipefail
cd "$(dirname "$0")/.."

if cargo fmt --version >/dev/null 2>&1; then
    cargo fmt --all --check
else
    echo "lint: rustfmt is not installed; formatting is not checked"
fi

if cargo clippy --version >/dev/null 2>&1; then
    cargo clippy --locked --workspace --all-targets -- -D warnings
else
    echo "lint: clippy is not installed; the code is not linted"
fi

# Their library has a part in C++. In the same folder, most of what they need is there.
if command -v c++ >/dev/null; then
    cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
else
    echo "lint: there is no C++ compiler; fuzz targets are not compiled"
fi
