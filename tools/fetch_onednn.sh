#!/usr/bin/env bash
# Brings oneDNN 3 into .deps/onednn: include/, lib/ and the licences. It comes from Intel's packages on PyPI, always the
# same files, checked by their digests. Does nothing where it is. Needs pip.
#   tools/fetch_onednn.sh [FOLDER]    FOLDER: in place of .deps/onednn
set -euo pipefail

version=2023.2.0 # oneDNN 3.2.0
library_wheel="onednn_cpu_gomp-$version-py2.py3-none-manylinux1_x86_64.whl"
library_sha256=2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb
header_wheel="onednn_devel_cpu_gomp-$version-py2.py3-none-manylinux1_x86_64.whl"
header_sha256=9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
target="${1:-$tools/../.deps/onednn}"

if [[ -f "$target/VERSION" && "$(cat "$target/VERSION")" == "$version" ]]; then
  echo "fetch_onednn: version $version is in $target"
  exit 0
fi

mkdir -p "$(dirname "$target")"
scratch="$(mktemp -d "$target.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
"$tools/fetch_wheel.sh" "onednn-cpu-gomp==$version" "$library_wheel" "$library_sha256" "$scratch"
"$tools/fetch_wheel.sh" "onednn-devel-cpu-gomp==$version" "$header_wheel" "$header_sha256" "$scratch"
for wheel in "$library_wheel" "$header_wheel"; do
  python3 -m zipfile --extract "$scratch/$wheel" "$scratch/wheels"
done

# A wheel holds no links: the library is in it three times.
library="$scratch/wheels/onednn_cpu_gomp-$version.data/data"
mkdir -p "$scratch/package/lib"
mv "$library/lib/libdnnl.so.3" "$scratch/package/lib/"
ln -s libdnnl.so.3 "$scratch/package/lib/libdnnl.so"
mv "$library"/share/doc/onednn/{LICENSE,THIRD-PARTY-PROGRAMS} "$scratch/package/"
mv "$scratch/wheels/onednn_devel_cpu_gomp-$version.data/data/include" "$scratch/package/"
echo "$version" > "$scratch/package/VERSION"
chmod 755 "$scratch/package"
rm -rf "$target"
mv "$scratch/package" "$target"
echo "fetch_onednn: version $version is in $target"
