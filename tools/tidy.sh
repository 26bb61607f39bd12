#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy: tools/tidy.sh [PATH...]
#
# A PATH is a source or a folder; without one, everything that build/default compiles as C++. Configure that build first;
# generated headers must have been made. A warning is an error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for program in clang-tidy run-clang-tidy; do
  command -v "$program" > /dev/null || {
    echo "tidy: $program is not installed (Debian: apt-get install clang-tidy)" >&2
    exit 1
  }
done
[[ -f build/default/compile_commands.json ]] || {
  echo "tidy: build/default has no compile_commands.json; run cmake --preset default" >&2
  exit 1
}

# clang reads no header that GCC precompiled, and its builtin knows fewer features; nvcc's sources are not clang's.
# Generated headers have the style of their generator: they are the system's.
mkdir -p build/tidy
python3 - << 'PYTHON'
import json
import re

commands = json.load(open("build/default/compile_commands.json"))
commands = [command for command in commands if not re.search(r"\bnvcc\b", command["command"])]
for command in commands:
    command["command"] = re.sub(r"-Winvalid-pch|-include \S+cmake_pch\.hxx|-fno-var-tracking\S*", "", command["command"])
    command["command"] = command["command"].replace(" -c ", " '-D__builtin_cpu_supports(feature)=1' -c ")
    command["command"] = re.sub(r"-I(\S+/build/default)\b(?!/)", r"-isystem \1", command["command"])
json.dump(commands, open("build/tidy/compile_commands.json", "w"), indent=1)
PYTHON

root="$PWD"
patterns=()
for path in "$@"; do
  [[ -e "$path" ]] || { echo "tidy: '$path' is neither a file nor a folder" >&2; exit 2; }
  patterns+=("^$root/${path%/}(/|\$)")
done
[[ ${#patterns[@]} -gt 0 ]] || patterns=("^$root/(kernels|runtime|compiler|passes|frontend|models|tools|tests)/")
start=$SECONDS
status=0
run-clang-tidy -p build/tidy -quiet -j "$(nproc)" "${patterns[@]}" > build/tidy/log 2> build/tidy/errors || status=$?
sed 's/\x1b\[[0-9;]*m//g' build/tidy/log | grep -E '(warning|error): ' | sort -u || true
echo "tidy: $((SECONDS - start)) s, exit status $status; build/tidy/log has all that was said"
exit "$status"
