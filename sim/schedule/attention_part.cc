#include "sim/schedule/attention_part.h"

#include <algorithm>
#include <array>

#include "sim/base/error.h"

namespace rehearse {
namespace {

struct Run {
  double begin = 0;
  double end = 0;
};

// The runs of tokens that a part has: two if balanced, else one and an empty one.
std::array<Run, 2> RunsOf(const AttentionPart& part, uint64_t number) {
  const double length = part.Length();
  const auto p = static_cast<double>(number);
  if (!part.balanced) return {Run{p * length, (p + 1) * length}, Run{}};
  const double half = length / 2;
  const double other = static_cast<double>(2 * part.parts - 1 - number);
  return {Run{p * half, (p + 1) * half}, Run{other * half, (other + 1) * half}};
}

// The area of what queries see of keys: linear between the queries at which a run of keys comes
// into view or leaves it.
double Area(const AttentionPart& part, const Run& queries, const Run& keys) {
  if (queries.end <= queries.begin || keys.end <= keys.begin) return 0;
  if (!part.causal) return (queries.end - queries.begin) * (keys.end - keys.begin);
  const double window = part.window > 0 ? part.window : part.sequence;
  std::array<double, 6> at = {queries.begin, queries.end,         keys.begin,
                              keys.end,      keys.begin + window, keys.end + window};
  for (double& query : at) query = std::clamp(query, queries.begin, queries.end);
  std::sort(at.begin(), at.end());
  const auto seen = [&](double query) {
    return std::max(0.0, std::min(keys.end, query) - std::max(keys.begin, query - window));
  };
  double area = 0;
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    area += (at[i + 1] - at[i]) * (seen(at[i]) + seen(at[i + 1])) / 2;
  }
  return area;
}

double PairsOf(const AttentionPart& part, uint64_t queries) {
  double pairs = 0;
  const auto add = [&](uint64_t keys) {
    for (const Run& of_queries : RunsOf(part, queries)) {
      for (const Run& of_keys : RunsOf(part, keys)) pairs += Area(part, of_queries, of_keys);
    }
  };
  if (part.step < 0) {
    for (uint64_t keys = 0; keys < part.parts; ++keys) add(keys);
  } else {
    add((queries + part.parts - static_cast<uint64_t>(part.step)) % part.parts);
  }
  return pairs;
}

}  // namespace

AttentionPart PartOf(const std::vector<double>& attributes) {
  CHECK_GT(attributes.size(), size_t{kAttentionCausal});
  const auto at = [&](size_t i, double otherwise) {
    return i < attributes.size() ? attributes[i] : otherwise;
  };
  AttentionPart part;
  part.sequence = attributes[kAttentionSequence];
  part.causal = attributes[kAttentionCausal] != 0;
  part.window = at(kAttentionWindow, 0);
  part.parts = static_cast<uint64_t>(std::max(1.0, at(kAttentionParts, 1)));
  part.balanced = at(kAttentionBalanced, 0) != 0;
  part.step = static_cast<int64_t>(at(kAttentionStep, -1));
  return part;
}

double WidthOfCore(const std::vector<double>& attributes) {
  if (attributes.size() <= kAttentionValueSize) return 1;
  const double value = attributes[kAttentionValueSize];
  return (attributes[kAttentionHeadSize] + value) / (2 * value);
}

double MostPairs(const AttentionPart& part) {
  const double length = part.Length();
  const bool has_window = part.causal && part.window > 0 && part.window < part.sequence;
  if (!has_window) {
    // Without a mask, and when balanced under one, all ranks have equally many.
    const double keys = part.step < 0 ? part.sequence : length;
    if (!part.causal) return length * keys;
    if (part.balanced || part.parts == 1) return length * keys / 2;
    if (part.step < 0) return length * keys - length * length / 2;
    return part.step == 0 ? length * length / 2 : length * length;
  }
  double most = 0;
  for (uint64_t queries = 0; queries < part.parts; ++queries)
    most = std::max(most, PairsOf(part, queries));
  return most;
}

}  // namespace rehearse
