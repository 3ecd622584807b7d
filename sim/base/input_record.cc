#include "sim/base/input_record.h"

#include "sim/base/fnv.h"

namespace rehearse {
namespace {

thread_local InputRecord* innermost_record = nullptr;

}  // namespace

InputRecord::InputRecord() : outer_(innermost_record) { innermost_record = this; }
InputRecord::~InputRecord() { innermost_record = outer_; }

void NoteInput(const std::string& path, std::string_view content) {
  if (innermost_record == nullptr) return;
  Fnv1a hash;
  hash.Add(content);
  NoteInput({path, hash.hash()});
}

void NoteInput(const InputFile& file) {
  for (InputRecord* record = innermost_record; record != nullptr; record = record->outer_)
    record->files_.push_back(file);
}

void NoteChange(const JsonChange& change) {
  for (InputRecord* record = innermost_record; record != nullptr; record = record->outer_)
    record->changes_.push_back(change);
}

}  // namespace rehearse
