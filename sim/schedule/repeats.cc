#include "sim/schedule/repeats.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

uint32_t BuffersOf(const Repeat& repeat) { return repeat.end_buffer - repeat.first_buffer; }

// Writes a role out, copy by copy.
class Expansion {
 public:
  explicit Expansion(const Role& kept) : kept_(kept) {}

  Role Run() {
    role_.name = kept_.name;
    role_.streams = kept_.streams;
    role_.regions = kept_.regions;
    role_.ops.reserve(kept_.OpCount());
    AddBuffers();
    uint32_t position = 0;
    for (uint32_t i = 0; i <= kept_.repeats.size(); ++i) {
      const uint32_t begin = i == 0 ? 0 : kept_.repeats[i - 1].end;
      const bool is_last = i == kept_.repeats.size();
      const auto end = is_last ? static_cast<uint32_t>(kept_.ops.size()) : kept_.repeats[i].end;
      for (uint32_t op = begin; op < end; ++op) AddOp(position++, kept_.ops[op], i, 0);
      if (is_last) break;
      for (uint32_t copy = 1; copy <= kept_.repeats[i].times; ++copy) {
        for (uint32_t op = kept_.repeats[i].begin; op < end; ++op)
          AddOp(position++, kept_.ops[op], i, copy);
      }
    }
    CHECK_EQ(position, kept_.OpCount());
    return std::move(role_);
  }

 private:
  // The id of a buffer in the copy-th copy of the repeat that has `before` others before it.
  BufferId BufferIn(BufferId buffer, size_t before, uint32_t copy) const {
    uint32_t index = buffer.index();
    for (size_t i = 0; i < before; ++i) {
      const Repeat& repeat = kept_.repeats[i];
      if (buffer.index() >= repeat.first_buffer) index += repeat.times * BuffersOf(repeat);
    }
    if (copy > 0) {
      const Repeat& repeat = kept_.repeats[before];
      if (buffer.index() + BuffersOf(repeat) >= repeat.first_buffer)
        index += copy * BuffersOf(repeat);
    }
    return BufferId(index);
  }

  void AddBuffer(uint32_t index, size_t before, uint32_t copy) {
    Buffer buffer = kept_.buffers[index];
    if (buffer.view) buffer.view->of = BufferIn(buffer.view->of, before, copy);
    role_.buffers.push_back(std::move(buffer));
  }

  void AddBuffers() {
    uint32_t next = 0;
    for (size_t i = 0; i < kept_.repeats.size(); ++i) {
      const Repeat& repeat = kept_.repeats[i];
      for (; next < repeat.end_buffer; ++next) AddBuffer(next, i, 0);
      for (uint32_t copy = 1; copy <= repeat.times; ++copy) {
        for (uint32_t index = repeat.first_buffer; index < repeat.end_buffer; ++index)
          AddBuffer(index, i, copy);
      }
    }
    for (; next < kept_.buffers.size(); ++next) AddBuffer(next, kept_.repeats.size(), 0);
  }

  void AddOp(uint32_t position, const Op& kept, size_t before, uint32_t copy) {
    Op op = kept;
    op.tag = kept_.TagAt(position);
    op.after.clear();
    for (const uint32_t earlier : kept_.AfterAt(position)) op.after.emplace_back(earlier);
    for (auto* buffers : {&op.reads, &op.writes}) {
      for (BufferId& buffer : *buffers) buffer = BufferIn(buffer, before, copy);
    }
    role_.ops.push_back(std::move(op));
  }

  const Role& kept_;
  Role role_;
};

}  // namespace

KeptOp KeptAt(const std::vector<Repeat>& repeats, uint32_t position) {
  KeptOp kept;
  for (const Repeat& repeat : repeats) {
    const uint32_t place = position - kept.copied_before;
    if (place < repeat.end) break;
    const uint32_t copy = (place - repeat.begin) / repeat.size();
    if (copy <= repeat.times) {
      kept.op = repeat.begin + (place - repeat.begin) % repeat.size();
      kept.copy = copy;
      return kept;
    }
    kept.copied_before += repeat.times * repeat.size();
    ++kept.repeats_before;
  }
  kept.op = position - kept.copied_before;
  return kept;
}

bool HasRepeats(const Schedule& schedule) {
  return std::any_of(schedule.roles.begin(), schedule.roles.end(),
                     [](const Role& role) { return !role.repeats.empty(); });
}

Role Expanded(const Role& role) { return role.repeats.empty() ? role : Expansion(role).Run(); }

Schedule Expanded(const Schedule& schedule) {
  Schedule expanded = schedule;
  for (Role& role : expanded.roles) {
    if (!role.repeats.empty()) role = Expanded(role);
  }
  return expanded;
}

Role WithFewerCopies(const Role& role, uint32_t copies) {
  Role fewer = role;
  for (Repeat& repeat : fewer.repeats) repeat.times = std::min(repeat.times, copies);
  return fewer;
}

Schedule WithFewerCopies(const Schedule& schedule, uint32_t copies) {
  Schedule fewer = schedule;
  std::vector<Role*> roles;
  for (Role& role : fewer.roles) {
    if (!role.ops.empty()) roles.push_back(&role);
  }
  for (const Role* role : roles) {
    if (role->repeats.size() != roles.front()->repeats.size()) return fewer;
  }
  for (size_t i = 0; !roles.empty() && i < roles.front()->repeats.size(); ++i) {
    uint32_t least = roles.front()->repeats[i].times;
    for (const Role* role : roles) least = std::min(least, role->repeats[i].times);
    if (least <= copies) continue;
    for (Role* role : roles) role->repeats[i].times -= least - copies;
  }
  return fewer;
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
    for (uint32_t member = repeat.begin; member < repeat.end; ++member) {
      for (const OpId before : role.ops[member].after) {
        if (before.index() + repeat.size() < repeat.begin) {
          fail(
              fmt::format("has op {} \"{}\", which is after op {}: further back than the {} ops "
                          "before the repeat",
                          member, role.ops[member].name, before.index(), repeat.size()));
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
