# Compiler flags, sanitizers, ccache and lld.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# The CPU kernels are compiled for this level; binaries check it when they start (runtime/cpu/cpu_features.h).
set(MPC_CPU_BASELINE "x86-64-v3" CACHE STRING "-march level of the CPU kernels")

find_program(MPC_CCACHE ccache)
if(MPC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need the sloppiness; see "Precompiled headers" in ccache's manual. Dependencies come from the
  # compiler, so that a file that is compiled is not preprocessed for the cache as well.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${MPC_CCACHE})
endif()
if(MPC_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${MPC_CCACHE})
endif()

find_program(MPC_LLD NAMES ld.lld-22 ld.lld PATHS /usr/lib/llvm-22/bin)
if(MPC_LLD)
  get_filename_component(lld_folder "${MPC_LLD}" DIRECTORY)
  # GCC knows the linker by the name ld.lld in a -B folder.
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/linker")
  file(CREATE_LINK "${MPC_LLD}" "${CMAKE_BINARY_DIR}/linker/ld.lld" SYMBOLIC)
  add_link_options(-fuse-ld=lld "-B${CMAKE_BINARY_DIR}/linker")
endif()

add_library(mpc_options INTERFACE)
# nvcc takes other flags: kernels/cuda/CMakeLists.txt.
set(cxx "$<COMPILE_LANGUAGE:CXX>")
target_compile_options(mpc_options INTERFACE $<${cxx}:-Wall -Wextra -Wno-unused-parameter>)
if(MPC_WERROR)
  target_compile_options(mpc_options INTERFACE $<${cxx}:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of GCC 12 in inlined standard and LLVM containers.
  target_compile_options(mpc_options INTERFACE
    $<${cxx}:-Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict
      -Wno-dangling-pointer -Wno-free-nonheap-object -Wno-missing-field-initializers -Wno-psabi>)
endif()
if(MPC_UNITY_BUILD)
  # A unit includes its sources: GCC takes them for headers, whose classes should have no member of an unnamed namespace.
  target_compile_options(mpc_options INTERFACE $<${cxx}:-Wno-subobject-linkage>)
endif()
if(MPC_SANITIZE)
  # vptr needs the run-time type information that MLIR's side is compiled without.
  target_compile_options(mpc_options INTERFACE
    $<${cxx}:-fsanitize=${MPC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined -fno-sanitize=vptr>)
  target_link_options(mpc_options INTERFACE -fsanitize=${MPC_SANITIZE})
endif()

# 1 where kernels are optimized in every build type. With sanitizers the build type decides: checked loops are slow anyway,
# and compiling them at -O3 takes minutes more.
set(MPC_FAST_KERNELS 1)
if(MPC_SANITIZE)
  set(MPC_FAST_KERNELS 0)
endif()
