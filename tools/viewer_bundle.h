// The program of `rehearse report`'s page: tools/viewer/bundle/viewer.js, which is compiled in.
#pragma once

#include <string>

namespace rehearse {

std::string ViewerBundle();

}  // namespace rehearse
