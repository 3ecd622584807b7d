#include "sim/base/input_record.h"

#include "sim/base/fnv.h"

namespace rehearse {

void InputRecord::NoteFile(const std::string& path, std::string_view content) {
  Fnv1a hash;
  hash.Add(content);
  files.push_back({path, hash.hash()});
}

}  // namespace rehearse
