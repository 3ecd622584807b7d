// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rehearse {

// The least of what the kernel calls available, what the process's control groups leave it
// (containers, batch systems; versions 1 and 2) and what `ulimit -v` and `-d` do; nothing where the
// system says none of it. Swap does not count. Each call reads it anew.
std::optional<uint64_t> FreeMemory();

// The same with the files below another root, "" for the system's.
std::optional<uint64_t> FreeMemoryBelow(const std::string& root);

}  // namespace rehearse
