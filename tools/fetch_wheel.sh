#!/usr/bin/env bash
# Downloads one wheel from PyPI, always the same file, and checks it by its digest. Needs pip.
#   tools/fetch_wheel.sh PACKAGE==VERSION FILE SHA256 FOLDER [PIP_OPTIONS...]
#     FILE: the name that the wheel must have; FOLDER: where it is put
set -euo pipefail

if [[ $# -lt 4 ]]; then
  echo "usage: fetch_wheel.sh PACKAGE==VERSION FILE SHA256 FOLDER [PIP_OPTIONS...]" >&2
  exit 2
fi
package="$1" wheel="$2" sha256="$3" folder="$4"
shift 4

for program in python3 sha256sum; do
  if ! command -v "$program" > /dev/null; then
    echo "fetch_wheel: needs $program" >&2
    exit 1
  fi
done

python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: "$@" --dest "$folder" \
  "$package" < /dev/null
if [[ ! -f "$folder/$wheel" ]]; then
  echo "fetch_wheel: expected $wheel, got: $(ls "$folder")" >&2
  exit 1
fi
if ! echo "$sha256  $folder/$wheel" | sha256sum --check --status; then
  echo "fetch_wheel: $wheel is not the file that was expected: its SHA-256 is" \
    "$(sha256sum "$folder/$wheel" | cut -d' ' -f1), not $sha256" >&2
  exit 1
fi
