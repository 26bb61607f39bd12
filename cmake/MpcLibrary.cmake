# mpc_add_library(NAME SOURCES ... [DEPENDS ...] [PRIVATE_DEPENDS ...] [OPTIONS ...] [MLIR])
#
# One library a folder. The repository root is the include path. OPTIONS are compiler options of this library alone. MLIR
# adds LLVM's and MLIR's headers, the shared libraries and a precompiled header; such code is compiled without RTTI, as LLVM is.

function(mpc_add_library name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS;OPTIONS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(mpc::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS} $<BUILD_INTERFACE:mpc_options>)
  if(ARG_MLIR)
    mpc_use_mlir(${name})
  elseif(ARG_OPTIONS)
    target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
    mpc_precompile_headers(${name})
  else()
    mpc_reuse_precompiled_headers(${name} mpc_common_headers)
  endif()
  set_property(GLOBAL APPEND PROPERTY MPC_LIBRARIES ${name})
endfunction()

if(NOT MPC_COMPILER)
  return()
endif()

# Lets a target include MLIR headers, of which it reuses the precompiled ones.
function(mpc_use_mlir target)
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${LLVM_DEFINITIONS_LIST})
  # The precompiled header is made with -fPIC; executables must not ask for -fPIE instead.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fno-rtti -fPIC)
  target_link_libraries(${target} PRIVATE
    $<BUILD_INTERFACE:mpc_mlir> $<INSTALL_INTERFACE:mpc::mlir_library> $<INSTALL_INTERFACE:mpc::llvm_library>)
  if(TARGET mpc_mlir_headers)
    target_precompile_headers(${target} REUSE_FROM mpc_mlir_headers)
  endif()
endfunction()

separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_library(mpc_mlir INTERFACE)
target_link_libraries(mpc_mlir INTERFACE MLIR LLVM)

# The dialect's header is among them: its generated classes take longer to read than most files that use them.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/mpc_mlir_headers.cc" CONTENT "// Owns the precompiled MLIR headers.\n")
add_library(mpc_mlir_headers OBJECT "${PROJECT_BINARY_DIR}/mpc_mlir_headers.cc")
target_include_directories(mpc_mlir_headers PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
target_include_directories(mpc_mlir_headers SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(mpc_mlir_headers PRIVATE ${LLVM_DEFINITIONS_LIST})
set_target_properties(mpc_mlir_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(mpc_mlir_headers PRIVATE -fno-rtti -fPIC)
target_link_libraries(mpc_mlir_headers PRIVATE mpc_options)
target_precompile_headers(mpc_mlir_headers PRIVATE
  <mlir/Dialect/Func/IR/FuncOps.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/DialectImplementation.h>
  <mlir/IR/PatternMatch.h> <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Pass/Pass.h>
  <llvm/ADT/TypeSwitch.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  "${PROJECT_SOURCE_DIR}/compiler/dialect/dialect.h")
add_dependencies(mpc_mlir_headers mpc_dialect_tablegen)

# TableGen with the repository root and MLIR on the include path; the output lies beside its source in the build tree.
macro(mpc_tablegen output)
  mlir_tablegen(${output} ${ARGN} EXTRA_INCLUDES ${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
endmacro()
