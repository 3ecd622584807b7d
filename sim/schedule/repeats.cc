#include "sim/schedule/repeats.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/written_out.h"

namespace rehearse {

bool HasRepeats(const Schedule& schedule) {
  return std::any_of(schedule.roles.begin(), schedule.roles.end(),
                     [](const Role& role) { return !role.repeats.empty(); });
}

Role Expanded(const Role& role) {
  if (role.repeats.empty()) return role;
  const WrittenOut all(role);
  Role expanded;
  expanded.name = role.name;
  expanded.streams = role.streams;
  expanded.regions = role.regions;
  expanded.buffers.reserve(all.buffer_count());
  for (uint32_t number = 0; number < all.buffer_count(); ++number) {
    expanded.buffers.push_back(all.KeptBuffer(number));
    auto& view = expanded.buffers.back().view;
    if (view) view->of = BufferId(all.RootOf(number));
  }
  const DoneOps ops = all.ops();
  expanded.ops.reserve(ops.size());
  for (const DoneOp& done : ops) {
    Op op = role.ops[done.place];
    op.tag.micro_batch += ops.MicroBatchesLater(done);
    for (OpId& before : op.after) before = OpId(ops.PositionOf(before, done));
    for (auto* buffers : {&op.reads, &op.writes}) {
      for (BufferId& buffer : *buffers) buffer = BufferId(all.NumberOf(buffer, done));
    }
    expanded.ops.push_back(std::move(op));
  }
  return expanded;
}

Schedule Expanded(const Schedule& schedule) {
  Schedule expanded = schedule;
  for (Role& role : expanded.roles) {
    if (!role.repeats.empty()) role = Expanded(role);
  }
  return expanded;
}

std::vector<Repeat> FewerCopies(const Role& role, uint32_t copies) {
  std::vector<Repeat> repeats = role.repeats;
  for (Repeat& repeat : repeats) repeat.times = std::min(repeat.times, copies);
  return repeats;
}

std::vector<std::vector<Repeat>> FewerCopies(const Schedule& schedule, uint32_t copies) {
  std::vector<std::vector<Repeat>> all;
  std::vector<std::vector<Repeat>*> repeating;  // of roles that have ops
  all.reserve(schedule.roles.size());
  for (const Role& role : schedule.roles) {
    all.push_back(role.repeats);
    if (!role.ops.empty()) repeating.push_back(&all.back());
  }
  for (const auto* repeats : repeating) {
    if (repeats->size() != repeating.front()->size()) return all;
  }
  for (size_t i = 0; !repeating.empty() && i < repeating.front()->size(); ++i) {
    uint32_t least = (*repeating.front())[i].times;
    for (const auto* repeats : repeating) least = std::min(least, (*repeats)[i].times);
    if (least <= copies) continue;
    for (auto* repeats : repeating) (*repeats)[i].times -= least - copies;
  }
  return all;
}

std::vector<MiddleCopies> MiddleCopiesOf(const Role& role, uint32_t most) {
  std::vector<MiddleCopies> middle;
  if (role.OpCount() <= most) return middle;
  const auto once = static_cast<uint32_t>(role.ops.size());
  const uint64_t copied = role.OpCount() - once;
  const uint64_t wanted = most > once ? most - once : 0;
  uint32_t position = 0;
  uint32_t done = 0;
  for (const Repeat& repeat : role.repeats) {
    position += repeat.begin - done;
    done = repeat.end;
    const auto share = static_cast<uint32_t>(repeat.times * wanted / copied);
    const uint32_t kept = std::max(kCopiesThatShowAll, share);
    if (kept < repeat.times) {
      const uint32_t first = 1 + (kept + 1) / 2;  // the body itself is copy 0
      const uint32_t copies = repeat.times - kept;
      const uint32_t begin = position + first * repeat.size();
      middle.push_back({begin, begin + copies * repeat.size(), copies,
                        static_cast<int32_t>(copies) * repeat.micro_batches});
    }
    position += (repeat.times + 1) * repeat.size();
  }
  return middle;
}

void CheckRepeats(const Role& role) {
  constexpr uint64_t kMostCopies = 1u << 30;
  uint64_t copies = 0;
  uint32_t op = 0;
  uint32_t buffer = 0;
  for (size_t i = 0; i < role.repeats.size(); ++i) {
    const Repeat& repeat = role.repeats[i];
    const auto fail = [&](const std::string& message) {
      throw Error(fmt::format("role \"{}\": repeat {} {}", role.name, i, message));
    };
    if (repeat.begin < op || repeat.begin >= repeat.end || repeat.end > role.ops.size()) {
      fail(fmt::format("is of ops {} to {}, expected some of {} to {}", repeat.begin, repeat.end,
                       op, role.ops.size()));
    }
    if (repeat.first_buffer < buffer || repeat.first_buffer > repeat.end_buffer ||
        repeat.end_buffer > role.buffers.size()) {
      fail(fmt::format("is of buffers {} to {}, expected some of {} to {}", repeat.first_buffer,
                       repeat.end_buffer, buffer, role.buffers.size()));
    }
    if (uint64_t{repeat.times} * repeat.size() > kMostCopies)
      fail(fmt::format("does {} ops {} times, more than 2^30", repeat.size(), repeat.times));
    const uint64_t pieces = uint64_t{repeat.back} - 1;
    if (repeat.back == 0 || pieces * repeat.size() > repeat.begin ||
        pieces * repeat.buffers() > repeat.first_buffer) {
      fail(
          fmt::format("refers to {} pieces before it, expected at least 1 and at most as many as "
                      "there are",
                      repeat.back));
    }
    for (uint32_t member = repeat.begin; member < repeat.end; ++member) {
      for (const OpId before : role.ops[member].after) {
        if (before.index() + repeat.size() < repeat.FirstOp()) {
          fail(fmt::format(
              "has op {} \"{}\", which is after op {}: further back than the {} ops "
              "before the repeat",
              member, role.ops[member].name, before.index(), repeat.back * repeat.size()));
        }
      }
    }
    op = repeat.end;
    buffer = repeat.end_buffer;
    copies += uint64_t{repeat.times} * repeat.size();
    if (copies > kMostCopies)
      fail(fmt::format(
          "makes {} ops of copies, together with the repeats before it; more than 2^30", copies));
  }
}

}  // namespace rehearse
