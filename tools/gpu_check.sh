#!/usr/bin/env bash
# Runs one stage of checks and measurements on a machine with a GPU, inside the folder that tools/gpu_bundle.sh packed:
#   ./gpu_check.sh truth     is it right: operations, networks, graphs, overflow, memory, sanitizers; first speeds
#   ./gpu_check.sh compare   how fast beside PyTorch, in one run
#   ./gpu_check.sh explain   where the time goes: per instruction, and hardware counters of the worst kernels
# A stage ends within 8 minutes. Each part has its own limit, and the next goes on when one fails. Logs and results.jsonl
# lie in the folder OUT (default: ./results); a short table comes last. Exit status: 0 if every part passed.
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
out="${OUT:-$PWD/results}"
mkdir -p "$out"
python="${PYTHON:-python3}"

# cuBLAS and cuDNN come with the toolkit, or in Python's packages.
wheel_libraries() {
  "$python" - << 'END' 2> /dev/null
import glob, site
folders = [f for s in site.getsitepackages() for f in glob.glob(s + "/nvidia/*/lib")]
print(":".join(sorted(folders)))
END
}
export LD_LIBRARY_PATH="$PWD/lib:${LD_LIBRARY_PATH:-}:$(wheel_libraries)"
export MPC_CUDA_LIBRARY="$PWD/lib/libmpc_cuda.so"
export OMP_WAIT_POLICY=passive PYTHONUNBUFFERED=1

# part NAME SECONDS COMMAND...: runs it, keeps its log, notes how it ended.
part() {
  local name="$1" limit="$2"
  shift 2
  local log="$out/$stage-$name.log" begin="$SECONDS" status=0
  timeout --kill-after=5 "$limit" "$@" > "$log" 2>&1 < /dev/null || status=$?
  "$python" tools/record_part.py --results="$out/results.jsonl" --stage="$stage" --part="$name" --status="$status" \
    --seconds="$((SECONDS - begin))" --limit="$limit" --log="$log"
}

# run NAME SECONDS PROGRAM FLAGS...: mpc-run on a packed program, its results as JSON beside the log.
run() {
  local name="$1" limit="$2" program="$3"
  shift 3
  part "$name" "$limit" bin/mpc-run "programs/$program.mpcx" --json="$out/$stage-$name.json" "$@"
}

start_binaries() {
  if bin/mpc-run --help > /dev/null 2>&1 && bin/gpu_kernel_test --gtest_list_tests > /dev/null 2>&1; then return; fi
  echo "the binaries do not start here: building them from the sources"
  part rebuild 240 sources/rebuild.sh
}

truth() {
  part versions 30 tools/versions.sh
  part properties 30 bin/gpu_probe
  part ceilings 60 "$python" tools/ceilings.py
  part operations 120 bin/gpu_kernel_test --gtest_brief=1 --gtest_output="json:$out/operations.json"
  local network
  for network in lenet5-O0-f32 lenet5-O2-f16 lenet5-O2-bf16 bnnet-O0-f32 bnnet-O2-f16; do
    part "parity-$network" 40 "$python" tools/compare_devices.py "$network" "$out"
  done
  part graph-off 30 "$python" tools/equal_runs.py lenet5-O2-f16 "$out" --change="--graph=off"
  part twice 30 "$python" tools/equal_runs.py lenet5-O2-f16 "$out" --change="--graph=on"
  part eight-a-launch 30 "$python" tools/equal_runs.py lenet5-O2-f16 "$out" --change="--steps-per-launch=8"
  part overflow 40 "$python" tools/overflow_skips.py lenet5-O2-f16 "$out"
  part memory 60 "$python" tools/memory_growth.py lenet5-O2-f16 "$out" --steps=10000
  part memcheck 90 tools/sanitize.sh memcheck
  part racecheck 90 tools/sanitize.sh racecheck
  run speed-lenet5 20 lenet5-O2-f16-cuda --data=synthetic --warmup=200 --steps=2200
  run speed-lenet5-k8 20 lenet5-O2-f16-cuda --data=synthetic --warmup=200 --steps=2200 --steps-per-launch=8
  run speed-resnet50 60 resnet50-O2-f16-b256-cuda --data=synthetic --warmup=10 --steps=40
  run speed-gpt2 60 gpt2-O2-bf16-b32-cuda --data=synthetic --warmup=5 --steps=20
  run tuned-resnet50 90 resnet50-O2-f16-b256-cuda --data=synthetic --warmup=10 --steps=40 --tune
  run tuned-gpt2 90 gpt2-O2-bf16-b32-cuda --data=synthetic --warmup=5 --steps=20 --tune
}

# Peers and mpc alternate, so that both see the same clocks.
compare() {
  local round
  for round in 1 2 3; do
    run "lenet5-b32-$round" 20 lenet5-O2-f16-cuda --data=synthetic --warmup=200 --steps=1200
    run "lenet5-b32-k16-$round" 20 lenet5-O2-f16-cuda --data=synthetic --warmup=320 --steps=3520 --steps-per-launch=16
    part "peer-lenet5-eager-$round" 40 "$python" peers/torch_lenet5.py --device=cuda --batch-size=32 --amp=f16 \
      --json="$out/$stage-peer-lenet5-eager-$round.json"
    part "peer-lenet5-captured-$round" 40 "$python" peers/torch_lenet5.py --device=cuda --batch-size=32 --amp=f16 \
      --mode=captured --json="$out/$stage-peer-lenet5-captured-$round.json"
  done
  run resnet50 60 resnet50-O2-f16-b256-cuda --data=synthetic --warmup=10 --steps=40 --tune
  part peer-resnet50-eager 60 "$python" peers/torch_resnet50.py --batch-size=256 --amp=f16 \
    --json="$out/$stage-peer-resnet50-eager.json"
  part peer-resnet50-compile 120 "$python" peers/torch_resnet50.py --batch-size=256 --amp=f16 --mode=compile \
    --json="$out/$stage-peer-resnet50-compile.json"
  run gpt2 60 gpt2-O2-bf16-b32-cuda --data=synthetic --warmup=5 --steps=20 --tune
  part peer-gpt2-eager 60 "$python" peers/torch_gpt2.py --batch-size=32 --amp=bf16 \
    --json="$out/$stage-peer-gpt2-eager.json"
  part peer-gpt2-compile 120 "$python" peers/torch_gpt2.py --batch-size=32 --amp=bf16 --mode=compile \
    --json="$out/$stage-peer-gpt2-compile.json"
}

explain() {
  local program
  for program in lenet5-O2-f16 resnet50-O2-f16-b256 gpt2-O2-bf16-b32; do
    part "nodes-$program" 60 bin/mpc-run "programs/$program-cuda.mpcx" --data=synthetic --steps=12 --warmup=8 \
      --times="$out/$stage-nodes-$program.json"
  done
  part counters-resnet50 120 "$python" tools/worst_kernels.py resnet50-O2-f16-b256 "$out"
  part counters-gpt2 120 "$python" tools/worst_kernels.py gpt2-O2-bf16-b32 "$out"
  run lenet5-b1024 30 lenet5-O2-f16-b1024-cuda --data=synthetic --warmup=100 --steps=1100
}

start_binaries
"$stage"
exec "$python" tools/results_table.py "$out/results.jsonl" --stage="$stage"
