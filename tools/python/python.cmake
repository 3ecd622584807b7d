# `import rehearse` (target rehearse_python): the build's folder python/rehearse, for PYTHONPATH or a wheel.
# Sanitizers would have to be loaded before Python.

if(REHEARSE_PYTHON STREQUAL "OFF" OR REHEARSE_SANITIZE)
  return()
endif()
set(needed QUIET)
if(REHEARSE_PYTHON STREQUAL "ON")
  set(needed REQUIRED)
elseif(NOT DEFINED Python3_EXECUTABLE)
  set(Python3_EXECUTABLE /usr/bin/python3)  # the one that Debian's packages are for
endif()
find_package(Python3 ${needed} COMPONENTS Interpreter Development.Module NumPy)
if(Python3_FOUND)
  set(PYTHON_EXECUTABLE ${Python3_EXECUTABLE})
  find_package(pybind11 2.10 ${needed})
endif()
if(NOT Python3_FOUND OR NOT pybind11_FOUND)
  message(STATUS "Python: no module (python3-dev, python3-numpy or pybind11-dev is missing)")
  return()
endif()
message(STATUS "Python: ${Python3_EXECUTABLE} ${Python3_VERSION}, pybind11 ${pybind11_VERSION}")

set(folder ${PROJECT_BINARY_DIR}/python/rehearse)
pybind11_add_module(rehearse_python MODULE EXCLUDE_FROM_ALL NO_EXTRAS tools/python/module.cc)
target_link_libraries(rehearse_python PRIVATE Rehearse::rehearse)
# It finds the library beside itself, both in a build and in a wheel.
set_target_properties(rehearse_python PROPERTIES OUTPUT_NAME _rehearse LIBRARY_OUTPUT_DIRECTORY ${folder}
                      BUILD_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
add_custom_command(TARGET rehearse_python POST_BUILD VERBATIM
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${PROJECT_SOURCE_DIR}/tools/python/rehearse/__init__.py ${folder}/__init__.py
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:rehearse_shared> ${folder}/$<TARGET_SONAME_FILE_NAME:rehearse_shared>)
