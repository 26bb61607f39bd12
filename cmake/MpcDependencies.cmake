# Third-party packages. tools/setup.sh lists the Debian packages that provide them.

find_package(absl REQUIRED)
# Debian's dnnl-config.cmake asks for OpenCL's headers, which the CPU engine does not need: find the library itself.
find_path(MPC_DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
find_library(MPC_DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${MPC_DNNL_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${MPC_DNNL_INCLUDE_DIR}")
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)

set(MPC_LLVM_ROOT "/usr/lib/llvm-22" CACHE PATH "Where LLVM and MLIR 22 are installed")
find_package(MLIR REQUIRED CONFIG HINTS "${MPC_LLVM_ROOT}/lib/cmake/mlir")
find_package(LLVM 22.1 REQUIRED CONFIG HINTS "${MPC_LLVM_ROOT}/lib/cmake/llvm")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
# libMLIR lies outside the loader's default folders; installed tools must find it too.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# CUDA is found or not; the CPU backend needs none of it.
set(MPC_HAVE_CUDA FALSE)
if(NOT MPC_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  set(MPC_HAVE_CUDA ${CUDAToolkit_FOUND})
  if(MPC_CUDA STREQUAL "ON" AND NOT MPC_HAVE_CUDA)
    message(FATAL_ERROR "MPC_CUDA=ON, but no CUDA toolkit was found. Install one or use -DMPC_CUDA=AUTO or OFF.")
  endif()
endif()
message(STATUS "CUDA toolkit: ${MPC_HAVE_CUDA} (MPC_CUDA=${MPC_CUDA})")
