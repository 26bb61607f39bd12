# Headers of the standard library, Abseil and GoogleTest, read once for many sources. They change with the machine alone, so
# no change of a source makes them anew. Every source includes what it uses: MPC_PRECOMPILED_HEADERS=OFF builds too, and
# clang-tidy reads none of them.

option(MPC_PRECOMPILED_HEADERS "Precompile headers of the standard library, Abseil and GoogleTest" ON)

set(mpc_common_headers
  <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits> <map> <memory> <mutex>
  <numeric> <optional> <set> <string> <string_view> <utility> <variant> <vector>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/types/span.h>)

# mpc_add_precompiled_headers(NAME [HEADERS ...] [LIBS ...] [OPTIONS ...])
#
# Owns precompiled headers for targets that have the same options: GCC takes those of no others. They are made with -fPIC.
function(mpc_add_precompiled_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBS;OPTIONS" ${ARGN})
  if(NOT MPC_PRECOMPILED_HEADERS)
    return()
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cc" CONTENT "// Owns precompiled headers.\n")
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/${name}.cc")
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC ${ARG_OPTIONS})
  target_link_libraries(${name} PRIVATE absl::statusor absl::strings absl::span ${ARG_LIBS} mpc_options)
  target_precompile_headers(${name} PRIVATE ${mpc_common_headers} ${ARG_HEADERS})
endfunction()

# Gives a target that has options of its own its own headers.
function(mpc_precompile_headers target)
  if(MPC_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE ${mpc_common_headers})
  endif()
endfunction()

# Lets a target reuse the headers of `owner`. An executable gets -fPIC in place of -fPIE. OpenMP is an option that `owner`
# does not have.
function(mpc_reuse_precompiled_headers target owner)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if("OpenMP::OpenMP_CXX" IN_LIST libraries)
    mpc_precompile_headers(${target})
  elseif(MPC_PRECOMPILED_HEADERS)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

mpc_add_precompiled_headers(mpc_common_headers)
