#include "sim/engine/recurrence.h"

#include <algorithm>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {

RecurrenceSearch::RecurrenceSearch(const Program& program, uint32_t left_out)
    : left_out_(left_out) {
  if (left_out == 0) return;
  CHECK(!program.copies.empty());
  const CopiedTasks& first = program.copies.front();
  count_ = first.count;
  size_ = first.tasks.size;
  marker_ = first.tasks.first;
}

uint32_t RecurrenceSearch::Compare(std::optional<std::vector<uint64_t>> state, Time now) {
  if (kept_.size() > kMostCopies) kept_.pop_back();
  kept_.insert(kept_.begin(), Kept{std::move(state), now});
  if (!kept_.front().state) return 0;
  for (uint32_t copies = 1; copies < kept_.size(); ++copies) {
    if (left_out_ % copies == 0 && kept_[copies].state == kept_.front().state) return copies;
  }
  return 0;
}

void RecurrenceSearch::GoOn() {
  ++copy_;
  marker_ += size_;
}

namespace {

using TimeOfSpan = Time Span::*;
constexpr TimeOfSpan kTimes[] = {&Span::ready, &Span::begin, &Span::end};

// Writes the spans of a rank, from those that were played.
class RankWriter {
 public:
  RankWriter(const Span* few, const CopiedOps& ops, const Recurrence& recurrence, uint32_t left_out,
             std::vector<Span>* spans)
      : few_(few),
        ops_(ops),
        recurrence_(recurrence),
        left_out_(left_out),
        played_(ops.count - left_out),
        later_(int64_t{left_out / recurrence.copies} * recurrence.period),
        spans_(*spans) {}

  void Write() {
    const size_t size = ops_.size;
    CountWhatHasHappened();
    spans_.insert(spans_.end(), few_, few_ + ops_.before + fewest_ * size);
    for (uint32_t copy = fewest_; copy < ops_.count; ++copy) {
      const bool recurs = copy >= most_ && copy < fewest_ + left_out_;
      const bool is_late = copy >= most_ + left_out_;
      if (recurs) {
        const Span* before = spans_.data() + spans_.size() - recurrence_.copies * size;
        AddLater(before, size, recurrence_.copies * size, recurrence_.period);
      } else if (is_late) {
        AddLater(few_ + ops_.before + (copy - left_out_) * size, size, left_out_ * size, later_);
      } else {
        AddOneByOne(copy);
      }
    }
    AddLater(few_ + ops_.before + played_ * size, ops_.behind, left_out_ * size, later_);
  }

 private:
  // How many copies of each op's times there had been when the state came back.
  void CountWhatHasHappened() {
    for (uint32_t place = ops_.before; place < ops_.before + ops_.size; ++place) {
      for (const TimeOfSpan time : kTimes) {
        uint32_t happened = 0;
        for (uint32_t end = played_; end > happened;) {
          const uint32_t middle = happened + (end - happened) / 2;
          if (few_[place + middle * ops_.size].*time <= recurrence_.at) {
            happened = middle + 1;
          } else {
            end = middle;
          }
        }
        CHECK_GE(happened, recurrence_.copies);
        happened_.push_back(happened);
        fewest_ = std::min(fewest_, happened);
        most_ = std::max(most_, happened);
      }
    }
  }

  void AddLater(const Span* first, size_t count, size_t ops, Time by) {
    for (const Span* span = first; span != first + count; ++span) {
      spans_.push_back({.rank = span->rank,
                        .op = span->op + static_cast<uint32_t>(ops),
                        .ready = span->ready + by,
                        .begin = span->begin + by,
                        .end = span->end + by});
    }
  }

  // A copy of which some times had been there when the state came back, and others not.
  void AddOneByOne(uint32_t copy) {
    auto happened = happened_.begin();
    for (uint32_t place = ops_.before; place < ops_.before + ops_.size; ++place) {
      Span span = few_[place];
      span.op = place + copy * ops_.size;
      for (const TimeOfSpan time : kTimes) {
        uint32_t like = copy;
        Time by;
        if (copy >= *happened + left_out_) {
          like = copy - left_out_;
          by = later_;
        } else if (copy >= *happened) {
          const uint32_t behind = copy - *happened;
          like = *happened - recurrence_.copies + behind % recurrence_.copies;
          by = (int64_t{behind / recurrence_.copies} + 1) * recurrence_.period;
        }
        span.*time = few_[place + like * ops_.size].*time + by;
        ++happened;
      }
      spans_.push_back(span);
    }
  }

  const Span* const few_;
  const CopiedOps& ops_;
  const Recurrence& recurrence_;
  const uint32_t left_out_;
  const uint32_t played_;
  const Time later_;
  std::vector<Span>& spans_;        // has room for all
  std::vector<uint32_t> happened_;  // by place in the body and kind of time
  uint32_t fewest_ = Program::kNone;
  uint32_t most_ = 0;
};

}  // namespace

SpansWithCopies::SpansWithCopies(const SpansByRank& few, std::vector<CopiedOps> of_rank,
                                 const Recurrence& recurrence, uint32_t left_out)
    : few_(few), of_rank_(std::move(of_rank)), recurrence_(recurrence), left_out_(left_out) {
  CHECK(left_out % recurrence.copies == 0);
}

size_t SpansWithCopies::SpanCount() const {
  size_t count = 0;
  for (size_t i = 0; i < few_.count(); ++i) count += OpsAt(i).all();
  return count;
}

void SpansWithCopies::Append(size_t i, std::vector<Span>* spans) const {
  const CopiedOps& ops = OpsAt(i);
  std::vector<Span> room;
  const std::span<const Span> few = few_.At(i, &room);
  CHECK(few.size() == ops.all() - size_t{left_out_} * ops.size && few.back().op + 1 == few.size());
  RankWriter(few.data(), ops, recurrence_, left_out_, spans).Write();
}

std::span<const Span> SpansWithCopies::At(size_t i, std::vector<Span>* room) const {
  room->clear();
  room->reserve(OpsAt(i).all());
  Append(i, room);
  return *room;
}

// What ends after the state came back ends later by all copies that are left out.
Time StepWithCopies(const Timeline& few, const Recurrence& recurrence, uint32_t left_out) {
  if (few.step <= recurrence.at) return few.step;
  return few.step + int64_t{left_out / recurrence.copies} * recurrence.period;
}

Timeline WithCopies(const Timeline& few, std::vector<CopiedOps> of_rank,
                    const Recurrence& recurrence, uint32_t left_out) {
  const KeptSpans kept(few);
  const SpansWithCopies spans(kept, std::move(of_rank), recurrence, left_out);
  Timeline timeline;
  timeline.provenance = few.provenance;
  timeline.ranks = few.ranks;
  timeline.step = StepWithCopies(few, recurrence, left_out);
  timeline.links = few.links;
  timeline.representative = few.representative;
  timeline.spans.reserve(spans.SpanCount());
  for (size_t i = 0; i < spans.count(); ++i) spans.Append(i, &timeline.spans);
  return timeline;
}

Alike AlikeUnder(const SimulationOptions& options) {
  const bool records =
      options.record_link_loads || options.record_bottlenecks || options.record_tasks;
  return {.layers = !records, .micro_batches = options.jump && !records};
}

}  // namespace rehearse
