#!/usr/bin/env bash
# Makes a Debian package of an executable: scripts/package.sh [EXECUTABLE [FOLDER]]. What it needs of libraries the executable itself
# says; drivers of DPDK, which are loaded by name, stand in deploy/debian/control.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
executable=${1:-$target/guided/anchorline}
into=${2:-$target/package}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# Its folder is that of the package's root.
chmod 755 "$root"

install -D -m 755 "$executable" "$root/usr/bin/anchorline"
strip "$root/usr/bin/anchorline"
install -D -m 644 -t "$root/lib/systemd/system" deploy/systemd/anchorline.service
install -D -m 644 -t "$root/etc/anchorline" config/upf.toml
# Documents lie to each other as they do here, so that their links lead on.
documents=$root/usr/share/doc/anchorline
install -D -m 644 -t "$documents" README.md ARCHITECTURE.md CONTRIBUTING.md
for room in docs/*.md config/*.toml bench/*.* bench/report/*; do
    install -D -m 644 "$room" "$documents/$room"
done
ln -s config "$documents/examples"
install -m 644 LICENSE "$documents/copyright"

# It reads a source package's description, of which it needs the name alone.
depends() {
    local there
    there=$(mktemp -d)
    mkdir "$there/debian"
    printf 'Source: anchorline\n\nPackage: anchorline\nArchitecture: any\n' >"$there/debian/control"
    (cd "$there" && dpkg-shlibdeps -O "$root/usr/bin/anchorline") | sed -n 's/^shlibs:Depends=//p'
    rm -rf "$there"
}

mkdir "$root/DEBIAN"
depends=$(depends)
[ -n "$depends" ]
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@DEPENDS@/$depends/" \
    deploy/debian/control >"$root/DEBIAN/control"
echo /etc/anchorline/upf.toml >"$root/DEBIAN/conffiles"
install -m 755 -t "$root/DEBIAN" deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm

mkdir -p "$into"
package=$into/anchorline_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz -z1 --build "$root" "$package" >/dev/null
echo "package: $package"
