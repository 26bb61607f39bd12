#!/usr/bin/env bash
# From a fresh clone to a trained network: sets up, builds, and trains LeNet-5 on the shipped digits at level O2.
# Arguments are added to mpc-train's: tools/quickstart.sh --epochs=5 --seed=2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh
echo "quickstart: building (the first time takes some minutes)"
cmake --preset default < /dev/null
cmake --build --preset default --target mpc-train < /dev/null
echo "quickstart: training LeNet-5 on handwritten digits at O2"
exec build/default/bin/mpc-train lenet5 --amp-level=O2 --data=digits --report "$@" < /dev/null
