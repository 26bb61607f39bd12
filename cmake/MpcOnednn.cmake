# oneDNN: version 3 of MPC_ONEDNN_DIR, or else the system's, of version 2.6 or later (docs/cpu.md). Nothing that is found is kept
# for the next run of CMake, so that a folder that is fetched later counts.

set(MPC_ONEDNN_DIR "${PROJECT_SOURCE_DIR}/.deps/onednn" CACHE PATH
    "Folder with include/dnnl.hpp and lib/libdnnl.so.3, as tools/fetch_onednn.sh makes it; the system's where there is none")

set(onednn_is_fetched FALSE)
if(EXISTS "${MPC_ONEDNN_DIR}/include/dnnl.hpp" AND EXISTS "${MPC_ONEDNN_DIR}/lib/libdnnl.so.3")
  set(onednn_is_fetched TRUE)
  set(onednn_include_folder "${MPC_ONEDNN_DIR}/include")
  set(onednn_library "${MPC_ONEDNN_DIR}/lib/libdnnl.so.3")
else()
  # Debian's dnnl-config.cmake asks for OpenCL's headers, which the CPU engine does not need: find the library itself.
  find_path(onednn_include_folder dnnl.hpp NO_CACHE)
  find_library(onednn_library dnnl NO_CACHE)
  # find_path may end the folder in a slash. The list of the compiler's own folders, which it is sought in, does not.
  string(REGEX REPLACE "/+$" "" onednn_include_folder "${onednn_include_folder}")
  if(NOT onednn_include_folder OR NOT onednn_library)
    message(FATAL_ERROR "oneDNN was not found in ${MPC_ONEDNN_DIR}, nor among the system's libraries. tools/setup.sh fetches or installs it.")
  endif()
endif()

file(STRINGS "${onednn_include_folder}/oneapi/dnnl/dnnl_version.h" lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
list(JOIN lines "." onednn_version)
if(onednn_version VERSION_LESS 2.6 OR NOT onednn_version VERSION_LESS 4)
  message(FATAL_ERROR "oneDNN ${onednn_version} of ${onednn_include_folder} has an interface that mpc does not know; it takes 2.6 and 3")
endif()
list(GET lines 0 MPC_ONEDNN_MAJOR)
message(STATUS "oneDNN: ${onednn_version} (${onednn_library})")

add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${onednn_library}"
                      INTERFACE_INCLUDE_DIRECTORIES "${onednn_include_folder}")

# A fetched library goes with what is installed, in a folder that no other program looks into.
set(mpc_library_folder "${CMAKE_INSTALL_LIBDIR}/mpc")
if(onednn_is_fetched)
  install(PROGRAMS "${onednn_library}" DESTINATION ${mpc_library_folder})
  install(FILES "${MPC_ONEDNN_DIR}/LICENSE" "${MPC_ONEDNN_DIR}/THIRD-PARTY-PROGRAMS"
          DESTINATION ${CMAKE_INSTALL_DATADIR}/mpc/onednn)
  file(RELATIVE_PATH from_programs "/${CMAKE_INSTALL_BINDIR}" "/${mpc_library_folder}")
  list(APPEND CMAKE_INSTALL_RPATH "$ORIGIN/${from_programs}")
endif()
