#!/usr/bin/env bash
# Brings the headers of cudnn-frontend into .deps/cudnn-frontend, from NVIDIA's package on PyPI: always the same file,
# checked by its digest. Does nothing where they are. Needs pip and unzip.
#   tools/fetch_cudnn_frontend.sh [FOLDER]    FOLDER: in place of .deps/cudnn-frontend
set -euo pipefail

version=1.32.0
wheel="nvidia_cudnn_frontend-${version}-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
target="${1:-$root/.deps/cudnn-frontend}"

if [[ -f "$target/VERSION" && "$(cat "$target/VERSION")" == "$version" ]]; then
  echo "fetch_cudnn_frontend: version $version is in $target"
  exit 0
fi

if ! command -v unzip > /dev/null; then
  echo "fetch_cudnn_frontend: needs unzip" >&2
  exit 1
fi

mkdir -p "$(dirname "$target")"
scratch="$(mktemp -d "$target.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT

# One build of the package for everyone: only its headers are used, so the Python that runs here does not matter.
"$root/tools/fetch_wheel.sh" "nvidia-cudnn-frontend==$version" "$wheel" "$sha256" "$scratch" --python-version 3.11 \
  --implementation cp --abi cp311 --platform manylinux_2_28_x86_64
unzip -q "$scratch/$wheel" 'include/*' -d "$scratch/package"
echo "$version" > "$scratch/package/VERSION"
rm -rf "$target"
mv "$scratch/package" "$target"
echo "fetch_cudnn_frontend: version $version is in $target"
