#!/usr/bin/env bash
# Formatting and clippy, each where it is installed.
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
