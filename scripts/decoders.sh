#!/usr/bin/env bash
# Lets decoders of others read all PFCP that our programs said in the last run of the tests, and the CDR files that the tests hold our
# writers to: scripts/decoders.py and tests/golden/cdr/check.py say who reads what. Where there is no tshark or scapy it says so,
# and fails only in CI: pycrate and asn1tools are no packages of Debian's, so their absence is a notice there, too.
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
if "$python" -c 'import asn1tools, pycrate_asn1c.asnproc' 2>/dev/null && command -v openssl >/dev/null; then
    "$python" tests/golden/cdr/check.py
else
    echo "decoders: CDRs are not read, there is no pycrate, asn1tools or openssl"
fi
