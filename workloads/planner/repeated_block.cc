#include "workloads/planner/repeated_block.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace rehearse {
namespace {

constexpr uint32_t kFewestBlocks = 4;

bool EndsStep(const Action& action) {
  return action.kind == ActionKind::kSynchronize || action.kind == ActionKind::kUpdate;
}

// ---- what is equal ------------------------------------------------------------------------------

bool IsSame(const Gemm& a, const Gemm& b) {
  const auto facts = [](const Gemm& gemm) {
    return std::tie(gemm.m, gemm.n, gemm.k, gemm.mode, gemm.batch);
  };
  return facts(a) == facts(b);
}
bool IsSame(const Compute& a, const Compute& b) {
  const auto facts = [](const Compute& compute) {
    return std::tie(compute.kind, compute.kernel, compute.dtype, compute.duration, compute.flops,
                    compute.bytes, compute.kernels, compute.attributes, compute.tuned,
                    compute.row_parts, compute.column_parts, compute.attention, compute.strided,
                    compute.strided_bytes);
  };
  return facts(a) == facts(b) && IsSame(a.gemm, b.gemm);
}
bool IsSame(const Collective& a, const Collective& b) {
  const auto facts = [](const Collective& collective) {
    return std::tie(collective.kind, collective.communicator, collective.bytes, collective.dtype,
                    collective.reduction, collective.algorithm, collective.protocol,
                    collective.root, collective.pair_bytes, collective.rank_share,
                    collective.machine_share, collective.copied);
  };
  return facts(a) == facts(b);
}
template <typename Message>
bool IsSame(const Message& a, const Message& b) {
  const auto facts = [](const Message& message) {
    return std::tie(message.communicator, message.peer, message.bytes);
  };
  return facts(a) == facts(b);
}

bool IsSameWork(const Work& a, const Work& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& work) { return IsSame(work, std::get<std::decay_t<decltype(work)>>(b)); }, a);
}

// Compares a copy with those before it.
class Comparison {
 public:
  Comparison(const Role& role, const Repeat& repeat)
      : role_(role), repeat_(repeat), buffers_(repeat.buffers()) {}

  bool IsSame() const {
    const auto is_too_long = [&](uint64_t size, uint32_t before) {
      return repeat_.back * size > before;
    };
    if (is_too_long(repeat_.size(), repeat_.begin) || is_too_long(buffers_, repeat_.first_buffer))
      return false;
    for (uint32_t id = repeat_.first_buffer; id < repeat_.end_buffer; ++id) {
      const Buffer& before = role_.buffers[id - buffers_];
      const Buffer& own = role_.buffers[id];
      if (!HasSameFacts(before, own) || (own.view && !IsSameName(before.view->of, own.view->of)))
        return false;
    }
    for (uint32_t op = repeat_.begin; op < repeat_.end; ++op) {
      const Op& before = role_.ops[op - repeat_.size()];
      const Op& own = role_.ops[op];
      if (!HasSameFacts(before, own, repeat_.micro_batches) || !HasSameNames(before, own))
        return false;
    }
    for (uint32_t piece = 2; piece <= repeat_.back; ++piece) {
      if (!HasSameFacts(piece)) return false;
    }
    return true;
  }

 private:
  // Of the piece so many before the body: the same ops and buffers, whatever they name.
  bool HasSameFacts(uint32_t piece) const {
    for (uint32_t id = repeat_.first_buffer; id < repeat_.end_buffer; ++id) {
      if (!HasSameFacts(role_.buffers[id - piece * buffers_], role_.buffers[id])) return false;
    }
    const int32_t micro_batches = static_cast<int32_t>(piece) * repeat_.micro_batches;
    for (uint32_t op = repeat_.begin; op < repeat_.end; ++op) {
      const Op& before = role_.ops[op - piece * repeat_.size()];
      if (!HasSameFacts(before, role_.ops[op], micro_batches)) return false;
    }
    return true;
  }

  // The same buffer, shared by all copies, or that of the copy before.
  bool IsSameName(BufferId before, BufferId own) const {
    const uint32_t first_shifted = repeat_.FirstBuffer() - buffers_;
    if (own.index() < first_shifted) return before == own;
    return before.index() + buffers_ == own.index();
  }

  static bool HasSameFacts(const Buffer& before, const Buffer& own) {
    const auto facts = [](const Buffer& buffer) {
      return std::tie(buffer.name, buffer.kind, buffer.bytes, buffer.dtype, buffer.rows,
                      buffer.columns, buffer.region);
    };
    if (facts(before) != facts(own) || before.view.has_value() != own.view.has_value()) {
      return false;
    }
    if (!own.view) return true;
    const auto place = [](const View& view) {
      return std::tie(view.row, view.column, view.rows_cut_by, view.columns_cut_by,
                      view.rows_turned);
    };
    return place(*before.view) == place(*own.view);
  }

  static bool HasSameFacts(const Op& before, const Op& own, int32_t micro_batches) {
    return before.name == own.name && before.stream == own.stream &&
           before.tag.phase == own.tag.phase && before.tag.layer == own.tag.layer &&
           before.tag.micro_batch + micro_batches == own.tag.micro_batch &&
           IsSameWork(before.work, own.work);
  }

  bool HasSameNames(const Op& before, const Op& own) const {
    const auto is_same_name = [&](BufferId a, BufferId b) { return IsSameName(a, b); };
    const auto is_copy_later = [&](OpId a, OpId b) {
      return a.index() + repeat_.size() == b.index() &&
             b.index() + repeat_.size() >= repeat_.FirstOp();
    };
    return std::equal(before.after.begin(), before.after.end(), own.after.begin(), own.after.end(),
                      is_copy_later) &&
           std::equal(before.reads.begin(), before.reads.end(), own.reads.begin(), own.reads.end(),
                      is_same_name) &&
           std::equal(before.writes.begin(), before.writes.end(), own.writes.begin(),
                      own.writes.end(), is_same_name);
  }

  const Role& role_;
  const Repeat& repeat_;
  const uint32_t buffers_;
};

}  // namespace

uint32_t MostInFlight(const std::vector<Action>& own) {
  struct OfStage {
    std::set<uint32_t> begun;
    uint32_t last = 0;
  };
  std::map<uint32_t, OfStage> stages;
  uint32_t most = 0;
  for (const Action& action : own) {
    OfStage& stage = stages[action.stage];
    if (action.kind == ActionKind::kForward) {
      stage.begun.insert(action.micro_batch);
      stage.last = std::max(stage.last, action.micro_batch);
    } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient) {
      stage.begun.erase(action.micro_batch);
    }
    if (!stage.begun.empty()) most = std::max(most, stage.last - *stage.begun.begin() + 1);
  }
  return most;
}

std::optional<PeriodicActions> FindPeriod(const std::vector<Action>& own, uint32_t of_block,
                                          uint32_t copies) {
  if (own.empty()) return std::nullopt;
  // What is done for one micro-batch in the middle of the step, on all stages of the rank that take
  // it.
  const Action& amid = own[own.size() / 2];
  const auto step =
      copies *
      static_cast<uint32_t>(std::count_if(own.begin(), own.end(), [&](const Action& action) {
        return !EndsStep(action) && action.micro_batch == amid.micro_batch;
      }));
  const uint32_t length = step * of_block;
  const auto comes_again = [&](uint32_t i) {
    Action later = own[i];
    later.micro_batch += of_block;
    return !EndsStep(own[i]) && own[i + length] == later;
  };
  PeriodicActions longest;
  for (uint32_t begin = 0; begin + length < own.size(); ++begin) {
    uint32_t end = begin;
    while (end + length < own.size() && comes_again(end)) ++end;
    if (end > begin && end + length - begin > longest.end - longest.begin) {
      longest.begin = begin;
      longest.end = end + length;
    }
    begin = end;
  }
  longest.length = length;
  longest.micro_batches = of_block;
  if (longest.end - longest.begin < kFewestBlocks * longest.length) return std::nullopt;
  return longest;
}

bool IsLikePiecesBefore(const Role& role, const Repeat& repeat) {
  return Comparison(role, repeat).IsSame();
}

bool CanBeSaid(const Role& role, const Repeat& repeat) {
  const auto is_before = [](uint32_t index, uint32_t begin, uint32_t size) {
    return index < begin && index + size >= begin;
  };
  for (size_t i = repeat.end; i < role.ops.size(); ++i) {
    const Op& op = role.ops[i];
    for (const OpId earlier : op.after) {
      if (is_before(earlier.index(), repeat.FirstOp(), repeat.size())) return false;
    }
    for (const auto* touched : {&op.reads, &op.writes}) {
      for (const BufferId id : *touched) {
        if (is_before(id.index(), repeat.FirstBuffer(), repeat.buffers())) return false;
      }
    }
  }
  return true;
}

}  // namespace rehearse
