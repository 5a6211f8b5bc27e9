#!/usr/bin/env bash
# Writes programs.pcap and chromium.pcap anew: what curl, dig, quinn and Chromium say to servers in namespaces, on the N6
# wire of a running node, whole. It is an end-to-end test that makes them, and that checks what the node charged for them.
# As root, with the Debian packages that `make setup` installs, and chromium.
set -euo pipefail
golden=$(cd "$(dirname "$0")" && pwd)
cd "$golden/../../.."
cargo build --locked -p anchorline --bin anchorline
ANCHORLINE_REQUIRE_E2E=1 ANCHORLINE_CAPTURES=$golden cargo test --locked -p anchorline-e2e --test e2e -- charged_by_what
chmod 644 "$golden/programs.pcap" "$golden/chromium.pcap"
