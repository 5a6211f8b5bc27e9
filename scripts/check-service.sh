#!/usr/bin/env bash
# Runs the unit of the package under a systemd of its own, in namespaces and over a copy of this machine's files that is gone
# afterwards: scripts/check-service.sh [EXECUTABLE]. Needs root; says so and succeeds where that is not to be had.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
executable=$(realpath "${1:-$target/debug/anchorline}")
systemd=/lib/systemd/systemd
# The whole of it, with all that is waited for.
most_s=180

skip() {
    echo "service: not run here, because $1"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "only root may give a systemd its namespaces"
[ -x "$systemd" ] || skip "there is no $systemd"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/top" "$folder/said"
touch "$folder/said/steps" "$folder/said/node"

# Its own network, processes, mounts and control groups; whatever it starts ends with it.
there() {
    unshare --mount --pid --fork --kill-child --net --ipc --uts --cgroup \
        scripts/service/machine.sh "$folder" "$executable" "$1"
}
there probe >"$folder/said/probe" 2>&1 || skip "a machine within this one cannot be made: $(tail -n 1 "$folder/said/probe")"
timeout --kill-after=5 "$most_s" \
    unshare --mount --pid --fork --kill-child --net --ipc --uts --cgroup \
    scripts/service/machine.sh "$folder" "$executable" boot >"$folder/said/systemd" 2>&1 || true
if ! grep -qx "all is well" "$folder/said/steps"; then
    sed 's/^/systemd: /' "$folder/said/systemd" >&2
    sed 's/^/node: /' "$folder/said/node" >&2
    cat "$folder/said/steps" >&2
    echo "service: the unit does not do as it says" >&2
    exit 1
fi
echo "service: good, $(grep -c '^ok: ' "$folder/said/steps") steps under $(systemd-analyze --version | head -n 1)"
