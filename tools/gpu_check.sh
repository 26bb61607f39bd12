#!/usr/bin/env bash
# Runs stages of checks and measurements on a machine with a GPU, inside the folder that tools/gpu_bundle.sh packed:
#   ./gpu_check.sh STAGE...     one or several of, best in this order:
#     first     what is there; LeNet-5 without a graph, each kernel waited for
#     truth     every kernel against its reference; NCCL with one rank; networks against the CPU, and trained whole; equal
#               bits with a graph, twice, with 8 steps a launch; overflows; capsules result by result; loads alone
#     speed     memory and waits of many steps; first speeds
#     compare   how fast beside PyTorch, alternating in one run
#     autotune  ResNet-50 beside torch.compile in its max-autotune mode, which compiles for minutes
#     explain   where the time goes, per instruction
#     tune      how fast with kernels that are chosen by timing them
#     choices   every kernel that tuning may choose against its reference
#     sanitize  memcheck and racecheck of the own kernels, and of whole steps
#     counters  hardware counters of the kernels that take most
# What only asks whether something is right runs beside others, on the same GPU; what is timed runs alone.
# Each stage has its own limit (seconds_of, below; STAGE_SECONDS replaces it), and ends within it. Each part has one too,
# cut to what is left of the stage. The next part goes on when one fails; what has no time left to begin is recorded as
# left out. Everything lies in the folder RESULTS (default: ./results), a short table comes last. Where OUT names a
# folder, it has after each part what was found so far: STAGE.txt (the table of each stage), results.jsonl and
# results.tar.gz (logs and measurements; at the end of each stage). So a stage that dies takes nothing with it.
# Exit status: 0 if every part of every stage passed, 1 if not, 2 for bad usage.
set -uo pipefail
if [[ -n "${OUT:-}" ]]; then OUT="$(realpath -m "$OUT")"; fi
if [[ -n "${RESULTS:-}" ]]; then RESULTS="$(realpath -m "$RESULTS")"; fi
cd "$(dirname "${BASH_SOURCE[0]}")"

# Seconds of a stage. All of them are 30 minutes.
seconds_of() {
  case "$1" in
    first) echo 60 ;;
    truth) echo 180 ;;
    speed) echo 110 ;;
    compare) echo 240 ;;
    autotune) echo 420 ;;
    explain) echo 90 ;;
    tune) echo 140 ;;
    choices) echo 150 ;;
    sanitize) echo 150 ;;
    counters) echo 210 ;;
    *) return 1 ;;
  esac
}

stages=("$@")
if (($# == 0)); then stages=(""); fi
for stage in "${stages[@]}"; do
  if ! seconds_of "$stage" > /dev/null; then
    echo "usage: $0 first|truth|speed|compare|autotune|explain|tune|choices|sanitize|counters ...; got '$stage'" >&2
    exit 2
  fi
done
results="${RESULTS:-$PWD/results}"
keep="${OUT:-}"
unset OUT
mkdir -p "$results"
export PYTHON="${PYTHON:-python3}"
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

# What is known of the stage goes where it outlives this process and its machine. Parts that run beside each other take
# turns.
keep_so_far() {
  local status=0 lock
  exec {lock}> "$results/lock"
  flock "$lock"
  "$PYTHON" tools/results_table.py "$results/results.jsonl" --stage="$stage" > "$results/$stage.txt" || status=$?
  if [[ -n "$keep" ]]; then
    mkdir -p "$keep"
    cp "$results/$stage.txt" "$results/results.jsonl" "$keep/"
  fi
  exec {lock}>&-
  return "$status"
}

# part NAME SECONDS COMMAND...: runs it, keeps its log, notes how it ended. MEASURED names the JSON that it writes, SHOW
# how many lines of its log belong in the table. Fails where the command does.
part() {
  local name="$1" limit="$2"
  shift 2
  local log="$results/$stage-$name.log" begin="$SECONDS" status=0
  local left=$((stage_end - SECONDS - closing_seconds))
  local options=(--part="$name" --log="$log" --show="${SHOW:-1}" ${MEASURED:+--json="$MEASURED"})
  rm -f "$log" ${MEASURED:+"$MEASURED"}
  if ((left < 5)); then
    record "${options[@]}" --status=left-out --seconds=0 --limit="$limit"
    return 1
  fi
  if ((limit > left)); then limit="$left"; fi
  timeout --kill-after=5 "$limit" "$@" > "$log" 2>&1 < /dev/null || status=$?
  record "${options[@]}" --status="$status" --seconds="$((SECONDS - begin))" --limit="$limit"
  keep_so_far
  return "$status"
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
  stage_end=$((stage_end + 240))
  part rebuild 240 "${of_pytorch[@]}" sources/rebuild.sh
}

first() {
  part versions 40 "${of_pytorch[@]}" tools/versions.sh
  part properties 30 bin/gpu_probe
  # A kernel that fails is named: without a graph, and waited for before the next one begins.
  CUDA_LAUNCH_BLOCKING=1 run blocking 30 lenet5-O2-f16 --steps=8 --graph=off
  run stream 20 lenet5-O2-f16 --steps=8 --graph=off
}

# loads NAME SECONDS PROGRAM: no step is run, so that what is found of the libraries' plans is kept whatever a step does.
loads() {
  local name="load-$1" limit="$2" program="$3"
  local MEASURED="$results/$stage-$name.json"
  part "$name" "$limit" bin/mpc-run "programs/$program-cuda.mpcx" --json="$MEASURED" --load-only
}

all_loads() {
  loads lenet5 30 lenet5-O2-f16
  loads resnet50 80 resnet50-O2-f16-b256
  loads gpt2 80 gpt2-O2-bf16-b32
  loads gpt2-again 80 gpt2-O2-bf16-b32
}

parities() {
  local network
  for network in lenet5-O0-f32 lenet5-O2-f16 lenet5-O2-bf16 bnnet-O0-f32 bnnet-O2-f16 gpt2-tiny-O0-f32 \
    gpt2-tiny-O2-bf16 resnet18-cifar-O0-f32 resnet18-cifar-O2-f16; do
    tool "parity-$network" 30 compare_devices "$network"
  done
}

equalities() {
  tool graph-off 30 equal_runs --change=--graph=off lenet5-O2-f16
  tool twice 30 equal_runs --change=--graph=on lenet5-O2-f16
  tool eight-a-launch 30 equal_runs --change=--steps-per-launch=8 lenet5-O2-f16
  tool overflow 40 overflow_skips lenet5-O2-f16
}

# From the digits to the accuracy on those that were not trained on, with the compiler on this machine.
trainings() {
  local level
  for level in O0 O2; do
    SHOW=3 part "train-lenet5-$level" 60 bin/mpc-train lenet5 --device=cuda --amp-level="$level" --data=digits \
      --data-dir=data --steps-per-launch=8 --choice-cache=
  done
}

# What PyTorch compiles stays in its cache: stage compare, if it comes, then times steps.
compiled_peers() {
  [[ " ${stages[*]} " == *" compare "* ]] || return 0
  peer resnet50-compile 140 resnet50 --batch-size=256 --amp=f16 --mode=compile --warmup=1 --steps=3 &
  peer gpt2-compile 140 gpt2 --batch-size=32 --amp=bf16 --mode=compile --warmup=1 --steps=3 &
  peer bert-compile 140 bert --batch-size=256 --amp=bf16 --mode=compile --warmup=1 --steps=3 &
  wait
}

truth() {
  tool operations 150 kernel_tests --filter='-*GpuChoices*' &
  OMP_NUM_THREADS=2 tool networks 150 kernel_tests --name=networks --program=gpu_networks_test --processes=4 &
  tool nccl 30 kernel_tests --name=nccl --program=gpu_nccl_test --processes=1 &
  parities &
  equalities &
  trainings &
  SHOW=3 tool replay 60 replay_steps &
  all_loads &
  compiled_peers &
  wait
}

speed() {
  local network
  tool steady-state 40 kernel_tests --name=steady-state --program=gpu_steady_state_test --processes=1
  tool memory 30 memory_growth lenet5-O2-f16
  run lenet5 20 lenet5-O2-f16 --warmup=200 --steps=2200
  run lenet5-k8 20 lenet5-O2-f16 --warmup=200 --steps=2200 --steps-per-launch=8
  for network in resnet50-O2-f16-b256 resnet50-O2-f16-b256-unfused resnet50-O2-f16-b256-statistics; do
    run "$network" 30 "$network" --warmup=5 --steps=20
  done
  for network in gpt2-O2-bf16-b32 gpt2-O2-bf16-b32-unfused bert-O2-bf16-b256; do
    run "$network" 40 "$network" --warmup=3 --steps=10
  done
}

# Racecheck does not follow how kernels of cuDNN wait for what is copied asynchronously.
of_cudnn=(--kernel-name-exclude kns=cudnn --kernel-name-exclude kns=xmma)

choices() {
  tool choices 130 kernel_tests --name=choices --filter='*GpuChoices*'
}

# sanitized_steps CHECKER NETWORK: whole steps, where generated kernels are and where kernels are started early.
sanitized_steps() {
  part "$1-$2" 130 compute-sanitizer --tool "$1" --error-exitcode 1 --print-limit 8 "${of_cudnn[@]}" bin/mpc-run \
    "programs/$2-cuda.mpcx" --data=synthetic --steps=2 --graph=off
}

# One claim runs each own kernel of each case; repeating the others under a sanitizer would only take time. Generated
# kernels with rows in shared memory are in the loss over many classes.
sanitize() {
  local own="Ops/GpuKernel.MatchesReferenceWithinDerivedBounds/*_own" checker network
  for checker in memcheck racecheck; do
    tool "$checker" 130 kernel_tests --name="$checker" --sanitizer="$checker" --filter="$own" --processes=6 &
    tool "$checker-long-rows" 130 kernel_tests --name="$checker-long-rows" --sanitizer="$checker" \
      --program=gpu_networks_test --filter="*LossOverManyClasses*" --processes=1 &
    for network in lenet5-O2-f16 bnnet-O2-f16 gpt2-tiny-O2-bf16; do
      sanitized_steps "$checker" "$network" &
    done
  done
  wait
}

# Peers and mpc alternate, so that both see the same clocks.
lenet5_round() {
  run "lenet5-b32-$1" 20 lenet5-O2-f16 --warmup=200 --steps=1200
  run "lenet5-b32-k16-$1" 20 lenet5-O2-f16 --warmup=320 --steps=3520 --steps-per-launch=16
  peer "lenet5-eager-$1" 40 lenet5 --batch-size=32 --amp=f16 --warmup=200 --steps=1000
  peer "lenet5-captured-$1" 40 lenet5 --batch-size=32 --amp=f16 --mode=captured --warmup=200 --steps=1000
}

resnet50_run() {
  run "resnet50-$1" 60 resnet50-O2-f16-b256 --warmup=10 --steps=40
}
gpt2_run() {
  run "gpt2-$1" 60 gpt2-O2-bf16-b32 --warmup=5 --steps=20
}

bert_run() {
  run "bert-$1" 60 bert-O2-bf16-b256 --warmup=5 --steps=20
}

compare() {
  resnet50_run 1
  peer resnet50-compile 90 resnet50 --batch-size=256 --amp=f16 --mode=compile --warmup=10 --steps=30
  resnet50_run 2
  gpt2_run 1
  peer gpt2-compile 90 gpt2 --batch-size=32 --amp=bf16 --mode=compile --warmup=5 --steps=15
  gpt2_run 2
  bert_run 1
  peer bert-compile 90 bert --batch-size=256 --amp=bf16 --mode=compile --warmup=5 --steps=15
  bert_run 2
  lenet5_round 1
  peer resnet50-eager 60 resnet50 --batch-size=256 --amp=f16 --warmup=10 --steps=30
  resnet50_run 3
  peer gpt2-eager 60 gpt2 --batch-size=32 --amp=bf16 --warmup=5 --steps=15
  gpt2_run 3
  lenet5_round 2
  lenet5_round 3
}

autotune() {
  resnet50_run 1
  peer resnet50-max-autotune 390 resnet50 --batch-size=256 --amp=f16 --mode=max-autotune --warmup=10 --steps=30
  resnet50_run 2
}

explain() {
  local network
  for network in lenet5-O2-f16 gpt2-O2-bf16-b32 resnet50-O2-f16-b256; do
    SHOW=13 tool "timeline-$network" 30 timeline "$network"
    SHOW=17 tool "nodes-$network" 30 step_times "$network"
  done
  run lenet5-b1024 30 lenet5-O2-f16-b1024 --warmup=100 --steps=1100
}

counters() {
  SHOW=13 tool counters-gpt2 100 worst_kernels gpt2-O2-bf16-b32
  SHOW=13 tool counters-resnet50 100 worst_kernels resnet50-O2-f16-b256
}

# tuned NAME SECONDS PROGRAM FLAGS...: with choices that are timed here and kept, so that a run that is cut short loses
# none; where that fails, again without what was kept.
tuned() {
  local name="$1" limit="$2" program="$3"
  shift 3
  run "$name" "$limit" "$program" "$@" --tune --choice-cache="$results/choices" ||
    run "$name-no-cache" "$limit" "$program" "$@"
}

tune() {
  tuned lenet5 40 lenet5-O2-f16 --warmup=200 --steps=2200
  tuned resnet50 120 resnet50-O2-f16-b256 --warmup=10 --steps=40
  tuned gpt2 120 gpt2-O2-bf16-b32 --warmup=5 --steps=20
  part ceilings 60 "${of_pytorch[@]}" "$PYTHON" tools/ceilings.py
}

failed=0
for stage in "${stages[@]}"; do
  stage_end=$((SECONDS + ${STAGE_SECONDS:-$(seconds_of "$stage")}))
  if [[ -z "${started:-}" ]]; then start_binaries; fi
  started=yes
  "$stage"
  keep_so_far || failed=1
  cat "$results/$stage.txt"
  if [[ -n "$keep" ]]; then
    timeout 10 tar czf "$keep/results.tar.gz" -C "$results" --exclude='*.safetensors' --exclude='*.capsule' --exclude='*.tar.gz' .
  fi
done
exit "$failed"
