#!/usr/bin/env bash
# Builds and runs tests under sanitizers: tools/sanitize.sh [PRESET] [CTEST ARGUMENTS]
#
#   asan-short    address and undefined behaviour: readers of files, planner, runtime (the default; .ci/run runs it)
#   asan-kernels  the rest of what has no MLIR in it: CPU kernels, emulated CUDA kernels
#   asan          everything
#   tsan          data races: prefetching, loops of own threads, the runtime, the emulated GPU
#
# CMakePresets.json says what each builds and which tests it runs. docs/testing.md says how long each takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset="${1:-asan-short}"
case "$preset" in
  asan-short | asan-kernels | asan | tsan) ;;
  *)
    echo "sanitize: '$preset' is no preset with sanitizers; asan-short, asan-kernels, asan and tsan are" >&2
    exit 2
    ;;
esac
shift $(($# > 0 ? 1 : 0))

echo "== Sanitizers: preset $preset"
start=$SECONDS
cmake --preset "$preset" < /dev/null
cmake --build --preset "$preset" < /dev/null
built=$SECONDS
status=0
ctest --preset "$preset" "$@" < /dev/null || status=$?
echo "== Sanitizers: preset $preset: $((built - start)) s to build, $((SECONDS - built)) s to test, exit status $status"
exit "$status"
