# Writes sim/base/version.h's functions to a file, at each build:
#   cmake -DROOT=… -DVERSION=… -DOUTPUT=… -P version.cmake
# The file is touched only when something changed, so that nothing is compiled for it otherwise.

function(git variable)
  execute_process(COMMAND git ${ARGN} WORKING_DIRECTORY ${ROOT} OUTPUT_VARIABLE said RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(failed)  # or the message that there is no git
    set(said "")
  endif()
  set(${variable} "${said}" PARENT_SCOPE)
endfunction()

set(commit unknown)
git(top rev-parse --show-toplevel)
get_filename_component(root ${ROOT} REALPATH)
if(top STREQUAL root)  # a copy may lie inside of another repository
  git(commit rev-parse --short HEAD)
  set(sources *.cc *.h *.cu *.cuh *.cmake *CMakeLists.txt)
  git(changes diff HEAD -- ${sources})
  git(added ls-files --others --exclude-standard -- ${sources})
  if(NOT commit)
    set(commit unknown)  # nothing is committed yet
  elseif(changes OR added)
    string(REPLACE "\n" ";" added "${added}")
    foreach(path ${added})
      file(SHA256 ${ROOT}/${path} hash)
      string(APPEND changes "${path} ${hash} ")
    endforeach()
    string(SHA256 hash "${changes}")
    string(SUBSTRING ${hash} 0 8 hash)
    string(APPEND commit "-dirty-${hash}")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "sim/base/version.h"

namespace rehearse {

std::string_view Version() { return "@VERSION@"; }
std::string_view BuildCommit() { return "@commit@"; }

}  // namespace rehearse
]])
