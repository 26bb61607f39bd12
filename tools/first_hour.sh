#!/usr/bin/env bash
# Runs the first hour of README.md as a reader does, in a fresh folder, and says how long each block takes.
#
#   tools/first_hour.sh                     the installed programs, those of the PATH
#   tools/first_hour.sh --prefix=FOLDER     a tree that cmake --install wrote
#   tools/first_hour.sh --build=FOLDER      a folder of a build: build/default
set -euo pipefail

source_folder="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

if (($# > 1)); then
  echo "first_hour: one folder of programs, not $#; see the head of the script" >&2
  exit 2
fi
case "${1:-}" in
  --prefix=?* | --build=?*) programs="${1#*=}/bin" ;;
  "") programs="$(dirname "$(command -v mpc-train || echo /)")" ;;
  *)
    echo "first_hour: unknown option '$1'; give --prefix=FOLDER or --build=FOLDER" >&2
    exit 2
    ;;
esac
if [[ ! -x "$programs/mpc-train" ]]; then
  echo "first_hour: no mpc-train in '$programs'; build mpc first: tools/quickstart.sh" >&2
  exit 2
fi
exec python3 "$source_folder/tools/benchmark_pages/first_hour.py" "$(cd "$programs" && pwd)" "$source_folder/README.md"
