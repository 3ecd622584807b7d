// Which of other programs' formats a file has, told by what it holds: so that nobody has to say
// what a script, a profile or a dump of a machine is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rehearse {

// The kind as `rehearse import` calls it (tools/import_kinds.h): "megatron", "kineto", "nccl".
// Nothing for what none of them is, or cannot be read, and for Rehearse's own files. Of a folder,
// what the files in it are.
std::optional<std::string> ForeignKind(const std::string& path);

// The same of a file's name and how its text begins, unpacked if it was gzipped.
std::optional<std::string> ForeignKindOf(std::string_view name, std::string_view head);

// Whether the kind is a machine or several, a training run, or a profile of one.
bool IsForeignMachine(const std::string& kind);
bool IsForeignRun(const std::string& kind);
bool IsForeignProfile(const std::string& kind);

}  // namespace rehearse
