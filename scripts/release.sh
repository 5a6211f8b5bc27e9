#!/usr/bin/env bash
# Builds the executable as packages should carry it: once to see which ways its code takes, and again with what was seen
# (profile-guided optimisation). A request, like a packet, goes through much code that is hardly ever taken otherwise; the compiler
# then keeps what is taken together, and the rest out of the caches. Takes three times as long as a plain build.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/guided
host=$(rustc -vV | sed -n 's/^host: //p')
profile=$folder/seen.profdata

# It reads what its own release of LLVM has written: that of the compiler.
merger() {
    local llvm there
    llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    there=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
    [ -x "$there" ] || ! command -v rustup >/dev/null || rustup component add llvm-tools >&2
    for candidate in "$there" "llvm-profdata-$llvm"; do
        command -v "$candidate" && return
    done
    echo "release: llvm-profdata of LLVM $llvm is missing: install the package llvm-$llvm, or Rust by rustup" >&2
    return 1
}

# With a target of its own, flags are for the product and not for what runs while it is built.
build() {
    RUSTFLAGS="$2 ${RUSTFLAGS:-}" cargo build --locked --release -p anchorline --bins --target "$host" --target-dir "$folder/$1"
}

profdata=$(merger)
rm -rf "$folder/seen"
build seeing "-Cprofile-generate=$folder/seen"
seeing=$folder/seeing/$host/release/anchorline
echo "release: running what it is to be fast at"
"$seeing" bench all --quick --report "$folder/report"
"$seeing" bench pfcp --sessions 100000
"$profdata" merge --output "$profile" "$folder/seen"
# Cargo would not know that the profile is another one.
rm -rf "$folder/release"
ANCHORLINE_GUIDED=1 build release "-Cprofile-use=$profile"
ln -f "$folder/release/$host/release/anchorline" "$folder/anchorline"
echo "release: $folder/anchorline"
