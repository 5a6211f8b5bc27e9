#!/usr/bin/env bash
# Fuzzes every decoder for SECONDS (60) each, with libFuzzer's coverage guidance, on the stable compiler. What breaks
# is kept in fuzz/artifacts and replayed first the next time.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${SECONDS_EACH:-60}
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1"
target=${CARGO_TARGET_DIR:-target}
cargo build --release --target x86_64-unknown-linux-gnu
for name in ${ONLY:-pfcp_decode n4_node link_frames data_path dpi_stream dpi_datagram dpi_rules charging_files control_orders stored_records}; do
    mkdir -p "corpus/$name" "artifacts/$name"
    [ -d "seeds/$name" ] && seeds="seeds/$name" || seeds=
    # Those of random worlds are of the worlds as they are today.
    if [ "$name" = data_path ]; then
        seeds="artifacts/${name}_seeds"
        rm -rf "$seeds"
        ANCHORLINE_WRITE_SEEDS="$seeds" "$target/x86_64-unknown-linux-gnu/release/$name"
    fi
    echo "fuzz: $name for $seconds s"
    # shellcheck disable=SC2086
    "$target/x86_64-unknown-linux-gnu/release/$name" "corpus/$name" $seeds -artifact_prefix="artifacts/$name/" \
        -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 2>&1 |
        tee "artifacts/$name.log" | grep -E '^(SUMMARY|stat::number_of_executed_units|stat::average_exec|==|thread|assert)' || true
    if ! grep -q '^stat::number_of_executed_units' "artifacts/$name.log" || grep -q '^SUMMARY' "artifacts/$name.log"; then
        echo "fuzz: $name broke; the input is in fuzz/artifacts/$name, the log beside it" >&2
        exit 1
    fi
done
echo "fuzz: clean"
