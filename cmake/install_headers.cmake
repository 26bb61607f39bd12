# Runs when headers are installed: the public ones and all that they include. In the source tree includes begin at the
# repository's root; installed, at the include folder alone. Users include mpc/*.h and mpc/models/*.h; mpc/detail has what
# those include, as it lies in the source tree.
#   MPC_SOURCE_FOLDER, MPC_BINARY_FOLDER, MPC_INCLUDE_FOLDER  set by cmake/MpcInstall.cmake

set(staged "${MPC_BINARY_FOLDER}/installed_headers")
file(REMOVE_RECURSE "${staged}")

# Copies `header`, a path from the root of the source or the build tree, and what it includes.
function(stage header)
  set(place "detail/${header}")
  if(header MATCHES "^(frontend/include/mpc/)?(models/.*|[^/]+)$")
    set(place "${CMAKE_MATCH_2}")
  endif()
  if(EXISTS "${staged}/mpc/${place}")
    return()
  endif()
  set(root "${MPC_SOURCE_FOLDER}")
  if(NOT EXISTS "${root}/${header}")
    set(root "${MPC_BINARY_FOLDER}")
  endif()
  file(READ "${root}/${header}" text)
  string(REGEX MATCHALL "#include \"(compiler|frontend|kernels|models|runtime)/[^\"]+" includes "${text}")
  string(REGEX REPLACE "(#include \")(compiler|frontend|kernels|runtime)/" "\\1mpc/detail/\\2/" text "${text}")
  string(REGEX REPLACE "(#include \")models/" "\\1mpc/models/" text "${text}")
  file(WRITE "${staged}/mpc/${place}" "${text}")
  foreach(include ${includes})
    string(REPLACE "#include \"" "" include "${include}")
    stage("${include}")
  endforeach()
endfunction()

file(GLOB public RELATIVE "${MPC_SOURCE_FOLDER}"
  "${MPC_SOURCE_FOLDER}/frontend/include/mpc/*.h" "${MPC_SOURCE_FOLDER}/models/*.h")
foreach(header ${public})
  stage("${header}")
endforeach()

file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${MPC_INCLUDE_FOLDER}" TYPE DIRECTORY FILES "${staged}/mpc")
