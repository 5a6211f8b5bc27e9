#!/usr/bin/env bash
# Lets DPDK's testpmd read every line of the golden flow rules, on a port that is no network card: it says "Bad arguments"
# to what its grammar does not know, and anything else to what it understood and this port cannot do. TESTPMD names it
# where it is not installed (Debian: package dpdk-dev). It proves the grammar, not that a card takes the rules.
set -euo pipefail
cd "$(dirname "$0")/.."
testpmd=${TESTPMD:-dpdk-testpmd}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

check() { # file with commands -> lines that are not understood
    timeout 60 "$testpmd" --no-huge -m 512 --no-pci --no-shconf --file-prefix anchorline-grammar -l 0,1 --vdev=net_null0 \
        -- -i --rxq=16 --txq=16 --total-num-mbufs=4096 <"$1" >"$work/answer" 2>&1 || true
    grep -q 'Bye...' "$work/answer" || { echo "testpmd did not end well:"; tail -5 "$work/answer"; exit 1; }
    grep -B1 -e '^Bad arguments' -e '^Command not found' -e '^Ambiguous command' "$work/answer" | grep '^testpmd>' || true
}

command -v "$testpmd" >/dev/null || { echo "check-flow-rules: there is no $testpmd"; exit 1; }

# The check must be able to fail.
printf 'flow validate 0 ingress pattern eth / nothing / end actions rss queues end / end\nquit\n' >"$work/wrong"
[ -n "$(check "$work/wrong")" ] || { echo "testpmd takes a rule that is wrong: the check proves nothing"; exit 1; }

failed=0
for golden in crates/steer/tests/golden/*.txt; do
    # i40e's packet types are set while the port is stopped, and other commands do not care.
    { echo 'port stop all'; grep -v '^#' "$golden" | sed 's/^flow create/flow validate/' | grep .; echo quit; } >"$work/commands"
    bad=$(check "$work/commands")
    echo "$golden: $(grep -c '^flow' "$work/commands") rules, $(grep -vc -e '^flow' -e '^quit' "$work/commands") settings"
    [ -z "$bad" ] || { echo "$bad"; failed=1; }
done
exit $failed
