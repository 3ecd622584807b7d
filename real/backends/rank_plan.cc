#include "real/backends/rank_plan.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "real/backends/executable.h"
#include "real/transports/transport.h"
#include "sim/base/error.h"
#include "sim/schedule/schedule_check.h"

namespace rehearse {
namespace {

class Planner {
 public:
  Planner(const Schedule& schedule, uint32_t rank) : schedule_(schedule) {
    plan_.schedule = &schedule;
    plan_.role = &schedule.roles.at(schedule.role_of_rank.at(rank));
    plan_.rank = rank;
  }

  RankPlan Run() {
    const std::vector<Buffer>& buffers = plan_.role->buffers;
    plan_.buffers.resize(buffers.size());
    is_placed_.resize(buffers.size());
    for (uint32_t i = 0; i < buffers.size(); ++i) PlaceBuffer(i);
    for (const Communicator& communicator : schedule_.communicators) {
      plan_.groups.emplace_back();
      if (communicator.PositionOf(plan_.rank)) {
        plan_.groups.back() = GroupOf(communicator, plan_.rank);
      }
    }
    for (uint32_t i = 0; i < plan_.role->ops.size(); ++i) PlanOp(i);
    return std::move(plan_);
  }

 private:
  void PlaceBuffer(uint32_t id) {
    if (is_placed_[id]) return;
    is_placed_[id] = true;
    const Buffer& buffer = plan_.role->buffers[id];
    BufferPlan& own = plan_.buffers[id];
    own.rows = buffer.rows;
    own.columns = buffer.columns;
    own.stride = buffer.columns;
    if (buffer.region != kNoRegion) {
      own.place = PlaceRegion(schedule_, plan_.role->regions.at(buffer.region), plan_.rank);
    }
    if (buffer.view) {
      PlaceView(buffer, &own);
      return;
    }
    own.memory = static_cast<uint32_t>(plan_.memories.size());
    plan_.memories.push_back({BufferId(id), own.elements()});
  }

  void PlaceView(const Buffer& buffer, BufferPlan* own) {
    const View& view = *buffer.view;
    PlaceBuffer(view.of.index());
    const BufferPlan& base = plan_.buffers[view.of.index()];
    const PlaceAmong rows = PlaceAmongPieces(schedule_, view.rows_cut_by, plan_.rank);
    const uint64_t row_share = (rows.index + view.rows_turned) % rows.count;
    const uint64_t column_share =
        PlaceAmongPieces(schedule_, view.columns_cut_by, plan_.rank).index;
    const uint64_t row = view.row + row_share * own->rows;
    const uint64_t column = view.column + column_share * own->columns;
    own->memory = base.memory;
    if (row + own->rows <= base.rows && column + own->columns <= base.columns) {
      own->offset = base.offset + row * base.stride + column;
      own->stride = base.stride;
      if (!own->place && base.place && !base.place->flat) {
        own->place = base.place;
        own->place->row += row;
        own->place->column += column;
        own->place->rows = own->rows;
        own->place->columns = own->columns;
        own->place->count = own->elements();
      }
      return;
    }
    // One is a matrix and the other a flat buffer, so the operand is a run of elements.
    const uint64_t first =
        view.row * base.columns + view.column + (row_share + column_share) * own->elements();
    if (!base.IsDense() || first + own->elements() > base.elements()) {
      throw Error(
          fmt::format("buffer \"{}\" of role \"{}\" is a view of {} x {} elements that is not "
                      "inside \"{}\" of {} x {}",
                      buffer.name, plan_.role->name, own->rows, own->columns,
                      plan_.role->buffers[view.of.index()].name, base.rows, base.columns));
    }
    own->offset = base.offset + first;
  }

  void PlanOp(uint32_t id) {
    const Op& op = plan_.role->ops[id];
    OpPlan planned;
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      if (compute->kernel == Kernel::kNone && !IsWaitedFor(*compute))
        Fail(op, id, "names no kernel, so nothing can execute it");
    } else {
      planned.communicator = CommunicatorOf(op.work).index();
      if (!plan_.groups[planned.communicator])
        Fail(op, id, "is on a communicator without this rank");
      if (const auto* collective = std::get_if<Collective>(&op.work)) {
        planned.meeting = collectives_[planned.communicator]++;
        Expect(op, id, 1, 1);
        if (op.reads.size() != op.writes.size())
          Fail(op, id, "does not write as many buffers as it reads");
        MakeRoom(op, *collective);
      } else if (const auto* send = std::get_if<Send>(&op.work)) {
        planned.peer = plan_.groups[planned.communicator]->ranks.at(send->peer);
        planned.meeting = sends_[{planned.communicator, planned.peer}]++;
        Expect(op, id, 1, 0);
      } else {
        planned.peer =
            plan_.groups[planned.communicator]->ranks.at(std::get<Receive>(op.work).peer);
        planned.meeting = receives_[{planned.communicator, planned.peer}]++;
        Expect(op, id, 0, 1);
      }
      planned.tag = TagOf(planned, std::holds_alternative<Collective>(op.work));
    }
    for (const auto* operands : {&op.reads, &op.writes}) {
      for (const BufferId buffer : *operands) {
        if (plan_.buffers[buffer.index()].elements() == 0) {
          Fail(
              op, id,
              fmt::format("uses buffer \"{}\", which has no rows and columns: it can only be timed",
                          plan_.role->buffers[buffer.index()].name));
        }
      }
    }
    plan_.ops.push_back(planned);
  }

  // Tags differ for all that may be in flight at once: communicators, collectives and messages of
  // one, and neighbours in time.
  uint32_t TagOf(const OpPlan& op, bool is_collective) const {
    const auto communicators = static_cast<uint32_t>(schedule_.communicators.size());
    const uint32_t rounds = kControlTag / (2 * communicators);
    CHECK_GT(rounds, 1u);
    return ((op.meeting % rounds) * communicators + op.communicator) * 2 +
           static_cast<uint32_t>(is_collective);
  }

  // A send or receive names one buffer, a collective at least one on each side.
  void Expect(const Op& op, uint32_t id, size_t reads, size_t writes) const {
    if (op.reads.size() < reads || op.writes.size() < writes)
      Fail(op, id, "does not say which buffers it reads and writes");
    if (!std::holds_alternative<Collective>(op.work) && op.reads.size() + op.writes.size() > 1)
      Fail(op, id, "is a message of more than one buffer");
  }

  // All-gathers of shards that do not divide the whole end in padding, reduce-scatters begin with
  // it.
  void MakeRoom(const Op& op, const Collective& collective) {
    const uint64_t p = schedule_.communicators[collective.communicator.index()].size();
    const auto reserve = [&](BufferId whole, BufferId share) {
      const BufferPlan& of = plan_.buffers[whole.index()];
      if (plan_.role->buffers[whole.index()].view) return;
      uint64_t& room = plan_.memories[of.memory].elements;
      room = std::max(room, p * plan_.buffers[share.index()].elements());
    };
    for (size_t i = 0; i < op.reads.size(); ++i) {
      if (collective.kind == CollectiveKind::kAllGather) reserve(op.writes[i], op.reads[i]);
      if (collective.kind == CollectiveKind::kReduceScatter) reserve(op.reads[i], op.writes[i]);
    }
  }

  [[noreturn]] void Fail(const Op& op, uint32_t id, const std::string& message) const {
    throw Error(
        fmt::format("role \"{}\": op {} \"{}\" {}", plan_.role->name, id, op.name, message));
  }

  const Schedule& schedule_;
  RankPlan plan_;
  std::vector<bool> is_placed_;  // by buffer
  std::map<uint32_t, uint32_t> collectives_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> sends_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> receives_;
};

}  // namespace

RankPlan PlanRank(const Schedule& schedule, uint32_t rank) { return Planner(schedule, rank).Run(); }

std::vector<BufferId> HomesOf(const Role& role) {
  std::vector<BufferId> homes;
  for (uint32_t id = 0; id < role.buffers.size(); ++id) homes.emplace_back(id);
  const auto add = [&](BufferId on_host, BufferId home) {
    if (homes[on_host.index()] == on_host) homes[on_host.index()] = home;
  };
  for (const Op& op : role.ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || !IsHostCopy(collective->kind)) continue;
    for (size_t i = 0; i < op.reads.size(); ++i) {
      if (collective->kind == CollectiveKind::kFromHost) add(op.reads[i], op.writes[i]);
      if (collective->kind == CollectiveKind::kToHost) add(op.writes[i], op.reads[i]);
    }
  }
  return homes;
}

bool IsNamedArray(const RankPlan& plan, BufferId id) {
  const std::vector<Buffer>& buffers = plan.role->buffers;
  const Buffer& buffer = buffers[id.index()];
  if (buffer.region == kNoRegion || plan.buffers[id.index()].elements() == 0) return false;
  return !buffer.view || buffers[buffer.view->of.index()].region == kNoRegion;
}

std::vector<BufferId> NamedArraysOf(const RankPlan& plan, BufferId id) {
  if (IsNamedArray(plan, id)) return {id};
  std::vector<BufferId> arrays;
  const std::vector<Buffer>& buffers = plan.role->buffers;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    // A view of another kind is only how ops see the buffer, not what it is.
    if (buffers[i].view && buffers[i].view->of == id &&
        buffers[i].kind == buffers[id.index()].kind && IsNamedArray(plan, BufferId(i))) {
      arrays.emplace_back(i);
    }
  }
  return arrays;
}

std::string ArrayName(const RankPlan& plan, BufferId id) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"updated share of ", ""}, {"gradient shard of ", "gradient of "}};
  const std::string& name = plan.role->buffers[id.index()].name;
  for (const auto& [from, to] : kPrefixes) {
    if (name.starts_with(from)) return std::string(to) + name.substr(from.size());
  }
  return name;
}

uint64_t MomentsOf(Kernel kernel) {
  switch (kernel) {
    case Kernel::kAdam:
    case Kernel::kLambMoments:
      return 2;
    case Kernel::kMomentum:
      return 1;
    default:
      return 0;
  }
}

std::vector<uint32_t> OptimizerOps(const Role& role) {
  std::vector<uint32_t> ops;
  for (uint32_t i = 0; i < role.ops.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&role.ops[i].work);
    if (compute == nullptr) continue;
    const bool is_again = compute->kernel == Kernel::kAdam && compute->attributes.size() > 1;
    if (MomentsOf(compute->kernel) > 0 && !is_again) ops.push_back(i);
  }
  return ops;
}

Schedule OnOneStream(const Schedule& schedule) {
  Schedule result = schedule;
  for (Role& role : result.roles) {
    role.streams = {{"rank", StreamKind::kCompute}};
    for (Op& op : role.ops) {
      op.stream = StreamId(0);
      op.after.clear();
    }
  }
  return result;
}

std::optional<Schedule> BlockingForm(const Schedule& schedule) {
  Schedule blocking = OnOneStream(schedule);
  try {
    CheckSchedule(blocking);
  } catch (const Error&) {
    return std::nullopt;
  }
  return blocking;
}

uint32_t StreamsInUse(const Schedule& schedule) {
  size_t most = 1;
  for (const Role& role : schedule.roles) {
    std::vector<bool> used(role.streams.size());
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || !IsWaitedFor(*compute)) used[op.stream.index()] = true;
    }
    most = std::max(most, static_cast<size_t>(std::count(used.begin(), used.end(), true)));
  }
  return static_cast<uint32_t>(most);
}

}  // namespace rehearse
