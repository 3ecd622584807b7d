#include "tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

std::vector<FuzzTarget>& Rows() {
  static std::vector<FuzzTarget> rows;
  return rows;
}

}  // namespace

FuzzTargetRow::FuzzTargetRow(FuzzTarget target) {
  std::vector<FuzzTarget>& rows = Rows();
  const auto by_name = [](const FuzzTarget& a, const FuzzTarget& b) { return a.name < b.name; };
  rows.insert(std::upper_bound(rows.begin(), rows.end(), target, by_name), std::move(target));
}

const std::vector<FuzzTarget>& FuzzTargets() { return Rows(); }

const FuzzTarget* FindFuzzTarget(std::string_view name) {
  for (const FuzzTarget& target : Rows()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

void RunFuzzTarget(const FuzzTarget& target, std::string_view input) {
  try {
    target.read(input);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.empty() || message.size() > kLongestErrorText) {
      throw std::runtime_error(fmt::format("a message of {} bytes, expected 1 to {}: {} ...",
                                           message.size(), kLongestErrorText,
                                           message.substr(0, 200)));
    }
  }
}

}  // namespace rehearse
