#include "sim/schedule/buffer_check.h"

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/op_error.h"
#include "sim/schedule/repeats.h"
#include "sim/schedule/written_out.h"

namespace rehearse {
namespace {

// Vector clocks: clock[op][s] counts the ops of stream s that are done when `op` is done.
class RaceFinder {
 public:
  RaceFinder(const Role& role, uint32_t number)
      : role_(role),
        number_(number),
        all_(role, FewerCopies(role, kCopiesThatShowAll)),
        streams_(role.streams.size()) {
    const uint32_t ops = all_.ops().size();
    clocks_.resize(ops * streams_);
    position_.resize(ops);
    places_.reserve(ops);
    accesses_.resize(all_.buffer_count());
  }

  void Run() {
    std::vector<uint32_t> latest(streams_, kNoOp);
    const DoneOps ops = all_.ops();
    for (const DoneOp& done : ops) {
      const uint32_t op = done.position;
      places_.push_back(done.place);
      const Op& what = role_.ops[done.place];
      const uint32_t stream = what.stream.index();
      CHECK_LT(stream, streams_);
      if (latest[stream] != kNoOp) Join(op, latest[stream]);
      for (const OpId before : what.after) {
        const uint32_t earlier = ops.PositionOf(before, done);
        CHECK_LT(earlier, op);
        Join(op, earlier);
      }
      position_[op] = ++clocks_[op * streams_ + stream];
      latest[stream] = op;
      for (const BufferId id : what.reads) Touch(op, all_.NumberOf(id, done), /*writes=*/false);
      for (const BufferId id : what.writes) Touch(op, all_.NumberOf(id, done), /*writes=*/true);
    }
  }

 private:
  static constexpr uint32_t kNoOp = std::numeric_limits<uint32_t>::max();

  // The latest accesses to a part from one stream. They stand for all earlier ones, because a
  // stream is ordered.
  struct Access {
    uint32_t stream;
    Footprint part;
    uint32_t read = kNoOp;
    uint32_t write = kNoOp;
  };

  void Join(uint32_t op, uint32_t before) {
    for (size_t s = 0; s < streams_; ++s) {
      uint32_t& own = clocks_[op * streams_ + s];
      own = std::max(own, clocks_[before * streams_ + s]);
    }
  }

  bool IsBefore(uint32_t earlier, uint32_t op) const {
    return clocks_[op * streams_ + At(earlier).stream.index()] >= position_[earlier];
  }

  const Op& At(uint32_t op) const { return role_.ops[places_[op]]; }

  void Touch(uint32_t op, uint32_t buffer, bool writes) {
    CHECK_LT(buffer, accesses_.size());
    const uint32_t stream = At(op).stream.index();
    Footprint part = FootprintOf(role_.buffers, all_.KeptId(buffer));
    part.buffer = BufferId(all_.RootOf(buffer));
    std::vector<Access>& accesses = accesses_[part.buffer.index()];
    Access* own = nullptr;
    for (Access& access : accesses) {
      if (access.stream == stream) {
        if (access.part == part) own = &access;
        continue;
      }
      if (!access.part.Overlaps(part)) continue;
      if (access.write != kNoOp && !IsBefore(access.write, op))
        Fail(buffer, access.write, true, op, writes);
      if (writes && access.read != kNoOp && !IsBefore(access.read, op))
        Fail(buffer, access.read, false, op, true);
    }
    if (own == nullptr) own = &accesses.emplace_back(Access{stream, part, kNoOp, kNoOp});
    (writes ? own->write : own->read) = op;
  }

  [[noreturn]] void Fail(uint32_t buffer, uint32_t a, bool a_writes, uint32_t b,
                         bool b_writes) const {
    const auto name = [&](uint32_t op, bool writes) {
      return fmt::format("op {} \"{}\" (stream \"{}\") {}", op, At(op).name,
                         role_.streams[At(op).stream.index()].name,
                         writes ? "writes it" : "reads it");
    };
    throw OpError(
        number_, b,
        fmt::format("role \"{}\": race on buffer \"{}\": {} and {}, and neither is ordered "
                    "before the other",
                    role_.name, all_.KeptBuffer(buffer).name, name(a, a_writes),
                    name(b, b_writes)));
  }

  const Role& role_;
  uint32_t number_;  // of the role
  const WrittenOut all_;
  size_t streams_;
  std::vector<uint32_t> places_;               // by op, as counted here: where it is kept
  std::vector<uint32_t> clocks_;               // [op][stream]
  std::vector<uint32_t> position_;             // by op: 1 for the first of its stream
  std::vector<std::vector<Access>> accesses_;  // by buffer
};

}  // namespace

void CheckBuffers(const Schedule& schedule) {
  for (uint32_t i = 0; i < schedule.roles.size(); ++i) RaceFinder(schedule.roles[i], i).Run();
}

}  // namespace rehearse
