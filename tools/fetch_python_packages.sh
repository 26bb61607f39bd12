#!/usr/bin/env bash
# Brings the Python packages that tests read our files with into .deps/python, where nothing else looks for packages.
# With --machine-code it brings nvdisasm and cuobjdump into .deps/machine_code, for tools/gpu/machine_code.py; no other
# script asks for them. Does nothing where the packages are. Needs pip.
#   tools/fetch_python_packages.sh [--machine-code] [FOLDER]    FOLDER: in place of that in .deps
set -euo pipefail

packages=(numpy==2.2.6 safetensors==0.5.3)
folder=python
if [[ "${1:-}" == --machine-code ]]; then
  packages=(nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-cuobjdump==13.5.37)
  folder=machine_code
  shift
fi

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
target="${1:-$root/.deps/$folder}"

# Compiled packages belong to one version of Python.
wanted="$(python3 -c 'import sys; print("python %d.%d" % sys.version_info[:2])') ${packages[*]}"
if [[ -f "$target/VERSIONS" && "$(cat "$target/VERSIONS")" == "$wanted" ]]; then
  echo "fetch_python_packages: $wanted are in $target"
  exit 0
fi

mkdir -p "$(dirname "$target")"
scratch="$(mktemp -d "$target.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --only-binary=:all: --no-deps \
  --target "$scratch/packages" "${packages[@]}" < /dev/null
echo "$wanted" > "$scratch/packages/VERSIONS"
rm -rf "$target"
mv "$scratch/packages" "$target"
echo "fetch_python_packages: $wanted are in $target"
