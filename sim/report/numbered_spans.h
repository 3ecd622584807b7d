// Which spans of two timelines are the same op: those with the same number.
//
// Ops are told apart by name, kind, axis, phase, layer, micro-batch and their index among such ops
// on their rank. Numbers count up from 0 in order of first appearance, over all timelines that are
// numbered one after the other; on a rank no two spans have the same one.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/report/timeline_record.h"

namespace rehearse {

struct NumberedSpan {
  uint32_t number = 0;
  const Span* span = nullptr;
};

struct NumberedRank {
  uint32_t rank = 0;
  double like_it = 0;               // ranks that share its spans, itself included
  std::vector<NumberedSpan> spans;  // in list order
};

// What a number stands for.
struct SpanMeaning {
  const RecordedOp* op = nullptr;  // as it was first met
  int32_t micro_batch = 0;
  uint32_t occurrence = 0;  // on its rank, from 0
};

class SpanNumbers {
 public:
  // The ranks of the timeline that have spans of their own, ascending. The record has to outlive
  // this.
  std::vector<NumberedRank> Number(const TimelineRecord& record, const Timeline& timeline);

  const std::vector<SpanMeaning>& meanings() const { return meanings_; }  // by number

 private:
  using Description =
      std::tuple<std::string_view, std::string_view, std::string_view, Phase, int32_t>;

  std::vector<std::vector<uint32_t>> DescriptionsOf(const TimelineRecord& record);

  struct HashOfDescription {
    size_t operator()(const Description& description) const;
  };

  std::unordered_map<Description, uint32_t, HashOfDescription> descriptions_;
  std::unordered_map<uint64_t, uint32_t> kinds_;  // of a description and a micro-batch
  std::vector<std::vector<uint32_t>> numbers_;    // by kind and occurrence
  std::vector<SpanMeaning> meanings_;
};

}  // namespace rehearse
