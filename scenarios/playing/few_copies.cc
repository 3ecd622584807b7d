#include "scenarios/playing/few_copies.h"

#include <algorithm>

#include "collectives/lowering/lower.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// Of the rank that has the fewest: the steady state has to be found among them.
constexpr uint32_t kCopiesPlayed = 24;

}  // namespace

uint32_t CopiesToLeaveOut(const Schedule& schedule) {
  uint32_t fewest = Program::kNone;
  int32_t micro_batches = 0;
  uint64_t copied = 0;  // ops
  uint64_t ops = 0;
  for (const Role& role : schedule.roles) {
    if (role.ops.empty()) continue;  // spare devices
    if (role.repeats.size() != 1) return 0;
    const Repeat& repeat = role.repeats.front();
    if (fewest != Program::kNone && repeat.micro_batches != micro_batches) return 0;
    micro_batches = repeat.micro_batches;
    fewest = std::min(fewest, repeat.times + 1);
    copied += repeat.size();
    ops += role.OpCount();
  }
  if (fewest == Program::kNone || fewest <= kCopiesPlayed) return 0;
  // Its timeline would be too large; what lowers it says so.
  if (ops > kMostOpsPlayed) return 0;
  constexpr uint32_t kMultiple = RecurrenceSearch::kMultiple;
  const uint32_t left_out = (fewest - kCopiesPlayed) / kMultiple * kMultiple;
  return uint64_t{2} * left_out * copied >= ops ? left_out : 0;
}

std::vector<CopiedOps> CopiedOpsOf(const Schedule& schedule) {
  std::vector<CopiedOps> of_rank;
  of_rank.reserve(schedule.ranks());
  for (const uint32_t number : schedule.role_of_rank) {
    const Role& role = schedule.roles[number];
    CopiedOps& own = of_rank.emplace_back();
    if (role.ops.empty()) continue;
    const Repeat& repeat = role.repeats.front();
    own = {.before = repeat.begin,
           .size = repeat.size(),
           .count = repeat.times + 1,
           .behind = static_cast<uint32_t>(role.ops.size()) - repeat.end};
  }
  return of_rank;
}

FewCopies::FewCopies(Schedule* schedule, uint32_t left_out)
    : schedule_(*schedule), left_out_(left_out) {
  for (Role& role : schedule_.roles) {
    for (Repeat& repeat : role.repeats) {
      CHECK_GE(repeat.times, left_out_);
      repeat.times -= left_out_;
    }
  }
}

FewCopies::~FewCopies() {
  for (Role& role : schedule_.roles) {
    for (Repeat& repeat : role.repeats) repeat.times += left_out_;
  }
}

}  // namespace rehearse
