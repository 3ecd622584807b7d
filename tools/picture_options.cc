#include "tools/picture_options.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {

void ParseWindow(const std::string& text, Time step, PictureOptions* picture) {
  const size_t dash = text.find('-');
  if (dash == std::string::npos) {
    throw Error(
        fmt::format("--window: found \"{}\", expected FROM-TO such as \"100ms-250ms\"", text));
  }
  try {
    picture->from = ToTime(ParseDuration(text.substr(0, dash)));
    picture->to = ToTime(ParseDuration(text.substr(dash + 1)));
  } catch (const Error& error) {
    throw Error(fmt::format("--window: {}", error.what()));
  }
  if (picture->from >= picture->to || picture->from >= step) {
    throw Error(fmt::format("--window: \"{}\" is empty or begins after the step's end at {}", text,
                            Print(ToSeconds(step))));
  }
}

std::vector<uint32_t> FirstRanksOfRoles(const Schedule& schedule) {
  constexpr size_t kMost = 16;
  if (schedule.roles.size() < 2) return {0};
  std::vector<uint32_t> ranks;
  std::vector<bool> seen(schedule.roles.size());
  for (uint32_t rank = 0; rank < schedule.ranks() && ranks.size() < kMost; ++rank) {
    const uint32_t role = schedule.role_of_rank[rank];
    if (!seen[role]) ranks.push_back(rank);
    seen[role] = true;
  }
  return ranks;
}

}  // namespace rehearse
