#!/usr/bin/env bash
# Runs one stage of checks and measurements on a machine with a GPU, inside the folder that tools/gpu_bundle.sh packed:
#   ./gpu_check.sh truth     is it right: operations, networks, graphs, overflow, memory, sanitizers; first speeds
#   ./gpu_check.sh compare   how fast beside PyTorch, in one run
#   ./gpu_check.sh explain   where the time goes: per instruction, and hardware counters of the worst kernels
# A stage ends within STAGE_SECONDS (default: 480). Each part has its own limit, cut to what is left of the stage; the
# next goes on when one fails; what has no time left to begin is recorded as left out. The most valuable parts come
# first. Everything lies in the folder RESULTS (default: ./results), a short table comes last. Where OUT names a folder,
# it gets the three files to keep: STAGE.txt (the table), results.jsonl and STAGE.tar.gz (logs and measurements).
# Exit status: 0 if every part passed, 1 if not, 2 for bad usage.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage="${1:-}"
case "$stage" in
  truth | compare | explain) ;;
  *)
    echo "usage: $0 truth|compare|explain" >&2
    exit 2
    ;;
esac
results="${RESULTS:-$PWD/results}"
keep="${OUT:-}"
unset OUT
mkdir -p "$results"
export PYTHON="${PYTHON:-python3}"
stage_seconds="${STAGE_SECONDS:-480}"
closing_seconds=15 # for a part that has to be killed, the table and the archive

# cuBLAS and cuDNN come with the toolkit, or in Python's packages.
package_libraries() {
  timeout 10 "$PYTHON" - << 'END' 2> /dev/null
import glob, site
folders = [found for folder in site.getsitepackages() for found in glob.glob(folder + "/nvidia/*/lib")]
print(":".join(sorted(folders)))
END
}
# PyTorch brings its own: what uses it gets what the machine has set.
of_pytorch=(env LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}")
libraries="$PWD/lib:$(package_libraries)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH="$libraries"
export MPC_CUDA_LIBRARY="$PWD/lib/libmpc_cuda.so"
export OMP_WAIT_POLICY=passive PYTHONUNBUFFERED=1

record() {
  "$PYTHON" tools/record_part.py --results="$results/results.jsonl" --stage="$stage" "$@"
}

# part NAME SECONDS COMMAND...: runs it, keeps its log, notes how it ended. MEASURED names the JSON that it writes, SHOW
# how many lines of its log belong in the table.
part() {
  local name="$1" limit="$2"
  shift 2
  local log="$results/$stage-$name.log" begin="$SECONDS" status=0
  local left=$((stage_seconds - SECONDS - closing_seconds))
  local options=(--part="$name" --log="$log" --show="${SHOW:-1}" ${MEASURED:+--json="$MEASURED"})
  rm -f "$log" ${MEASURED:+"$MEASURED"}
  if ((left < 5)); then
    record "${options[@]}" --status=left-out --seconds=0 --limit="$limit"
    return
  fi
  if ((limit > left)); then limit="$left"; fi
  timeout --kill-after=5 "$limit" "$@" > "$log" 2>&1 < /dev/null || status=$?
  record "${options[@]}" --status="$status" --seconds="$((SECONDS - begin))" --limit="$limit"
}

# run NAME SECONDS PROGRAM FLAGS...: mpc-run on a packed program.
run() {
  local name="$1" limit="$2" program="$3"
  shift 3
  local MEASURED="$results/$stage-$name.json"
  part "$name" "$limit" bin/mpc-run "programs/$program-cuda.mpcx" --json="$MEASURED" --data=synthetic "$@"
}

# peer NAME SECONDS NETWORK FLAGS...: the same network with PyTorch.
peer() {
  local name="peer-$1" limit="$2" network="$3"
  shift 3
  local MEASURED="$results/$stage-$name.json"
  part "$name" "$limit" "${of_pytorch[@]}" "$PYTHON" "peers/torch_$network.py" --device=cuda --json="$MEASURED" "$@"
}

tool() {
  local name="$1" limit="$2" script="$3"
  shift 3
  part "$name" "$limit" "$PYTHON" "tools/$script.py" "$@" "$results"
}

binaries_start() {
  timeout 10 bin/mpc-run --help > /dev/null && timeout 10 bin/gpu_kernel_test --gtest_list_tests > /dev/null
}

# The packed run-time libraries of the compiler come in only where the machine's own are missing or too old: they would
# also reach PyTorch and the profilers.
start_binaries() {
  if binaries_start 2> /dev/null; then return; fi
  export LD_LIBRARY_PATH="$PWD/lib/compiler:$libraries"
  if binaries_start 2> /dev/null; then return; fi
  echo "the binaries do not start here; building them from the sources:"
  binaries_start
  part rebuild 240 "${of_pytorch[@]}" sources/rebuild.sh
}

truth() {
  local network
  part versions 40 "${of_pytorch[@]}" tools/versions.sh
  part properties 30 bin/gpu_probe
  tool operations 150 kernel_tests
  for network in lenet5-O0-f32 lenet5-O2-f16 lenet5-O2-bf16 bnnet-O0-f32 bnnet-O2-f16; do
    tool "parity-$network" 30 compare_devices "$network"
  done
  tool graph-off 30 equal_runs --change=--graph=off lenet5-O2-f16
  tool twice 30 equal_runs --change=--graph=on lenet5-O2-f16
  tool eight-a-launch 30 equal_runs --change=--steps-per-launch=8 lenet5-O2-f16
  tool overflow 40 overflow_skips lenet5-O2-f16
  run speed-lenet5 20 lenet5-O2-f16 --warmup=200 --steps=2200
  run speed-lenet5-k8 20 lenet5-O2-f16 --warmup=200 --steps=2200 --steps-per-launch=8
  run speed-resnet50 60 resnet50-O2-f16-b256 --warmup=10 --steps=40
  run speed-gpt2 60 gpt2-O2-bf16-b32 --warmup=5 --steps=20
  tool memory 60 memory_growth lenet5-O2-f16
  run tuned-resnet50 90 resnet50-O2-f16-b256 --warmup=10 --steps=40 --tune
  run tuned-gpt2 90 gpt2-O2-bf16-b32 --warmup=5 --steps=20 --tune
  part ceilings 60 "${of_pytorch[@]}" "$PYTHON" tools/ceilings.py
  # One claim runs each own kernel of each case; repeating the others under a sanitizer would only take time.
  local own="Ops/GpuKernel.MatchesReferenceWithinDerivedBounds/*_own"
  tool memcheck 90 kernel_tests --name=memcheck --sanitizer=memcheck --filter="$own"
  tool racecheck 90 kernel_tests --name=racecheck --sanitizer=racecheck --filter="$own"
}

# Peers and mpc alternate, so that both see the same clocks.
lenet5_round() {
  run "lenet5-b32-$1" 20 lenet5-O2-f16 --warmup=200 --steps=1200
  run "lenet5-b32-k16-$1" 20 lenet5-O2-f16 --warmup=320 --steps=3520 --steps-per-launch=16
  peer "lenet5-eager-$1" 40 lenet5 --batch-size=32 --amp=f16 --warmup=200 --steps=1000
  peer "lenet5-captured-$1" 40 lenet5 --batch-size=32 --amp=f16 --mode=captured --warmup=200 --steps=1000
}

compare() {
  lenet5_round 1
  run resnet50 60 resnet50-O2-f16-b256 --warmup=10 --steps=40 --tune
  peer resnet50-eager 60 resnet50 --batch-size=256 --amp=f16 --warmup=10 --steps=30
  run gpt2 60 gpt2-O2-bf16-b32 --warmup=5 --steps=20 --tune
  peer gpt2-eager 60 gpt2 --batch-size=32 --amp=bf16 --warmup=5 --steps=15
  peer resnet50-compile 120 resnet50 --batch-size=256 --amp=f16 --mode=compile --warmup=10 --steps=30
  peer gpt2-compile 120 gpt2 --batch-size=32 --amp=bf16 --mode=compile --warmup=5 --steps=15
  lenet5_round 2
  lenet5_round 3
}

explain() {
  local network
  for network in resnet50-O2-f16-b256 gpt2-O2-bf16-b32 lenet5-O2-f16; do
    SHOW=17 tool "nodes-$network" 60 step_times "$network"
  done
  run lenet5-b1024 30 lenet5-O2-f16-b1024 --warmup=100 --steps=1100
  SHOW=13 tool counters-gpt2 150 worst_kernels gpt2-O2-bf16-b32
  SHOW=13 tool counters-resnet50 150 worst_kernels resnet50-O2-f16-b256
}

start_binaries
"$stage"
"$PYTHON" tools/results_table.py "$results/results.jsonl" --stage="$stage" > "$results/$stage.txt"
status=$?
cat "$results/$stage.txt"
if [[ -n "$keep" ]]; then
  mkdir -p "$keep"
  cp "$results/$stage.txt" "$results/results.jsonl" "$keep/"
  timeout 10 tar czf "$keep/$stage.tar.gz" -C "$results" --exclude='*.safetensors' --exclude='*.tar.gz' .
fi
exit "$status"
