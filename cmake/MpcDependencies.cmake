# Third-party packages. tools/setup.sh lists the Debian packages that provide them.

find_package(absl REQUIRED)
include(MpcOnednn)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
# Debian's libwebp comes without CMake files.
find_path(MPC_WEBP_INCLUDE_DIR webp/decode.h REQUIRED)
find_library(MPC_WEBP_LIBRARY webp REQUIRED)
add_library(WebP::webp UNKNOWN IMPORTED GLOBAL)
set_target_properties(WebP::webp PROPERTIES IMPORTED_LOCATION "${MPC_WEBP_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${MPC_WEBP_INCLUDE_DIR}")
find_package(FlatBuffers REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)

# MPI is found or not; nothing but the transport of that name needs it.
set(MPC_HAVE_MPI FALSE)
if(NOT MPC_MPI STREQUAL "OFF")
  find_package(MPI 3.0 QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(MPC_HAVE_MPI TRUE)
  elseif(MPC_MPI STREQUAL "ON")
    message(FATAL_ERROR "MPC_MPI=ON, but MPI 3.0 or later was not found. tools/setup.sh --with-mpi installs it; or use -DMPC_MPI=AUTO or OFF.")
  endif()
endif()
message(STATUS "MPI transport: ${MPC_HAVE_MPI} (MPC_MPI=${MPC_MPI})")

if(MPC_COMPILER)
  set(MPC_LLVM_ROOT "/usr/lib/llvm-22" CACHE PATH "Where LLVM and MLIR 22 are installed")
  find_package(MLIR REQUIRED CONFIG HINTS "${MPC_LLVM_ROOT}/lib/cmake/mlir")
  find_package(LLVM 22.1 REQUIRED CONFIG HINTS "${MPC_LLVM_ROOT}/lib/cmake/llvm")
  list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
  # libMLIR lies outside the loader's default folders; installed tools must find it too.
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()

# CUDA is found or not; the CPU backend needs none of it. The backend takes the toolkit (nvcc, cudart, cuBLASLt), cuDNN 9
# and the headers of cudnn-frontend, which tools/setup.sh fetches into .deps.
set(MPC_HAVE_CUDA FALSE)
set(MPC_CUDNN_FRONTEND_DIR "${PROJECT_SOURCE_DIR}/.deps/cudnn-frontend" CACHE PATH
    "Folder whose include/ holds cudnn_frontend.h")
if(NOT MPC_CUDA STREQUAL "OFF")
  set(MPC_CUDA_MISSING "")
  find_package(CUDAToolkit 12.8 QUIET)
  if(CUDAToolkit_FOUND)
    find_path(MPC_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} "$ENV{CUDNN_PATH}/include")
    find_library(MPC_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} "$ENV{CUDNN_PATH}/lib")
    find_path(MPC_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS "${MPC_CUDNN_FRONTEND_DIR}/include" NO_DEFAULT_PATH)
    if(NOT MPC_CUDNN_INCLUDE_DIR OR NOT MPC_CUDNN_LIBRARY)
      string(APPEND MPC_CUDA_MISSING " cuDNN 9;")
    endif()
    if(NOT MPC_CUDNN_FRONTEND_INCLUDE_DIR)
      string(APPEND MPC_CUDA_MISSING " cudnn-frontend in ${MPC_CUDNN_FRONTEND_DIR} (tools/setup.sh fetches it);")
    endif()
  else()
    string(APPEND MPC_CUDA_MISSING " a CUDA toolkit of version 12.8 or later;")
  endif()
  if(MPC_CUDA_MISSING STREQUAL "")
    set(MPC_HAVE_CUDA TRUE)
  elseif(MPC_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MPC_CUDA=ON, but this is missing:${MPC_CUDA_MISSING} or use -DMPC_CUDA=AUTO or OFF.")
  endif()
endif()
message(STATUS "CUDA backend: ${MPC_HAVE_CUDA} (MPC_CUDA=${MPC_CUDA})${MPC_CUDA_MISSING}")
if(MPC_HAVE_CUDA)
  # sm_80 and sm_90 as machine code; PTX of the latter for what comes after.
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU architectures of the kernels")
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}" CACHE FILEPATH "nvcc")
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  add_library(mpc_cudnn INTERFACE)
  # Own kernels need no cudnn-frontend. A path into the clone would keep the compiler cache from sharing their objects.
  target_include_directories(mpc_cudnn SYSTEM INTERFACE "${MPC_CUDNN_INCLUDE_DIR}"
                             "$<$<COMPILE_LANGUAGE:CXX>:${MPC_CUDNN_FRONTEND_INCLUDE_DIR}>")
  # The frontend calls NVRTC, which cuDNN needs for its engines anyway. Graphs are not written as JSON.
  target_link_libraries(mpc_cudnn INTERFACE "${MPC_CUDNN_LIBRARY}" CUDA::nvrtc)
  target_compile_definitions(mpc_cudnn INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
endif()

# NCCL is found or not; GPUs of several processes exchange values by it. The library is opened at run time, here or where
# the loader finds it.
set(MPC_HAVE_NCCL FALSE)
if(MPC_HAVE_CUDA AND NOT MPC_NCCL STREQUAL "OFF")
  find_path(MPC_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} "$ENV{NCCL_HOME}/include")
  find_library(MPC_NCCL_LIBRARY NAMES libnccl.so.2 nccl HINTS ${CUDAToolkit_LIBRARY_DIR} "$ENV{NCCL_HOME}/lib")
  if(MPC_NCCL_INCLUDE_DIR AND MPC_NCCL_LIBRARY)
    set(MPC_HAVE_NCCL TRUE)
  endif()
endif()
if(MPC_NCCL STREQUAL "ON" AND NOT MPC_HAVE_NCCL)
  message(FATAL_ERROR "MPC_NCCL=ON, but nccl.h and libnccl.so.2 were not found, or the CUDA backend is not built. NCCL_HOME names their folder; or use -DMPC_NCCL=AUTO or OFF.")
endif()
message(STATUS "NCCL: ${MPC_HAVE_NCCL} (MPC_NCCL=${MPC_NCCL})")
