#include "sim/base/large_documents.h"

#include "sim/base/input_file.h"

namespace rehearse {
namespace {

thread_local bool may_be_large = false;

}  // namespace

LargeDocuments::LargeDocuments() : outer_(may_be_large) { may_be_large = true; }
LargeDocuments::~LargeDocuments() { may_be_large = outer_; }

size_t LargestInput() { return may_be_large ? kLargestDocument : kLargestInput; }

size_t MostJsonValues() {
  constexpr size_t kMost = 4'000'000;
  return may_be_large ? kMost * (kLargestDocument / kLargestInput) : kMost;
}

}  // namespace rehearse
