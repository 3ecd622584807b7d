# librehearse.so for other programs, and `cmake --install`: the program, the library, its header, what find_package(Rehearse)
# and pkg-config read. The library is made only on demand: by tests, by an installation (target rehearse_shared).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(library ${PROJECT_SOURCE_DIR}/scenarios/library)
file(GLOB sources CONFIGURE_DEPENDS ${library}/*.cc)
add_library(rehearse_shared SHARED ${sources})
add_library(Rehearse::rehearse ALIAS rehearse_shared)
rehearse_hide(rehearse_shared)
set_target_properties(rehearse_shared PROPERTIES OUTPUT_NAME rehearse EXPORT_NAME rehearse
                      VERSION ${PROJECT_VERSION} SOVERSION 1
                      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" LINK_DEPENDS ${library}/exported.map)
target_include_directories(rehearse_shared PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(rehearse_shared PRIVATE rehearse_scenarios)
target_compile_definitions(rehearse_shared PRIVATE REHEARSE_INSIDE)
target_link_options(rehearse_shared PRIVATE LINKER:--as-needed LINKER:--version-script=${library}/exported.map)
if(NOT REHEARSE_SANITIZE)
  target_link_options(rehearse_shared PRIVATE LINKER:--no-undefined)
endif()
if(precompiled_libraries)
  target_precompile_headers(rehearse_shared REUSE_FROM rehearse_precompiled)
endif()

# Included as it is once installed: <rehearse/rehearse.h>.
set(include ${PROJECT_BINARY_DIR}/include)
configure_file(${library}/rehearse.h ${include}/rehearse/rehearse.h COPYONLY)
target_include_directories(rehearse_shared INTERFACE $<BUILD_INTERFACE:${include}>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rehearse_shared INTERFACE cxx_std_17)

set(package ${PROJECT_BINARY_DIR}/package)
file(RELATIVE_PATH rehearse_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${library}/rehearse.pc.in ${package}/rehearse.pc @ONLY)
file(CONFIGURE OUTPUT ${package}/RehearseConfig.cmake
     CONTENT "include(\"\${CMAKE_CURRENT_LIST_DIR}/RehearseTargets.cmake\")\n" @ONLY ESCAPE_QUOTES)
# Until 1.0, a minor version may change what programs are compiled against.
write_basic_package_version_file(${package}/RehearseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
set(documents ${CMAKE_INSTALL_DATAROOTDIR}/doc/rehearse)
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Rehearse)
install(TARGETS rehearse RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS rehearse_shared EXPORT RehearseTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${library}/rehearse.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rehearse)
install(FILES ${package}/rehearse.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${package}/RehearseConfig.cmake ${package}/RehearseConfigVersion.cmake DESTINATION ${cmake_folder})
install(EXPORT RehearseTargets NAMESPACE Rehearse:: DESTINATION ${cmake_folder})
install(DIRECTORY ${library}/examples/ DESTINATION ${documents}/examples FILES_MATCHING PATTERN *.cc)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${library}/CHANGELOG.md DESTINATION ${documents})
