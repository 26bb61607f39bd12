#!/usr/bin/env bash
# Builds libmpc_cuda.so and gpu_kernel_test from the packed sources with nvcc and g++, where the packed binaries do not
# start. The libraries and headers that they need are in the archive; cuBLAS and cuDNN are the machine's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bundle="$(cd .. && pwd)"
objects="$PWD/objects"
mkdir -p "$objects"
cuda="$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")"
includes=(-I. -Iinclude -isystem "$cuda/include")
while IFS= read -r folder; do includes+=(-isystem "$folder"); done < <(
  "${PYTHON:-python3}" -c 'import glob, site; print("\n".join(f for s in site.getsitepackages() for f in glob.glob(s + "/nvidia/*/include")))')

compile() {
  local source="$1" object
  object="$objects/$(echo "$source" | tr '/' '_').o"
  case "$source" in
    *.cu) nvcc -std=c++20 -O3 -arch=sm_90 --expt-relaxed-constexpr -fmad=false -Xcompiler=-fPIC "${includes[@]}" -c "$source" -o "$object" ;;
    *) g++ -std=c++20 -O2 -fPIC "${includes[@]}" -c "$source" -o "$object" ;;
  esac
}

sources=(device_properties.cc kernels/*.cc kernels/cuda/*.cc kernels/cuda/*.cu kernels/cuda/library/*.cc kernels/reference/*.cc
  runtime/cuda/*.cc runtime/{atomic_file,memory_planner,program_binding,program_check,state_store}.cc
  tests/gpu/gpu_kernel_*.cc tests/kernels/{acceptance,*bounds,kernel_checks,kernel_run}.cc tests/op_cases/*.cc)
failed=0
for source in "${sources[@]}"; do
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || failed=1; done
  compile "$source" &
done
while (($(jobs -rp | wc -l) > 0)); do wait -n || failed=1; done
if ((failed)); then
  echo "rebuild: some sources did not compile" >&2
  exit 1
fi

cudnn="$("${PYTHON:-python3}" -c 'import glob, site; print(([f for s in site.getsitepackages() for f in glob.glob(s + "/nvidia/cudnn/lib/libcudnn.so.9")] + ["libcudnn.so.9"])[0])')"
cublas="$("${PYTHON:-python3}" -c 'import glob, site; print(([f for s in site.getsitepackages() for f in glob.glob(s + "/nvidia/*/lib/libcublasLt.so.13")] + ["libcublasLt.so.13"])[0])')"
libraries=("$bundle"/lib/libabsl_*.so* "$cudnn" "$cublas" "$cuda"/lib64/libcudart_static.a -lpthread -ldl -lrt)
common=("$objects"/{device_properties.cc,kernels_*,runtime_*}.o)
g++ -shared -o "$bundle/lib/libmpc_cuda.so" "${common[@]}" "${libraries[@]}"
g++ -o "$bundle/bin/gpu_kernel_test" "${common[@]}" "$objects"/tests_*.o "$bundle"/lib/libgtest*.so* "${libraries[@]}"
echo "rebuild: done"
