#!/usr/bin/env bash
# Makes a package of the executable that tests have built, and looks at it as who installs it would: everything it depends on
# is to be had, what is in it runs, and systemd understands the unit. Installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

scripts/package.sh "${1:-$target/debug/anchorline}" "$folder" >/dev/null
package=$(echo "$folder"/*.deb)
dpkg-deb --extract "$package" "$folder/root"

if ! apt-get install --simulate --no-install-recommends "$package" >"$folder/apt.log" 2>&1; then
    cat "$folder/apt.log" >&2
    echo "package: it cannot be installed here" >&2
    exit 1
fi
"$folder/root/usr/bin/anchorline" --version | grep -qx "anchorline $(dpkg-deb --field "$package" Version)"
dpkg-deb --info "$package" conffiles | grep -qx /etc/anchorline/upf.toml

# Every link of a document leads to another.
documents=$folder/root/usr/share/doc/anchorline
while IFS=: read -r document link; do
    place=$(dirname "$document")/${link%%#*}
    [ -e "$place" ] || { echo "package: ${document#"$documents/"} leads to $link, which is not there" >&2; exit 1; }
done < <(grep -roP '\]\(\K(?!https?:)[^)#][^)]*' --include='*.md' "$documents")

# It knows no root but this one: what the unit starts stands elsewhere.
if command -v systemd-analyze >/dev/null; then
    unit=$folder/anchorline.service
    sed "s|=/usr/bin/anchorline|=$folder/root/usr/bin/anchorline|" \
        "$folder/root/lib/systemd/system/anchorline.service" >"$unit"
    said=$(systemd-analyze verify --man=no "$unit" 2>&1) || { echo "$said" >&2; exit 1; }
    [ -z "$(grep -F anchorline.service <<<"$said" || true)" ] || { echo "$said" >&2; exit 1; }
fi
echo "package: good, $(($(stat -c %s "$package") / 1000)) kB"
