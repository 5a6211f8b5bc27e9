#!/usr/bin/env bash
# Lets decoders of others read all PFCP that our programs said in the last run of the tests: scripts/decoders.py says who
# reads what. Where there is no tshark or scapy it says so, and fails only in CI: pycrate is no package of Debian's, so
# its absence is a notice there, too.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
export PYTHONPATH="$target/python${PYTHONPATH:+:$PYTHONPATH}"
# Debian's scapy is of Debian's Python.
python=/usr/bin/python3

missing=()
command -v tshark >/dev/null || missing+=(tshark)
"$python" -c 'import scapy.contrib.pfcp' 2>/dev/null || missing+=(scapy)
if ((${#missing[@]})); then
    echo "decoders: skipped, there is no ${missing[*]}"
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
"$python" scripts/decoders.py "$target/tmp/pfcp"
