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

// One kind of time of the ops at a place, copy by copy.
class CopiedTime {
 public:
  // `at`(copy): of the `count` copies that were played.
  template <typename At>
  CopiedTime(const At& at, uint32_t count, const Recurrence& recurrence) {
    while (count > happened_) {
      const uint32_t middle = happened_ + (count - happened_) / 2;
      if (at(middle) <= recurrence.at) {
        happened_ = middle + 1;
      } else {
        count = middle;
      }
    }
    CHECK_GE(happened_, recurrence.copies);
  }

  // Which of the copies that were played the copy is like, and by how many periods it is later.
  uint32_t copy() const { return copy_; }
  uint32_t periods() const { return periods_; }

  // On to the next copy, which has this number.
  void GoOn(uint32_t next, uint32_t copies, uint32_t left_out) {
    ++copy_;
    if (next < happened_) return;
    if (next >= happened_ + left_out) {
      copy_ = next - left_out;
      periods_ = left_out / copies;
    } else if (copy_ == happened_) {
      copy_ -= copies;
      ++periods_;
    }
  }

 private:
  uint32_t happened_ = 0;  // how many copies, at the time of the recurrence
  uint32_t copy_ = 0;
  uint32_t periods_ = 0;
};

using TimeOfSpan = Time Span::*;
constexpr TimeOfSpan kTimes[] = {&Span::ready, &Span::begin, &Span::end};

// Appends the spans of a rank.
void AddRank(const Span* few, const Role& role, const Recurrence& recurrence, uint32_t left_out,
             std::vector<Span>* spans) {
  const Repeat& repeat = role.repeats.front();
  const uint32_t size = repeat.size();
  const uint32_t played = repeat.times + 1 - left_out;
  spans->insert(spans->end(), few, few + repeat.begin);
  std::vector<CopiedTime> times;  // by place in the body, and kind of time
  for (uint32_t place = repeat.begin; place < repeat.end; ++place) {
    for (const TimeOfSpan time : kTimes) {
      times.emplace_back([&](uint32_t copy) { return few[place + copy * size].*time; }, played,
                         recurrence);
    }
  }
  for (uint32_t copy = 0; copy <= repeat.times; ++copy) {
    auto time_of_place = times.begin();
    for (uint32_t place = repeat.begin; place < repeat.end; ++place) {
      Span span = few[place];
      span.op = place + copy * size;
      for (const TimeOfSpan time : kTimes) {
        CopiedTime& like = *time_of_place++;
        span.*time = few[place + like.copy() * size].*time +
                     static_cast<int64_t>(like.periods()) * recurrence.period;
        like.GoOn(copy + 1, recurrence.copies, left_out);
      }
      spans->push_back(span);
    }
  }
  const Time later = static_cast<int64_t>(left_out / recurrence.copies) * recurrence.period;
  const auto kept = static_cast<uint32_t>(role.ops.size());
  for (uint32_t place = repeat.end; place < kept; ++place) {
    Span span = few[place + (played - 1) * size];
    span.op += left_out * size;
    for (const TimeOfSpan time : kTimes) {
      if (span.*time > recurrence.at) span.*time += later;
    }
    spans->push_back(span);
  }
}

}  // namespace

Timeline WithCopies(const Timeline& few, const Schedule& whole, const Recurrence& recurrence,
                    uint32_t left_out) {
  CHECK(left_out % recurrence.copies == 0);
  Timeline timeline;
  timeline.provenance = few.provenance;
  timeline.ranks = few.ranks;
  timeline.links = few.links;
  timeline.representative = few.representative;
  const auto role_of = [&](uint32_t rank) -> const Role& {
    return whole.roles[whole.role_of_rank[rank]];
  };
  size_t count = 0;
  for (size_t i = 0; i < few.spans.size();) {
    const Role& role = role_of(few.spans[i].rank);
    count += role.OpCount();
    i += role.OpCount() - left_out * role.repeats.front().size();
  }
  timeline.spans.reserve(count);
  for (size_t i = 0; i < few.spans.size();) {
    const uint32_t rank = few.spans[i].rank;
    const Role& role = role_of(rank);
    const size_t end = i + role.OpCount() - left_out * role.repeats.front().size();
    CHECK(end <= few.spans.size() && few.spans[end - 1].rank == rank &&
          few.spans[end - 1].op + 1 == end - i);
    AddRank(&few.spans[i], role, recurrence, left_out, &timeline.spans);
    i = end;
  }
  for (const Span& span : timeline.spans) timeline.step = std::max(timeline.step, span.end);
  return timeline;
}

}  // namespace rehearse
