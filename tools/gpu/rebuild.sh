#!/usr/bin/env bash
# Builds libmpc_cuda.so, gpu_kernel_test, gpu_nccl_test and gpu_probe from the packed sources with nvcc and g++, where the packed
# binaries do not start. The libraries and headers that they need are in the archive; those of CUDA, cuBLAS and cuDNN
# are the machine's. The file arch has the architecture of the packed kernels.
# mpc-run is not built: it needs oneDNN's headers and more of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bundle="$(cd .. && pwd)"
objects="$PWD/objects"
mkdir -p "$objects"
if ! command -v nvcc > /dev/null; then
  echo "rebuild: there is no nvcc on PATH" >&2
  exit 1
fi
cuda="$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")"

# Folders of Python's packages that match a pattern below nvidia/, one a line.
package_folders() {
  "${PYTHON:-python3}" -c '
import glob, site, sys
found = [path for folder in site.getsitepackages() for path in sorted(glob.glob(folder + "/nvidia/" + sys.argv[1]))]
print("\n".join(found))' "$1"
}
flags=(-std=c++20 -DCUDNN_FRONTEND_SKIP_JSON_LIB -I. -isystem include -isystem "$cuda/include")
while read -r folder; do [[ -n "$folder" ]] && flags+=(-isystem "$folder"); done < <(package_folders '*/include')
# Where NCCL is missing its transport is refused.
if g++ "${flags[@]}" -E -x c++ - <<< '#include <nccl.h>' > /dev/null 2>&1; then
  flags+=(-DMPC_HAVE_NCCL '-DMPC_NCCL_BUILD_LIBRARY="libnccl.so"')
fi
libraries=("$bundle"/lib/libabsl_*.so* "$bundle/lib/compiler/libz.so.1")
for folder in "$cuda/lib64" "$cuda/lib"; do libraries+=("-L$folder"); done
while read -r folder; do [[ -n "$folder" ]] && libraries+=("-L$folder"); done < <(package_folders '*/lib')
libraries+=(-l:libcudnn.so.9 -l:libcublasLt.so.13 -l:libcudart_static.a -lpthread -ldl -lrt)

# Abseil of this age forgets <cstdint>, which newer compilers no longer include by the way. No contraction: see
# docs/gpu.md, which bits are equal.
compile() {
  local source="$1" object
  object="$objects/${source//\//_}.o"
  case "$source" in
    *.cu)
      nvcc "${flags[@]}" -O3 -arch="$(cat arch)" --expt-relaxed-constexpr -fmad=false -Xcompiler=-fPIC -include cstdint \
        -c "$source" -o "$object"
      ;;
    *)
      g++ "${flags[@]}" -O2 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -ffp-contract=off -include cstdint \
        -c "$source" -o "$object"
      ;;
  esac
}

# ONLY, a pattern, compiles what matches it and links nothing: to try the packing.
sources=(kernels/cuda/*.cu device_properties.cc kernels/*.cc kernels/cuda/*.cc kernels/cuda/library/*.cc
  kernels/reference/*.cc runtime/cuda/*.cc runtime/*.cc runtime/distributed/*.cc
  tests/gpu/gpu_kernel_{device,test}.cc tests/gpu/gpu_nccl_test.cc tests/kernels/{acceptance,*bounds,*_checks,kernel_run}.cc
  tests/op_cases/*.cc tools/gpu/gpu_probe.cc)
failed=0
for source in "${sources[@]}"; do
  # shellcheck disable=SC2053
  if [[ -n "${ONLY:-}" && "$source" != $ONLY ]]; then continue; fi
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || failed=1; done
  compile "$source" &
done
for job in $(jobs -p); do wait "$job" || failed=1; done
if ((failed)); then
  echo "rebuild: some sources did not compile" >&2
  exit 1
fi
if [[ -n "${ONLY:-}" ]]; then exit 0; fi

# The linker takes of the runtime what the others need.
rm -f "$objects/libruntime.a"
ar rcs "$objects/libruntime.a" "$objects"/runtime_*.o
common=("$objects"/{device_properties.cc,kernels_*,runtime_cuda_*}.o)
libraries=("$objects/libruntime.a" "${libraries[@]}")
g++ -shared -Wl,-z,defs -o "$bundle/lib/libmpc_cuda.so" "${common[@]}" "${libraries[@]}"
g++ -o "$bundle/bin/gpu_kernel_test" "${common[@]}" "$objects"/tests_{gpu_gpu_kernel,kernels,op_cases}*.o \
  lib/libgtest_main.a lib/libgtest.a "${libraries[@]}"
g++ -o "$bundle/bin/gpu_nccl_test" "${common[@]}" "$objects"/tests_gpu_gpu_nccl_test.cc.o lib/libgtest_main.a \
  lib/libgtest.a "${libraries[@]}"
g++ -o "$bundle/bin/gpu_probe" "${common[@]}" "$objects"/tools_gpu_gpu_probe.cc.o "${libraries[@]}"
echo "rebuild: done"
