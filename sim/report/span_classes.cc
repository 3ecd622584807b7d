#include "sim/report/span_classes.h"

#include <array>

#include "sim/base/error.h"

namespace rehearse {
namespace {

enum ComputeClass : size_t { kForward, kRecompute, kBackward, kAttention, kMemoryBound, kOther };

struct Hue {
  const char* fill;
  const char* ink;
};
constexpr std::array<Hue, 8> kAxisHues = {{
    {"#f08a24", "#ffffff"},  // orange
    {"#cf2f6e", "#ffffff"},  // crimson
    {"#8f5bd1", "#ffffff"},  // violet
    {"#e3b505", "#3b3000"},  // gold
    {"#9a5a2c", "#ffffff"},  // brown
    {"#f2798f", "#4a0f1d"},  // pink
    {"#7a9a01", "#ffffff"},  // olive
    {"#c44536", "#ffffff"},  // brick
}};

}  // namespace

SpanClasses::SpanClasses(const Schedule& schedule) {
  all_ = {{"forward", "#2f7fd1", "#ffffff", false},
          {"recompute", "#9cc9f2", "#123a63", false},
          {"backward", "#1d4289", "#ffffff", false},
          {"attention", "#17a398", "#ffffff", false},
          {"memory-bound", "#a9b4c0", "#23303d", false},
          {"other compute", "#5c6f82", "#ffffff", false}};
  for (size_t i = 0; i < schedule.communicators.size(); ++i) {
    const Hue hue = kAxisHues[i % kAxisHues.size()];
    all_.push_back({schedule.communicators[i].name(), hue.fill, hue.ink, true});
  }
}

size_t SpanClasses::Of(const Op& op) const {
  const CommunicatorId communicator = CommunicatorOf(op.work);
  if (communicator.IsSet()) {
    CHECK_LT(kOther + 1 + communicator.index(), all_.size());
    return kOther + 1 + communicator.index();
  }
  switch (std::get<Compute>(op.work).kind) {
    case ComputeKind::kAttention:
      return kAttention;
    case ComputeKind::kMemory:
      return kMemoryBound;
    case ComputeKind::kGemm:
    case ComputeKind::kFixed:
      break;
  }
  switch (op.tag.phase) {
    case Phase::kForward:
      return kForward;
    case Phase::kRecompute:
      return kRecompute;
    case Phase::kBackward:
      return kBackward;
    case Phase::kSynchronize:
    case Phase::kUpdate:
      break;
  }
  return kOther;
}

}  // namespace rehearse
