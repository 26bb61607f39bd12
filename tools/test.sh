#!/usr/bin/env bash
# Sets up, builds everything and runs every test. The last lines are ctest's own summary. Arguments go to ctest:
# tools/test.sh -L kernels
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh
cmake --preset default < /dev/null
cmake --build --preset default < /dev/null
# The preset runs two tests at a time with OMP_WAIT_POLICY=passive: OpenMP's threads, which the library uses, must not
# spin.
exec ctest --preset default "$@" < /dev/null
