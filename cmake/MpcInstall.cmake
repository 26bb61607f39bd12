# `cmake --install`: headers under include/mpc, static libraries, tools, data, and the package that `find_package(mpc)`
# reads. Nothing installed refers to the build or source folder but the last place where data files are looked for, so
# that the tree can be moved.

include(CMakePackageConfigHelpers)

add_library(mpc INTERFACE)
add_library(mpc::mpc ALIAS mpc)
target_link_libraries(mpc INTERFACE mpc_frontend)
# The headers are C++20: a project that links mpc::mpc need not say so.
target_compile_features(mpc INTERFACE cxx_std_20)

get_property(mpc_libraries GLOBAL PROPERTY MPC_LIBRARIES)
install(TARGETS mpc ${mpc_libraries} EXPORT mpcTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(mpc_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mpc)
install(EXPORT mpcTargets NAMESPACE mpc:: DESTINATION ${mpc_package_folder})
get_filename_component(MPC_LLVM_LIBRARY_FOLDER "${LLVM_LIBRARY_DIR}" REALPATH)
configure_package_config_file(cmake/mpcConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/mpcConfig.cmake"
  INSTALL_DESTINATION ${mpc_package_folder} PATH_VARS CMAKE_INSTALL_DATADIR mpc_library_folder)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/mpcConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/mpcConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/mpcConfigVersion.cmake"
  DESTINATION ${mpc_package_folder})

# Headers are rewritten on their way: there includes begin at the include folder alone.
install(CODE "
  set(MPC_SOURCE_FOLDER [[${PROJECT_SOURCE_DIR}]])
  set(MPC_BINARY_FOLDER [[${PROJECT_BINARY_DIR}]])
  set(MPC_INCLUDE_FOLDER [[${CMAKE_INSTALL_INCLUDEDIR}]])")
install(SCRIPT cmake/install_headers.cmake)

install(FILES data/digits.csv.gz data/sonnets.txt data/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/mpc/data)
