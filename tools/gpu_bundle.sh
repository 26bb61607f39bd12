#!/usr/bin/env bash
# Packs what a bare machine with a GPU needs for tools/gpu_check.sh, as one archive of at most 40 MiB:
#   tools/gpu_bundle.sh [FOLDER]       default: BUILD/gpu_bundle; the archive is FOLDER/mpc-gpu.tar.xz
# The machine: x86-64 with glibc 2.36 or later, a driver for CUDA 13, cuBLAS 13 and cuDNN 9 from the toolkit or from
# Python's packages, python3 with numpy and PyTorch. Neither MLIR nor a network.
# BUILD names the build folder (default: build/default).
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
build="$(realpath -m "${BUILD:-$root/build/default}")"
folder="$(realpath -m "${1:-$build/gpu_bundle}")"
cd "$root"
bundle="$folder/mpc-gpu"
arch="${ARCH:-sm_90}"
most_bytes=$((40 << 20))

for needed in bin/mpc-{train,run,bisect} bin/gpu_probe lib/libmpc_cuda.so \
  tests/gpu/gpu_{kernel,nccl,networks,steady_state}_test; do
  if [[ ! -e "$build/$needed" ]]; then
    echo "gpu_bundle: $build/$needed is missing: build with CUDA first" >&2
    exit 1
  fi
done
rm -rf "$bundle"
mkdir -p "$bundle"/{bin,lib/compiler,programs,expected,peers,tools,sources/lib}
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

# Programs. emit NAME MODEL FLAGS...: for the GPU. emit_and_expect: and 8 steps of the same on this machine's CPU, whose
# losses and state are packed, beside those of 8 steps from parameters that a rounding moved (-perturbed). The CPU's
# program itself fits one processor and is not packed. With f16 the first 6 steps find the loss scale.
emit() {
  local name="$1" model="$2"
  shift 2
  "$build/bin/mpc-train" "$model" --emit="$bundle/programs/$name-cuda.mpcx" --device=cuda --arch="$arch" --seed=1 \
    --amp-verbosity=0 "$@"
}
emit_and_expect() {
  local name="$1" model="$2"
  emit "$@"
  shift 2
  "$build/bin/mpc-train" "$model" --emit="$scratch/$name.mpcx" --seed=1 --amp-verbosity=0 "$@" > /dev/null
  "$build/bin/mpc-run" "$scratch/$name.mpcx" --seed=1 --dump-state="$scratch/$name.safetensors" > /dev/null
  python3 tools/gpu/perturb_state.py "$scratch/$name.safetensors" "$scratch/$name-perturbed.safetensors"
  local suffix
  for suffix in "" -perturbed; do
    "$build/bin/mpc-run" "$scratch/$name.mpcx" --load-state="$scratch/$name$suffix.safetensors" --data=synthetic \
      --seed=1 --steps=8 --json="$bundle/expected/$name$suffix.json" \
      --dump-state="$bundle/expected/$name$suffix.safetensors" > /dev/null
  done
}
emit_and_expect lenet5-O0-f32 lenet5 --batch-size=32 --amp-level=O0
emit_and_expect lenet5-O2-f16 lenet5 --batch-size=32 --amp-level=O2 --dtype=f16
emit_and_expect lenet5-O2-bf16 lenet5 --batch-size=32 --amp-level=O2 --dtype=bf16
emit_and_expect bnnet-O0-f32 bnnet --batch-size=32 --amp-level=O0
emit_and_expect bnnet-O2-f16 bnnet --batch-size=32 --amp-level=O2 --dtype=f16
emit_and_expect gpt2-tiny-O0-f32 gpt2-tiny --data=synthetic --batch-size=4 --amp-level=O0
emit_and_expect gpt2-tiny-O2-bf16 gpt2-tiny --data=synthetic --batch-size=4 --amp-level=O2 --dtype=bf16
emit_and_expect resnet18-cifar-O0-f32 resnet18-cifar --data=synthetic --batch-size=16 --amp-level=O0
emit_and_expect resnet18-cifar-O2-f16 resnet18-cifar --data=synthetic --batch-size=16 --amp-level=O2 \
  --dtype=f16
python3 tools/gpu/thin_state.py "$bundle"/expected/*.safetensors
emit lenet5-O2-f16-b1024 lenet5 --batch-size=1024 --amp-level=O2 --dtype=f16
resnet50=(resnet50 --data=synthetic --batch-size=256 --amp-level=O2 --dtype=f16)
emit resnet50-O2-f16-b256 "${resnet50[@]}"
gpt2=(gpt2 --data=synthetic --batch-size=32 --amp-level=O2 --dtype=bf16 --optimizer=adamw --lr=0.0003 --weight-decay=0.1)
emit gpt2-O2-bf16-b32 "${gpt2[@]}"
# Beside them: without generated kernels; with statistics in convolutions.
emit resnet50-O2-f16-b256-unfused "${resnet50[@]}" --fusion=false
emit resnet50-O2-f16-b256-statistics "${resnet50[@]}" --allow-conv-statistics
emit gpt2-O2-bf16-b32-unfused "${gpt2[@]}" --fusion=false
emit bert-O2-bf16-b256 bert --data=synthetic --batch-size=256 --amp-level=O2 --dtype=bf16

# Binaries with the shared libraries that such a machine lacks. cuBLAS and cuDNN are there, the C library is its own,
# and the compiler's run-time libraries lie apart: gpu_check.sh takes them only where they are needed.
cp "$build"/bin/mpc-{run,bisect} "$build/bin/gpu_probe" "$build"/tests/gpu/gpu_{kernel,nccl}_test "$bundle/bin/"
for program in bin/mpc-train tests/gpu/gpu_{networks,steady_state}_test; do
  BUILD="$build" tools/gpu/link_compiler.sh "$program" "$bundle/bin/$(basename "$program")"
done
cp -r data "$bundle/"
cp "$build/lib/libmpc_cuda.so" "$bundle/lib/"
# Without CUPTI here there is none, and stage explain says so.
if [[ -e "$build/lib/libgpu_timeline.so" ]]; then cp "$build/lib/libgpu_timeline.so" "$bundle/lib/"; fi
strip --strip-unneeded "$bundle"/bin/* "$bundle/lib/libmpc_cuda.so"
ldd "$bundle"/bin/* "$bundle/lib/libmpc_cuda.so" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    case "$name" in
      libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux*) ;;
      libcuda.so.* | libcublas* | libcudnn*) ;;
      libstdc++.so.* | libgcc_s.so.* | libgomp.so.* | libz.so.*) cp -L "$path" "$bundle/lib/compiler/$name" ;;
      *) cp -L "$path" "$bundle/lib/$name" ;;
    esac
  done

cp tools/gpu_check.sh "$bundle/"
cp tools/gpu/*.py tools/gpu/*.sh "$bundle/tools/"
cp tools/peers/*.py "$bundle/peers/"

# Sources of all CUDA code, and the headers of the libraries it is written with, to build where a binary does not start.
tar cf - --exclude=__pycache__ kernels runtime tests/gpu tests/kernels tests/op_cases tools/gpu |
  tar xf - -C "$bundle/sources"
mv "$bundle/tools/rebuild.sh" "$bundle/sources/rebuild.sh"
echo "$arch" > "$bundle/sources/arch"
rm "$bundle/tools/link_compiler.sh"
mkdir -p "$bundle/sources/include"
cp -rL /usr/include/absl /usr/include/nlohmann /usr/include/gtest /usr/include/zlib.h "$bundle/sources/include/"
find -L /usr/include -name zconf.h -exec cp {} "$bundle/sources/include/" \;
cp -r "${CUDNN_FRONTEND:-$root/.deps/cudnn-frontend}/include/." "$bundle/sources/include/"
cp "$(g++ -print-file-name=libgtest.a)" "$(g++ -print-file-name=libgtest_main.a)" "$bundle/sources/lib/"
find "$build" -name device_properties.cc -path '*library*' -exec cp {} "$bundle/sources/" \;

{
  echo "mpc $(git describe --always --dirty), packed $(date --iso-8601=seconds), programs for $arch"
} > "$bundle/VERSION"

# The binaries have the same kernels: a dictionary as large as two of them stores these once.
tar cf - -C "$folder" mpc-gpu | xz -6 --lzma2=preset=6,dict=256MiB > "$folder/mpc-gpu.tar.xz"
bytes="$(stat -c %s "$folder/mpc-gpu.tar.xz")"
echo "gpu_bundle: $folder/mpc-gpu.tar.xz has $((bytes >> 20)) MiB"
echo "there: tar xf mpc-gpu.tar.xz && mpc-gpu/gpu_check.sh first truth speed"
if ((bytes > most_bytes)); then
  echo "gpu_bundle: the archive may have $((most_bytes >> 20)) MiB" >&2
  exit 1
fi
