#!/usr/bin/env bash
# What scripts/check-service.sh runs within namespaces of its own: a root of this machine's files, whose changes are in memory and gone
# with it, and a systemd that starts nothing but scripts/service/steps.sh.
set -euo pipefail
folder=$1 executable=$2 what=$3
here=$(dirname "$(realpath "$0")")
top=$folder/top
root=$top/root

mount --make-rprivate /
mount -t tmpfs -o size=1g tmpfs "$top"
mkdir "$top/changes" "$top/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/changes,workdir=$top/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
for place in run tmp sys/fs/cgroup; do mount -t tmpfs tmpfs "$root/$place"; done
mkdir "$root/sys/fs/cgroup/systemd"
mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
[ "$what" = boot ] || exit 0

mkdir -p "$root/said" "$root/etc/anchorline"
mount --bind "$folder/said" "$root/said"
install -m 755 "$executable" "$root/usr/bin/anchorline"
install -m 755 "$here/steps.sh" "$root/usr/bin/steps"
install -m 644 -t "$root/etc/anchorline" "$here/../../config/upf.toml"
units=$root/etc/systemd/system
install -m 644 -t "$units" "$here/../../deploy/systemd/anchorline.service"
mkdir -p "$units/anchorline.service.d"
printf '[Unit]\nDefaultDependencies=no\nWants=\nAfter=\n[Service]\nStandardOutput=append:/said/node\nStandardError=append:/said/node\n' \
    >"$units/anchorline.service.d/here.conf"
printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/usr/bin/steps\nStandardOutput=append:/said/steps\nStandardError=append:/said/steps\nExecStopPost=/bin/systemctl --no-block exit\n' \
    >"$units/steps.service"
printf '[Unit]\nDefaultDependencies=no\nWants=steps.service\n' >"$units/steps.target"
exec chroot "$root" /usr/bin/env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=steps.target --log-target=console
