// How many parameters there are, in words: "70.6 billion", "1.03 trillion".
#pragma once

#include <string>

namespace rehearse {

std::string ParameterText(double parameters);

}  // namespace rehearse
