#include "sim/report/span_classes.h"

#include <array>

#include "sim/base/error.h"

namespace rehearse {
namespace {

enum ComputeClass : size_t {
  kForward,
  kRecompute,
  kBackward,
  kWeightGradient,
  kAttention,
  kMemoryBound,
  kOther
};

struct Hue {
  const char* fill;
  const char* ink;
};
enum HueOfAxis : size_t { kOrange, kCrimson, kViolet, kGold, kBrown, kPink, kOlive, kBrick };
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

// What the strategies' axes are for. Axes with the same purpose (splitting products over columns,
// sharing parameters and so on) look alike.
struct NamedHue {
  const char* axis;
  HueOfAxis hue;
};
constexpr NamedHue kNamedHues[] = {
    {"column", kOrange}, {"tensor", kOrange}, {"d1", kOrange},      {"p2", kOrange},
    {"row", kCrimson},   {"d2", kCrimson},    {"p1", kCrimson},     {"experts", kCrimson},
    {"depth", kViolet},  {"shard", kViolet},  {"data", kGold},      {"p0", kGold},
    {"model", kBrown},   {"stages", kBrick},  {"pipeline", kBrick}, {"context", kPink},
    {"sequence", kPink}, {"replica", kOlive}, {"replicas", kOlive},
};

// For each axis, a position in kAxisHues.
std::vector<size_t> HuesOf(const std::vector<std::string>& axes) {
  constexpr size_t kNone = kAxisHues.size();
  std::vector<size_t> hues(axes.size(), kNone);
  std::array<bool, kAxisHues.size()> taken{};
  for (size_t i = 0; i < axes.size(); ++i) {
    for (const NamedHue& named : kNamedHues) {
      if (axes[i] == named.axis) hues[i] = named.hue;
    }
    if (hues[i] != kNone) taken[hues[i]] = true;
  }
  size_t next = 0;
  for (size_t& hue : hues) {
    if (hue != kNone) continue;
    for (size_t tried = 0; tried < taken.size() && taken[next % taken.size()]; ++tried) ++next;
    hue = next++ % taken.size();
  }
  return hues;
}

std::vector<std::string> AxesOf(const Schedule& schedule) {
  std::vector<std::string> axes;
  for (const Communicator& communicator : schedule.communicators)
    axes.push_back(communicator.name());
  return axes;
}

}  // namespace

SpanClasses::SpanClasses(const Schedule& schedule) : SpanClasses(AxesOf(schedule)) {}

SpanClasses::SpanClasses(const std::vector<std::string>& axes) {
  all_ = {{"forward", "#2f7fd1", "#ffffff", false},
          {"recompute", "#9cc9f2", "#123a63", false},
          {"backward", "#1d4289", "#ffffff", false},
          {"weight gradient", "#2f9e63", "#ffffff", false},
          {"attention", "#17a398", "#ffffff", false},
          {"memory-bound", "#a9b4c0", "#23303d", false},
          {"other compute", "#5c6f82", "#ffffff", false}};
  const std::vector<size_t> hues = HuesOf(axes);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Hue& hue = kAxisHues[hues[i]];
    all_.push_back({axes[i], hue.fill, hue.ink, true});
  }
}

size_t SpanClasses::OfAxis(size_t communicator) { return kOther + 1 + communicator; }

size_t SpanClasses::Of(const Op& op) const {
  const CommunicatorId communicator = CommunicatorOf(op.work);
  if (!communicator.IsSet())
    return OfCompute(std::get<Compute>(op.work).kind, op.tag.phase,
                     IsWeightGradient(op.name, op.tag.phase));
  CHECK_LT(OfAxis(communicator.index()), all_.size());
  return OfAxis(communicator.index());
}

bool IsWeightGradient(std::string_view name, Phase phase) {
  if (phase != Phase::kBackward) return false;
  if (name.starts_with("accumulate ")) return true;  // to that of earlier micro-batches
  constexpr std::string_view kWord = "dW";
  for (size_t at = name.find(kWord); at != std::string_view::npos; at = name.find(kWord, at + 1)) {
    const size_t end = at + kWord.size();
    if ((at == 0 || name[at - 1] == ' ') && (end == name.size() || name[end] == ' ')) return true;
  }
  return false;
}

size_t SpanClasses::OfCompute(ComputeKind kind, Phase phase, bool is_weight_gradient) {
  switch (kind) {
    case ComputeKind::kAttention:
      return kAttention;
    case ComputeKind::kMemory:
      return kMemoryBound;
    case ComputeKind::kGemm:
    case ComputeKind::kFixed:
      break;
    case ComputeKind::kHost:
      return kOther;
  }
  switch (phase) {
    case Phase::kForward:
      return kForward;
    case Phase::kRecompute:
      return kRecompute;
    case Phase::kBackward:
      return is_weight_gradient ? kWeightGradient : kBackward;
    case Phase::kSynchronize:
    case Phase::kUpdate:
      break;
  }
  return kOther;
}

}  // namespace rehearse
