# The installed package: headers under include/chainfold, libchainfold and, beside it, the CPU plugin
# that it loads on demand, chainfold-cache, and chainfoldConfig.cmake with the target chainfold::chainfold. A consumer
# needs nothing else: fmt and nlohmann-json are compiled in, LLVM is hidden in the plugin.
include(CMakePackageConfigHelpers)

install(FILES chainfold.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/chainfold)
install(DIRECTORY dsl codegen runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/chainfold
  FILES_MATCHING PATTERN "*.hpp" PATTERN "op_table.inc" PATTERN cpu_plugin EXCLUDE)

set(INSTALLED chainfold)
install(TARGETS chainfold EXPORT chainfoldTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET chainfold_cpu)
  list(APPEND INSTALLED chainfold_cpu)
  install(TARGETS chainfold_cpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET chainfold-cache)
  install(TARGETS chainfold-cache RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
set_target_properties(${INSTALLED} PROPERTIES INSTALL_RPATH "$ORIGIN")

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/chainfold)
install(EXPORT chainfoldTargets NAMESPACE chainfold:: DESTINATION ${PACKAGE_DIR})
configure_package_config_file(cmake/chainfoldConfig.cmake.in ${PROJECT_BINARY_DIR}/chainfoldConfig.cmake
  INSTALL_DESTINATION ${PACKAGE_DIR} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/chainfoldConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)  # before 1.0 a minor version may change the interface
install(FILES ${PROJECT_BINARY_DIR}/chainfoldConfig.cmake
  ${PROJECT_BINARY_DIR}/chainfoldConfigVersion.cmake DESTINATION ${PACKAGE_DIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
