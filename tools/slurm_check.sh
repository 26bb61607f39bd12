#!/usr/bin/env bash
# Trains in two processes of srun, under a Slurm of its own on this machine: tools/slurm_check.sh [MPC_TRAIN]
#
# Starts munged, slurmctld and slurmd with a configuration in a temporary folder, and stops them at the end. LeNet-5 trains
# over `shared`, and over `mpi` where Slurm has PMIx. The tensors must be those of one process that accumulates. Then it
# checks how srun's jobs end: a process that is killed in training, one that ends before it has joined (srun -K), and
# `mpi` without --mpi=pmix, which is refused by name. Needs root, and Debian's packages slurm-wlm and munge. Without them
# it says so and ends with status 77. On a failure it prints the daemons' logs. Exit status 1: something differs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mpc_train=$(realpath "${1:-build/default/bin/mpc-train}")

skip() {
  echo "slurm_check: skipped: $1"
  exit 77
}
[[ $EUID -eq 0 ]] || skip "not root, and slurmd starts processes of others"
export PATH="$PATH:/usr/sbin"
for program in munged mungekey slurmctld slurmd srun sinfo; do
  command -v "$program" > /dev/null || skip "$program is not installed (Debian: slurm-wlm and munge)"
done

folder=$(mktemp -d)
chmod 755 "$folder"
mkdir -m 700 "$folder/munge"
mkdir "$folder/state" "$folder/spool"
export SLURM_CONF="$folder/slurm.conf"
daemons=()
finish() {
  local status=$?
  [[ $status -eq 0 ]] || scancel --user=root 2> /dev/null || true # of this Slurm alone
  for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do
    kill "${daemons[i]}" 2> /dev/null || true
    wait "${daemons[i]}" || true
  done
  [[ $status -eq 0 ]] || tail -n 20 "$folder"/*.log
  rm -rf "$folder"
}
trap finish EXIT
fail() {
  echo "slurm_check: FAIL: $1"
  exit 1
}

ports=($(python3 -c 'import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))'))
# task/affinity binds a process to processors of its own, as clusters do.
cat > "$SLURM_CONF" << END
ClusterName=check
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
SlurmUser=root
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=check Nodes=$(hostname -s) Default=YES
END

mungekey --create --keyfile="$folder/munge/key"
munged --force --foreground --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" 2> "$folder/munged.log" &
daemons+=($!)
for _ in {1..100}; do
  [[ ! -S "$folder/munge/socket" ]] || break
  sleep 0.1
done
slurmctld -D 2> "$folder/slurmctld.log" &
daemons+=($!)
slurmd -D 2> "$folder/slurmd.log" &
daemons+=($!)
for _ in {1..100}; do
  [[ "$(sinfo --noheader --format=%T 2> /dev/null)" != idle ]] || break
  sleep 0.3
done
[[ "$(sinfo --noheader --format=%T)" == idle ]] || fail "the node is not idle"

srun=(srun -n 2)
[[ $(nproc) -gt 1 ]] || srun+=(--overcommit)
train=("$mpc_train" lenet5 --epochs=1 --drop-remainder --amp-level=O2 --amp-verbosity=0)
"${train[@]}" --threads=1 --quiet --accumulation=2 --save="$folder/alone.safetensors" > /dev/null

equal() {
  python3 -c 'import sys
sys.path.insert(0, "tools")
import ranks
sys.exit(ranks.tensors(sys.argv[1]) != ranks.tensors(sys.argv[2]))' "$folder/alone.safetensors" "$1"
}

# run_equal TRANSPORT FLAGS_OF_SRUN...
run_equal() {
  local transport=$1
  shift
  "${srun[@]}" "$@" "${train[@]}" --threads=1 --distributed --transport="$transport" --save="$folder/saved.safetensors" \
    > "$folder/output"
  grep -q '^2 processes train together, each with 1 threads' "$folder/output" || fail "$transport: srun's ranks are not two"
  equal "$folder/saved.safetensors" || fail "$transport: the tensors differ from those of one process"
  rm "$folder/saved.safetensors"
  echo "srun -n 2 $*${*:+ }over $transport: the tensors of one process"
}

run_equal shared
"${srun[@]}" "${train[@]}" --distributed > "$folder/output"
echo "Without --threads: $(head -n 1 "$folder/output")"
if srun --mpi=list 2>&1 | grep -qw pmix; then
  run_equal mpi --mpi=pmix
else
  echo "srun has no --mpi=pmix: mpi is left out"
fi

if "${srun[@]}" --mpi=none "${train[@]}" --distributed --transport=mpi 2> "$folder/errors"; then fail "mpi without PMIx trains"; fi
grep -q 'no launcher of MPI has started this process' "$folder/errors" || fail "mpi without PMIx: $(cat "$folder/errors")"
echo "srun --mpi=none over mpi: refused by name"

# Rank 1 is killed once rank 0 has saved; rank 0 must name it.
mkdir "$folder/run"
"${srun[@]}" "${train[@]}" --threads=1 --epochs=1000 --distributed --save="$folder/run/" --save-every=5 --quiet \
  2> "$folder/errors" &
job=$!
for _ in {1..600}; do
  [[ -z "$(ls "$folder/run")" ]] || break
  sleep 0.1
done
for process in $(pgrep -f "^$mpc_train lenet5 .*--save=$folder/run/"); do
  if grep -qz '^SLURM_PROCID=1$' "/proc/$process/environ"; then kill -KILL "$process"; fi
done
if wait "$job"; then fail "a job whose rank 1 was killed ends with status 0"; fi
grep -q 'mpc-train: .*rank 1 ' "$folder/errors" || fail "a killed rank is not named: $(cat "$folder/errors")"
echo "Rank 1 killed: $(grep -m 1 'mpc-train: .*rank 1 ' "$folder/errors")"

# A process that ends before it has joined is known to srun alone.
if "${srun[@]}" -K bash -c '[[ $SLURM_PROCID != 1 ]] || exit 3; exec "$@"' bash "${train[@]}" --distributed \
  2> "$folder/errors"; then
  fail "a job whose rank 1 never came ends with status 0"
fi
if grep -q 'has not come' "$folder/errors"; then fail "srun -K has not ended the job: $(cat "$folder/errors")"; fi
echo "srun -K, rank 1 ends before it has joined: srun ends the job"
echo "PASS"
