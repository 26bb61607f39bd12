#!/usr/bin/env bash
# compute-sanitizer over every own kernel, once each: sanitize.sh memcheck|racecheck.
set -euo pipefail
tool="$1"
# One claim runs each kernel of each case; repeating the others would only take time.
exec compute-sanitizer --tool "$tool" --error-exitcode 1 bin/gpu_kernel_test --gtest_brief=1 \
  --gtest_filter='Ops/GpuKernel.MatchesReferenceWithinDerivedBounds/*_own'
