// What launchers, containers and terminals print around the lines of a log: colours, time stamps,
// and names of ranks, hosts and pods before a line.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// The line itself, without blanks at its ends.
std::string WithoutFrame(std::string_view line);

}  // namespace rehearse
