#!/usr/bin/env bash
# Sets up, builds everything and runs every test. The last lines name the tests that skipped, with their reasons.
# Where CI=true, a skip that tests/allowed_skips.txt does not list is a failure. Arguments go to ctest:
# tools/test.sh -L kernels
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh
cmake --preset default < /dev/null
cmake --build --preset default < /dev/null
status=0
ctest --preset default "$@" < /dev/null || status=$?
strict=()
[[ "${CI:-}" == true ]] && strict=(--strict)
python3 tests/list_skips.py build/default/Testing/Temporary/LastTest.log tests/allowed_skips.txt "${strict[@]}" ||
  status=$((status == 0 ? 1 : status))
exit "$status"
