// Where the sources and the built program are. Only places.cc is compiled with the paths, so all
// other tests compile to the same in every checkout.
#pragma once

#include <string>

namespace rehearse {

std::string SourceDir();    // of the repository, without a slash at the end
std::string ProgramPath();  // of build/…/rehearse

}  // namespace rehearse
