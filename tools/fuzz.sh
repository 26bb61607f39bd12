#!/usr/bin/env bash
# Fuzzes a reader of files under the address and undefined-behaviour sanitizers: libFuzzer, with clang.
#
#   tools/fuzz.sh READER|all [--runs=N | --seconds=S] [--seed=N] [--keep]
#
# READER is safetensors, npy, program, idx, gzip_rows, jpeg, png, webp, exif, csv, npz, store or capsule. Each gets N
# inputs, or S seconds (60 where nothing is said). It starts from tests/fuzz/corpus/READER. What it finds of use goes to build/fuzz/corpus/READER,
# where the next run starts too. An input that a reader fails on is an error: it lies in build/fuzz/faults/READER. --keep
# copies what reaches code that tests/fuzz/corpus/READER does not reach, made as few as possible, into
# tests/fuzz/corpus/READER.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readers=(safetensors npy program idx gzip_rows jpeg png webp exif csv npz store capsule)
usage() {
  echo "fuzz: $1; usage: tools/fuzz.sh READER|all [--runs=N | --seconds=S] [--seed=N] [--keep], where READER is one of" \
    "${readers[*]}" >&2
  exit 2
}

[[ $# -ge 1 ]] || usage "no reader is given"
chosen=("$1")
if [[ "$1" == all ]]; then
  chosen=("${readers[@]}")
elif [[ " ${readers[*]} " != *" $1 "* ]]; then
  usage "'$1' is no reader"
fi
shift
limit="" seed=0 keep=false
for argument in "$@"; do
  case "$argument" in
    --runs=* | --seconds=*)
      [[ -z "$limit" ]] || usage "--runs and --seconds are given"
      [[ "${argument#*=}" =~ ^[1-9][0-9]*$ ]] || usage "'$argument' has no positive whole number"
      limit="${argument/#--runs=/-runs=}"
      limit="${limit/#--seconds=/-max_total_time=}"
      ;;
    --seed=*)
      [[ "${argument#*=}" =~ ^[0-9]+$ ]] || usage "'$argument' has no whole number"
      seed="${argument#*=}"
      ;;
    --keep) keep=true ;;
    *) usage "'$argument' is unknown" ;;
  esac
done

command -v clang++ > /dev/null || { echo "fuzz: clang++ is not installed (Debian: apt-get install clang)" >&2; exit 1; }
mkdir -p build/fuzz
cmake -S tests/fuzz/libfuzzer -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ < /dev/null \
  > build/fuzz/configure.log || { cat build/fuzz/configure.log; exit 1; }
cmake --build build/fuzz -- --quiet -k 0 < /dev/null

# A refusal is an answer; so is a file of any size that the reader takes a moment for.
limits=(-timeout=20 -rss_limit_mb=2048 -max_len=4096)
failed=()
for reader in "${chosen[@]}"; do
  fuzzer="build/fuzz/fuzz_$reader" start="tests/fuzz/corpus/$reader"
  found="build/fuzz/corpus/$reader" faults="build/fuzz/faults/$reader" log="build/fuzz/$reader.log"
  mkdir -p "$found" "$faults"
  status=0
  "$fuzzer" "${limits[@]}" "${limit:--max_total_time=60}" -seed="$seed" -print_final_stats=1 \
    -artifact_prefix="$faults/" "$found" "$start" > "$log" 2>&1 || status=$?
  inputs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  # "#N DONE cov: EDGES ft: FEATURES corp: FILES/SIZE ..."
  reached="$(grep -aE 'cov: [0-9]+' "$log" | tail -1 | sed -E 's/.*cov: ([0-9]+) ft: ([0-9]+).*/\1 edges, \2 features/' || true)"
  seconds="$(sed -nE 's/^Done [0-9]+ runs in ([0-9]+) second.*/\1/p' "$log")"
  echo "fuzz: $reader: ${inputs:-?} inputs in ${seconds:-?} s, ${reached:-no figures}, exit status $status"
  if [[ $status -ne 0 ]]; then
    failed+=("$reader")
    tail -n 40 "$log"
    echo "fuzz: the input lies in $faults; $log has all that was said"
    continue
  fi
  if $keep; then
    before="$(find "$start" -type f | wc -l)"
    "$fuzzer" "${limits[@]}" -merge=1 -use_counters=0 "$start" "$found" > "$log.merge" 2>&1
    echo "fuzz: $reader: $(($(find "$start" -type f | wc -l) - before)) files are new in $start"
  fi
done
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "fuzz: faults in ${failed[*]}" >&2
  exit 1
fi
