// What a collective asks for: those of a communicator whose questions are equal are one request,
// and are answered by the same transfers.
#pragma once

#include <tuple>

#include "sim/schedule/schedule.h"

namespace rehearse {

// Refers to the collective.
class Question {
 public:
  explicit Question(const Collective& collective) : collective_(collective) {
    if (IsPlainRing()) return;
    kind_ = collective.kind;
    bytes_ = collective.bytes;
  }

  bool operator<(const Question& other) const;

 private:
  // Rings of the bare machine do not depend on kind and size.
  bool IsPlainRing() const {
    return (collective_.kind == CollectiveKind::kAllReduce ||
            collective_.kind == CollectiveKind::kAllGather ||
            collective_.kind == CollectiveKind::kReduceScatter) &&
           collective_.algorithm == AlgorithmId::kRing && collective_.protocol == Protocol::kNone;
  }

  auto Facts() const {
    return std::tie(collective_.communicator, kind_, bytes_, collective_.root,
                    collective_.algorithm, collective_.protocol, collective_.pair_bytes,
                    collective_.rank_share, collective_.machine_share);
  }

  const Collective& collective_;
  CollectiveKind kind_ = CollectiveKind::kAllReduce;
  Bytes bytes_;
};

inline bool Question::operator<(const Question& other) const { return Facts() < other.Facts(); }

}  // namespace rehearse
