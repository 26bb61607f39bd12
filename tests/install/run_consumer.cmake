# Installs the build, moves the tree, then configures, builds, installs and runs the consumer project against it.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nexit status ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(require pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern} in:\n${output}")
  endif()
endfunction()

set(prefix "${WORK_FOLDER}/moved")
file(REMOVE_RECURSE "${WORK_FOLDER}")
run("${CMAKE_COMMAND}" --install "${BUILD_FOLDER}" --prefix "${WORK_FOLDER}/installed")
file(RENAME "${WORK_FOLDER}/installed" "${prefix}")

# Installed programs find a oneDNN that was fetched, with no variable of the environment.
file(GLOB onednn "${prefix}/lib*/mpc/libdnnl.so.*")
if(onednn)
  run(ldd "${prefix}/bin/mpc-run")
  string(REPLACE "${prefix}/bin/../" "${prefix}/" output "${output}")
  require("=> ${onednn} ")
endif()

# The include folder is the include path: nothing is included but from mpc/, Abseil, and where others are installed.
file(GLOB_RECURSE headers "${prefix}/include/mpc/*.h")
foreach(header ${headers})
  file(STRINGS "${header}" includes REGEX "^#include \"")
  foreach(include ${includes})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" name "${include}")
    if(name MATCHES "^absl/")
      continue()
    endif()
    if(NOT name MATCHES "^mpc/" OR NOT EXISTS "${prefix}/include/${name}")
      message(FATAL_ERROR "${header} includes ${name}, which is not installed below include/mpc")
    endif()
  endforeach()
endforeach()
list(LENGTH headers count)
if(count LESS 50)
  message(FATAL_ERROR "${count} headers are installed")
endif()

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()
run("${CMAKE_COMMAND}" -S "${SOURCE_FOLDER}" -B "${WORK_FOLDER}/build" -G "${GENERATOR}"
  "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_INSTALL_PREFIX=${prefix}" "-DCMAKE_CXX_FLAGS=${flags}"
  -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run("${CMAKE_COMMAND}" --build "${WORK_FOLDER}/build")
run("${CMAKE_COMMAND}" --install "${WORK_FOLDER}/build")

set(ENV{MPC_DATA_DIR} "")
run("${prefix}/bin/consumer")
message("${output}")
require("LeNet-5 has 8 parameters\n")
require("step 1, loss [0-9.]+\nstep 2, loss [0-9.]+\n")
require("a package begins with [0-9]+ state entries\n")
# Data beside the executable come before those of the source tree.
require("digits: ${prefix}/share/mpc/data/digits.csv.gz")

run("${prefix}/bin/mpc-opt" --help)
require("--amp-level")
run("${prefix}/bin/mpc-opt" --help-hidden)
require("mpc-step-pipeline")

# Programs that one installed tool compiles and another one runs.
run("${prefix}/bin/mpc-train" mlp "--emit=${WORK_FOLDER}/mlp.mpcx")
run("${prefix}/bin/mpc-run" "${WORK_FOLDER}/mlp.mpcx" --steps=2 --predict)
require("test accuracy [0-9.]+ % .[0-9]+ of 360.")
