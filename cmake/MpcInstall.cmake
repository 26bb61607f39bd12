# `cmake --install`: headers under include/mpc (the include path, as the repository root is here), static libraries, tools,
# data, and the package that `find_package(mpc)` reads. Nothing installed refers to the build or source folder but the
# last place where data files are looked for, so that the tree can be moved.

include(CMakePackageConfigHelpers)

add_library(mpc INTERFACE)
add_library(mpc::mpc ALIAS mpc)
target_link_libraries(mpc INTERFACE mpc_frontend)

get_property(mpc_libraries GLOBAL PROPERTY MPC_LIBRARIES)
install(TARGETS mpc ${mpc_libraries} EXPORT mpcTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(mpc_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mpc)
install(EXPORT mpcTargets NAMESPACE mpc:: DESTINATION ${mpc_package_folder})
get_filename_component(MPC_LLVM_LIBRARY_FOLDER "${LLVM_LIBRARY_DIR}" REALPATH)
configure_package_config_file(cmake/mpcConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/mpcConfig.cmake"
  INSTALL_DESTINATION ${mpc_package_folder} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/mpcConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/mpcConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/mpcConfigVersion.cmake"
  DESTINATION ${mpc_package_folder})

# The public API and what it includes. Headers of kernels, passes and the dialect stay private: they change with them.
set(mpc_include_folder ${CMAKE_INSTALL_INCLUDEDIR}/mpc)
install(DIRECTORY frontend models DESTINATION ${mpc_include_folder} FILES_MATCHING PATTERN "*.h")
install(FILES compiler/driver/compile_options.h compiler/driver/compiler.h compiler/driver/fusion_default.h
  DESTINATION ${mpc_include_folder}/compiler/driver)
install(FILES compiler/module/compile_result.h compiler/module/graph_builder.h compiler/module/precision_map.h
  DESTINATION ${mpc_include_folder}/compiler/module)
file(GLOB mpc_runtime_headers CONFIGURE_DEPENDS runtime/*.h)
install(FILES ${mpc_runtime_headers} "${PROJECT_BINARY_DIR}/runtime/version.h" DESTINATION ${mpc_include_folder}/runtime)
file(GLOB mpc_kernel_headers CONFIGURE_DEPENDS kernels/*.h)
install(FILES ${mpc_kernel_headers} DESTINATION ${mpc_include_folder}/kernels)

install(FILES data/digits.csv.gz data/sonnets.txt data/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/mpc/data)
