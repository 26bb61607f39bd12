#!/usr/bin/env bash
# Installs what is needed to build and test mpc, from Debian 12's own archives, and only what is missing. It fetches oneDNN
# and the Python packages of the tests into .deps. Where there is a CUDA toolkit it also fetches the headers of
# cudnn-frontend; MPC_CUDA=OFF in the environment says not to. With --with-mpi it also installs Open MPI, for the transport "mpi".
set -euo pipefail

with_mpi=false
for option in "$@"; do
  [[ "$option" == --with-mpi ]] || {
    echo "setup: unknown option '$option'; give --with-mpi or nothing" >&2
    exit 2
  }
  with_mpi=true
done

# LLVM and MLIR 22 come from bookworm-security. llvm-22-dev brings the headers that LLVM's CMake files ask for (libffi,
# libxml2); llvm-22-tools brings lit and FileCheck; mlir-22-tools brings mlir-tblgen.
packages=(
  g++ cmake ninja-build ccache lld-22 python3
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libabsl-dev nlohmann-json3-dev zlib1g-dev libflatbuffers-dev flatbuffers-compiler
  libjpeg62-turbo-dev libpng-dev libwebp-dev
  libgtest-dev libgmock-dev clang-format-14
)
# Without these mpc builds and its tests run. tools/tidy skips.
optional=(clang-tidy-22)
# Without these the transport "mpi" is not built, and its tests skip.
if $with_mpi; then optional+=(libopenmpi-dev openmpi-bin); fi
python3 -m pip --version > /dev/null 2>&1 || packages+=(python3-pip)

has_cuda=false
if [[ "${MPC_CUDA:-AUTO}" != OFF ]] && { command -v nvcc > /dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]; }; then
  has_cuda=true
  command -v unzip > /dev/null || packages+=(unzip)
fi

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  cat >&2 << 'LIST'
setup: this system has no apt. Building mpc needs:
  a C++20 compiler (GCC 12 or later), CMake 3.25 or later, Ninja, Python 3
  LLVM and MLIR 22.1 with headers, CMake files, shared libraries, mlir-tblgen, lit and FileCheck
  Abseil 20220623, oneDNN 3 (tools/fetch_onednn.sh) or 2.6, nlohmann-json 3.11, zlib, FlatBuffers 2.0.8 with flatc,
  GoogleTest 1.12, an OpenMP runtime, libjpeg-turbo 2.1, libpng 1.6, libwebp 1.2
  optional: ccache, lld 22; clang-tidy 22 for tools/tidy; for tests that need them clang-format 14, and numpy and
  safetensors for Python (tools/fetch_python_packages.sh); for the CUDA backend a CUDA toolkit 12.8 or later, cuDNN 9.8
  or later and the headers of cudnn-frontend (tools/fetch_cudnn_frontend.sh); for the transport "mpi" an MPI that
  follows the standard 3.0 or later
Where LLVM is not in /usr/lib/llvm-22, say so with -DMPC_LLVM_ROOT=<folder>.
LIST
  exit 1
fi

is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2> /dev/null)" == installed ]]
}

can_install=true
as_root=()
if [[ "$(id -u)" -ne 0 ]]; then
  as_root=(sudo)
  command -v sudo > /dev/null || can_install=false
fi
lists_are_new=false
install() {
  if ! $can_install; then
    echo "setup: these packages are missing; install them as root: $*" >&2
    return 1
  fi
  if ! $lists_are_new; then
    "${as_root[@]}" apt-get update < /dev/null || echo "setup: apt-get update failed; trying the package lists that are here"
    lists_are_new=true
  fi
  echo "setup: installing $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" < /dev/null
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
wanted=()
for package in "${optional[@]}"; do
  is_installed "$package" || wanted+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] || install "${missing[@]}"
[[ ${#wanted[@]} -eq 0 ]] || install "${wanted[@]}" ||
  echo "setup: ${wanted[*]} could not be installed; what needs it will skip" >&2

# oneDNN 3 is Debian's own from Debian 13 on. Elsewhere it is fetched. oneDNN 2.6 of Debian 12 is what remains where PyPI
# cannot be reached.
folder="$(dirname "${BASH_SOURCE[0]}")"
version="$(LC_ALL=C apt-cache policy libdnnl-dev | sed -n 's/^ *Candidate: //p')"
if dpkg --compare-versions "${version:-0}" ge 3 2> /dev/null; then
  is_installed libdnnl-dev || install libdnnl-dev
elif ! "$folder/fetch_onednn.sh"; then
  echo "setup: oneDNN 3 could not be fetched; Debian's libdnnl-dev ${version:-} takes its place (docs/cpu.md)" >&2
  is_installed libdnnl-dev || install libdnnl-dev
fi
# Tests skip without the Python packages. Without the headers CMake builds what needs no CUDA. Both say why.
"$folder/fetch_python_packages.sh" ||
  echo "setup: numpy and safetensors could not be fetched; tests that need them will skip" >&2
if $has_cuda; then
  "$folder/fetch_cudnn_frontend.sh" ||
    echo "setup: cudnn-frontend could not be fetched; the CUDA backend will not be built" >&2
fi
[[ ${#missing[@]} -eq 0 && ${#wanted[@]} -eq 0 ]] && echo "setup: everything needed is installed" || echo "setup: done"
