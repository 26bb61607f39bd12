#!/usr/bin/env bash
# Packs what a bare machine with a GPU needs for tools/gpu_check.sh, as one archive of at most 40 MiB:
#   tools/gpu_bundle.sh [FOLDER]       default: build/gpu_bundle; the archive is FOLDER/mpc-gpu.tar.xz
# The machine: x86-64 with glibc 2.36 or later, a driver for CUDA 13, cuBLAS and cuDNN from the toolkit or from Python's
# packages, python3 with numpy and PyTorch. Neither MLIR nor a network. BUILD names the build folder (default: build).
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
build="${BUILD:-$root/build}"
folder="${1:-$build/gpu_bundle}"
bundle="$folder/mpc-gpu"
arch="${ARCH:-sm_90}"
most_bytes=$((40 << 20))

for needed in bin/mpc-train bin/mpc-run bin/gpu_probe lib/libmpc_cuda.so tests/gpu/gpu_kernel_test; do
  if [[ ! -e "$build/$needed" ]]; then
    echo "gpu_bundle: $build/$needed is missing: build with CUDA first (cmake --preset default; cmake --build --preset default)" >&2
    exit 1
  fi
done
rm -rf "$bundle"
mkdir -p "$bundle"/{bin,lib,programs,peers,tools,sources}

# Programs. emit NAME MODEL FLAGS...: for the GPU; emit_both: for the CPU as well, to compare.
emit() {
  local name="$1" model="$2"
  shift 2
  "$build/bin/mpc-train" "$model" --emit="$bundle/programs/$name-cuda.mpcx" --device=cuda --arch="$arch" --seed=1 "$@"
}
emit_both() {
  local name="$1" model="$2"
  emit "$@"
  shift 2
  "$build/bin/mpc-train" "$model" --emit="$bundle/programs/$name-cpu.mpcx" --seed=1 "$@"
}
emit_both lenet5-O0-f32 lenet5 --batch-size=32 --amp-level=O0
emit_both lenet5-O2-f16 lenet5 --batch-size=32 --amp-level=O2 --dtype=f16
emit_both lenet5-O2-bf16 lenet5 --batch-size=32 --amp-level=O2 --dtype=bf16
emit_both bnnet-O0-f32 bnnet --batch-size=32 --amp-level=O0
emit_both bnnet-O2-f16 bnnet --batch-size=32 --amp-level=O2 --dtype=f16
emit lenet5-O2-f16-b1024 lenet5 --batch-size=1024 --amp-level=O2 --dtype=f16
emit resnet50-O2-f16-b256 resnet50 --data=synthetic --batch-size=256 --amp-level=O2 --dtype=f16
emit gpt2-O2-bf16-b32 gpt2 --data=synthetic --batch-size=32 --amp-level=O2 --dtype=bf16

# Binaries with the shared libraries that such a machine lacks. cuBLAS and cuDNN are there, the C library is its own.
cp "$build/bin/mpc-run" "$build/bin/gpu_probe" "$build/tests/gpu/gpu_kernel_test" "$bundle/bin/"
cp "$build/lib/libmpc_cuda.so" "$bundle/lib/"
strip --strip-unneeded "$bundle"/bin/* "$bundle/lib/libmpc_cuda.so"
ldd "$bundle"/bin/* "$bundle/lib/libmpc_cuda.so" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    case "$name" in
      libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux* | libcuda.so.* | libcublas* | libcudnn*) ;;
      *) cp -L "$path" "$bundle/lib/$name" ;;
    esac
  done

cp tools/gpu_check.sh "$bundle/"
cp tools/gpu/*.py tools/gpu/*.sh "$bundle/tools/"
cp tools/peers/*.py "$bundle/peers/"

# Sources of all CUDA code, and the headers of the libraries it is written with, to build where a binary does not start.
git ls-files kernels runtime tests/gpu tests/kernels tests/op_cases tools/gpu | tar cf - -T - | tar xf - -C "$bundle/sources"
mv "$bundle/tools/rebuild.sh" "$bundle/sources/rebuild.sh"
mkdir -p "$bundle/sources/include"
cp -rL /usr/include/absl /usr/include/nlohmann /usr/include/gtest "$bundle/sources/include/"
cp -r "${CUDNN_FRONTEND:-$root/.deps/cudnn-frontend}/include/." "$bundle/sources/include/"
find "$build" -name device_properties.cc -path '*library*' -exec cp {} "$bundle/sources/" \;

{
  echo "mpc $(git describe --always --dirty), packed $(date --iso-8601=seconds), programs for $arch"
} > "$bundle/VERSION"

tar cJf "$folder/mpc-gpu.tar.xz" -C "$folder" mpc-gpu
bytes="$(stat -c %s "$folder/mpc-gpu.tar.xz")"
echo "gpu_bundle: $folder/mpc-gpu.tar.xz has $((bytes >> 20)) MiB; there: tar xf mpc-gpu.tar.xz && mpc-gpu/gpu_check.sh truth"
if ((bytes > most_bytes)); then
  echo "gpu_bundle: the archive may have $((most_bytes >> 20)) MiB" >&2
  exit 1
fi
