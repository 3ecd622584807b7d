#include "workloads/planner/role_builder.h"

#include <algorithm>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint32_t kComputeStream = 0;
constexpr size_t kUsualOps = 512;  // of a step of few layers

}  // namespace

RoleBuilder::RoleBuilder(std::string name, const std::vector<Communicator>& communicators) {
  role_.name = std::move(name);
  role_.ops.reserve(kUsualOps);
  role_.buffers.reserve(kUsualOps);
  accesses_.reserve(kUsualOps);
  clock_begin_.reserve(kUsualOps);
  role_.streams.push_back({"compute", StreamKind::kCompute});
  last_.resize(1);
  for (const Communicator& communicator : communicators) {
    AddStream(communicator, CommunicatorId(static_cast<uint32_t>(stream_of_.size())));
  }
}

void RoleBuilder::AddStream(const Communicator& communicator, CommunicatorId id) {
  CHECK(!HasStream(id));
  if (stream_of_.size() <= id.index()) stream_of_.resize(id.index() + 1);
  stream_of_[id.index()] = AddStream(communicator.name());
}

StreamId RoleBuilder::AddStream(std::string name, StreamKind kind) {
  role_.streams.push_back({std::move(name), kind});
  last_.emplace_back();
  return StreamId(static_cast<uint32_t>(role_.streams.size() - 1));
}

BufferId RoleBuilder::AddBuffer(std::string name, BufferKind kind, Bytes bytes) {
  return AddBuffer(Buffer{.name = std::move(name), .kind = kind, .bytes = bytes});
}

BufferId RoleBuilder::AddBuffer(Buffer buffer) {
  role_.buffers.push_back(std::move(buffer));
  accesses_.emplace_back();
  return BufferId(static_cast<uint32_t>(role_.buffers.size() - 1));
}

uint32_t RoleBuilder::AddRegion(Region region) {
  role_.regions.push_back(std::move(region));
  return static_cast<uint32_t>(role_.regions.size() - 1);
}

OpId RoleBuilder::AddCompute(std::string name, Compute compute, std::vector<BufferId> reads,
                             std::vector<BufferId> writes) {
  Op op;
  op.name = std::move(name);
  op.stream = StreamId(kComputeStream);
  op.work = std::move(compute);
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  const std::vector<uint32_t> waits = std::move(pending_);
  pending_.clear();
  return Add(std::move(op), waits);
}

OpId RoleBuilder::AddComputeBeside(std::string name, Compute compute, StreamId stream,
                                   std::vector<BufferId> reads, std::vector<BufferId> writes) {
  CHECK(stream.index() != kComputeStream);
  Op op;
  op.name = std::move(name);
  op.stream = stream;
  op.work = std::move(compute);
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  return Add(std::move(op), {});
}

OpId RoleBuilder::AddWait(std::string name, Compute wait, StreamId stream) {
  const OpId id = AddComputeBeside(std::move(name), std::move(wait), stream, {}, {});
  pending_.push_back(id.index());
  return id;
}

OpId RoleBuilder::AddCollective(std::string name, Collective collective, Issue issue,
                                std::vector<BufferId> reads, std::vector<BufferId> writes) {
  CHECK(HasStream(collective.communicator));
  Op op;
  op.name = std::move(name);
  op.stream = stream_of_[collective.communicator.index()];
  op.work = std::move(collective);
  const OpId id = AddCommunication(std::move(op), std::move(reads), std::move(writes));
  if (issue == Issue::kBlocking) pending_.push_back(id.index());
  return id;
}

void RoleBuilder::AwaitSince(size_t first_op) {
  for (size_t op = first_op; op < role_.ops.size(); ++op) {
    if (std::holds_alternative<Compute>(role_.ops[op].work)) continue;
    pending_.push_back(static_cast<uint32_t>(op));
  }
}

OpId RoleBuilder::AddMessage(std::string name, Work message, StreamId stream, Issue issue,
                             std::vector<BufferId> reads, std::vector<BufferId> writes) {
  Op op;
  op.name = std::move(name);
  op.stream = stream;
  op.work = std::move(message);
  const OpId id = AddCommunication(std::move(op), std::move(reads), std::move(writes));
  if (issue == Issue::kBlocking) pending_.push_back(id.index());
  return id;
}

OpId RoleBuilder::AddHostCopy(std::string name, Collective copy, StreamId stream, OpId since,
                              std::vector<BufferId> reads, std::vector<BufferId> writes) {
  Op op;
  op.name = std::move(name);
  op.stream = stream;
  op.work = std::move(copy);
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  std::vector<uint32_t> waits;
  if (since.IsSet()) waits.push_back(since.index());
  return Add(std::move(op), waits);
}

OpId RoleBuilder::LastCompute() const {
  return last_[kComputeStream] ? OpId(*last_[kComputeStream]) : OpId();
}

OpId RoleBuilder::AddCommunication(Op&& op, std::vector<BufferId> reads,
                                   std::vector<BufferId> writes) {
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  std::vector<uint32_t> waits;
  if (last_[kComputeStream]) waits.push_back(*last_[kComputeStream]);
  return Add(std::move(op), waits);
}

// Collects what op `op` must wait for, and returns the record of exactly the part that it touches.
// Parts that a write covers no longer need a record of their own.
RoleBuilder::Access& RoleBuilder::Touch(BufferId buffer, bool writes, uint32_t op,
                                        std::vector<uint32_t>* before) {
  const Footprint part = FootprintOf(role_.buffers, buffer);
  auto& accesses = accesses_[part.buffer.index()];
  size_t own = accesses.size();
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (access.part == part) own = i;
    if (!access.part.Overlaps(part)) continue;
    if (access.writer && *access.writer != op) before->push_back(*access.writer);
    if (!writes) continue;
    for (const uint32_t reader : access.readers) {
      if (reader != op) before->push_back(reader);
    }
  }
  if (own == accesses.size()) {
    if (writes) {
      const auto covered = [&](const Access& access) { return part.Covers(access.part); };
      accesses.erase(std::remove_if(accesses.begin(), accesses.end(), covered), accesses.end());
    }
    accesses.push_back({part, std::nullopt, {}});
    return accesses.back();
  }
  return accesses[own];
}

OpId RoleBuilder::Add(Op&& op, const std::vector<uint32_t>& extra) {
  const uint32_t index = static_cast<uint32_t>(role_.ops.size());
  const uint32_t stream = op.stream.index();
  CHECK_LT(stream, role_.streams.size());
  op.tag = tag_;

  std::vector<uint32_t>& before = before_;
  before = extra;
  for (const BufferId buffer : op.reads) {
    Touch(buffer, /*writes=*/false, index, &before).readers.push_back(index);
  }
  for (const BufferId buffer : op.writes) {
    Access& access = Touch(buffer, /*writes=*/true, index, &before);
    access.writer = index;
    access.readers.clear();
  }

  // Latest first: an earlier op that a later one already waits for needs no edge of its own.
  const size_t begin = clocks_.size();
  clocks_.resize(begin + role_.streams.size());
  uint32_t* const clock = clocks_.data() + begin;
  const auto merge = [&](uint32_t earlier) {
    const uint32_t* known = clocks_.data() + clock_begin_[earlier];
    const size_t count = clock_begin_[earlier + 1] - clock_begin_[earlier];
    for (size_t i = 0; i < count; ++i) clock[i] = std::max(clock[i], known[i]);
    uint32_t& own = clock[role_.ops[earlier].stream.index()];
    own = std::max(own, earlier + 1);
  };
  if (last_[stream]) merge(*last_[stream]);
  std::sort(before.begin(), before.end(), std::greater<>());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  for (const uint32_t earlier : before) {
    if (clock[role_.ops[earlier].stream.index()] > earlier) continue;
    op.after.push_back(OpId(earlier));
    merge(earlier);
  }
  std::reverse(op.after.begin(), op.after.end());

  clock_begin_.push_back(clocks_.size());
  last_[stream] = index;
  role_.ops.push_back(std::move(op));
  return OpId(index);
}

void RoleBuilder::AddRepeat(const Repeat& repeat) {
  CHECK_EQ(repeat.end, role_.ops.size());
  CHECK_EQ(repeat.end_buffer, role_.buffers.size());
  role_.repeats.push_back(repeat);
}

Role RoleBuilder::Build() { return std::move(role_); }

}  // namespace rehearse
