#!/usr/bin/env bash
# What is asked of the unit, step by step, by the systemd that scripts/check-service.sh starts. Ends in "all is well".
set -euo pipefail
file=/etc/anchorline/upf.toml

ok() { echo "ok: $1"; }
fail() {
    echo "FAILED: $1"
    systemctl status --no-pager --lines=0 anchorline || true
    exit 1
}
# Within so many seconds.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}
property() { systemctl show --property="$1" --value anchorline; }
is() { [ "$(property "$1")" = "$2" ]; }
answers() { anchorline ctl status --config $file >/dev/null 2>&1; }
says() { grep -q -- "$1" /said/node; }
engine() { sed -n "s/^up: $1 pid //p" /said/node | tail -n 1; }

ip link set lo up
ip address add 10.40.0.2/32 dev lo
sed -i -e 's/^memory_mb = .*/memory_mb = 64/' -e 's/^huge_pages = .*/huge_pages = "never"/' -e 's/^idle = .*/idle = "sleep"/' -e 's/^flows = .*/flows = 20000/' \
    -e 's/^sessions = .*/sessions = 1000/' -e '0,/^# punt = /s/^# punt = /punt = /' $file

sed -i 's/^mtu = 1500/mtu = 1/' $file
systemctl start anchorline 2>/dev/null && fail "a wrong file is started"
within 5 says "mtu = 1: an MTU" || fail "what is wrong is not said"
within 5 is ActiveState activating || fail "it is not tried again"
ok "a wrong file is told of by the start itself"
sed -i 's/^mtu = 1$/mtu = 1500/' $file

within 5 says 'iface\|n3' || fail "the port that is away is not said"
is ActiveState active && fail "it is active without its ports"
for port in n3 n6; do
    ip link add $port type veth peer name $port-away
    ip link set $port up
    ip link set $port-away up
done
within 20 is ActiveState active || fail "it does not start once its ports are there"
answers || fail "a node that is active does not answer"
ip link show n3-host >/dev/null || fail "the kernel's part of a port is not there"
ok "ports that come late are waited for"

restarts=$(property NRestarts)
systemctl restart anchorline || fail "it cannot be started again"
answers || fail "the start is over before the node answers"
within 5 is StatusText "users' packets pass, control planes are answered" || fail "its state is not told"
ok "a start is over when users' packets pass"

ip address del 10.40.0.2/32 dev lo
kill -9 "$(engine cpe)"
within 10 is StatusText "the cpe starts" || fail "a control plane that cannot start is said to answer"
is ActiveState active || fail "the node ended with its control plane"
ip address add 10.40.0.2/32 dev lo
within 15 is StatusText "users' packets pass, control planes are answered" || fail "it does not come back"
ok "what is away for a while is told as long as it is away"

before=$(engine cpe)
sed -i 's/^associate = .*/associate = ["10.40.0.9"]/' $file
systemctl reload anchorline || fail "it cannot be reloaded"
within 15 eval '[ "$(engine cpe)" != "$before" ]' || fail "the control plane goes on by the former file"
within 15 is StatusText "users' packets pass, control planes are answered" || fail "the reload does not end"
sed -i 's/^associate = .*/associate = 1/' $file
systemctl reload anchorline || fail "it cannot be reloaded with a wrong file"
within 10 eval 'property StatusText | grep -q "was refused: the configuration is wrong"' || fail "the refusal is not told"
sed -i 's/^associate = .*/associate = []/' $file
is ActiveState active || fail "a wrong file has ended it"
ok "a reload is carried out, or refused in a sentence"

restarts=$(property NRestarts)
kill -9 "$(engine dpe)"
within 15 answers || fail "a data plane that was killed does not come back"
is NRestarts "$restarts" || fail "the node was started anew for an engine"
ok "an engine that dies comes back within the node"

kill -9 "$(property MainPID)"
within 15 eval '! is NRestarts "$restarts"' || fail "a node that was killed is not started again"
within 20 is ActiveState active || fail "a node that was killed does not come back"
within 5 answers || fail "a node that came back does not answer"
ok "a node that dies comes back"

started=$SECONDS
systemctl stop anchorline || fail "it cannot be stopped"
is Result success || fail "it does not end as it was told to: $(property Result)"
[ $((SECONDS - started)) -lt 15 ] || fail "it takes $((SECONDS - started)) s to stop"
pgrep -x anchorline >/dev/null && fail "something of it goes on"
[ -d /run/anchorline ] || fail "what tune remembers is gone"
ok "a stop ends all of it"
echo "all is well"
