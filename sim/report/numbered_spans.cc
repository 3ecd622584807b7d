#include "sim/report/numbered_spans.h"

namespace rehearse {

size_t SpanNumbers::HashOfDescription::operator()(const Description& description) const {
  const auto& [name, kind, axis, phase, layer] = description;
  constexpr size_t kMixer = 0x9e3779b1;
  const std::hash<std::string_view> text;
  size_t hash = text(name);
  hash = hash * kMixer + text(kind);
  hash = hash * kMixer + text(axis);
  hash = hash * kMixer + static_cast<size_t>(phase);
  return hash * kMixer + static_cast<size_t>(layer);
}

// By role and place of its ops.
std::vector<std::vector<uint32_t>> SpanNumbers::DescriptionsOf(const TimelineRecord& record) {
  std::vector<std::vector<uint32_t>> descriptions;
  for (const RecordedRole& role : record.roles) {
    std::vector<uint32_t>& own = descriptions.emplace_back();
    own.reserve(role.ops.size());
    for (const RecordedOp& op : role.ops) {
      const auto next = static_cast<uint32_t>(descriptions_.size());
      own.push_back(descriptions_.try_emplace({op.name, op.kind, op.axis, op.phase, op.layer}, next)
                        .first->second);
    }
  }
  return descriptions;
}

std::vector<NumberedRank> SpanNumbers::Number(const TimelineRecord& record,
                                              const Timeline& timeline) {
  const std::vector<std::vector<uint32_t>> descriptions = DescriptionsOf(record);
  std::map<uint32_t, double> ranks;
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) ++ranks[timeline.RepresentativeOf(rank)];
  std::vector<NumberedRank> numbered;
  std::vector<std::vector<uint32_t>> known(record.roles.size());  // kinds, by role and op
  std::vector<uint32_t> met;                                      // by kind: how many on this rank
  std::vector<uint32_t> touched;                                  // kinds on this rank
  for (const auto& [rank, like_it] : ranks) {
    NumberedRank& own = numbered.emplace_back(NumberedRank{rank, like_it, {}});
    const auto [first, last] = timeline.SpansOf(rank);
    own.spans.reserve(last - first);
    const uint32_t role_index = record.role_of_rank[rank];
    const RecordedRole& role = record.roles[role_index];
    const auto find_kind = [&](uint32_t op) {
      const uint64_t what = static_cast<uint64_t>(descriptions[role_index][role.PlaceAt(op)])
                                << 32 |
                            static_cast<uint32_t>(role.MicroBatchAt(op));
      const auto [entry, is_new] = kinds_.try_emplace(what, static_cast<uint32_t>(numbers_.size()));
      if (is_new) numbers_.emplace_back();
      return entry->second;
    };
    const auto kind_of = [&](uint32_t op) {
      constexpr uint32_t kMostKnown = 1u << 22;
      constexpr uint32_t kUnknown = 0xffffffffu;
      if (op >= kMostKnown) return find_kind(op);
      std::vector<uint32_t>& own_kinds = known[role_index];
      if (op >= own_kinds.size()) own_kinds.resize(size_t{op} + 1, kUnknown);
      if (own_kinds[op] == kUnknown) own_kinds[op] = find_kind(op);
      return own_kinds[op];
    };
    for (size_t i = first; i < last; ++i) {
      const Span& span = timeline.spans[i];
      const uint32_t kind = kind_of(span.op);
      if (kind >= met.size()) met.resize(numbers_.size(), 0);
      if (met[kind] == 0) touched.push_back(kind);
      const uint32_t occurrence = met[kind]++;
      std::vector<uint32_t>& numbers = numbers_[kind];
      if (occurrence == numbers.size()) {
        numbers.push_back(static_cast<uint32_t>(meanings_.size()));
        meanings_.push_back(
            {&role.ops[role.PlaceAt(span.op)], role.MicroBatchAt(span.op), occurrence});
      }
      own.spans.push_back({numbers[occurrence], &span});
    }
    for (const uint32_t kind : touched) met[kind] = 0;
    touched.clear();
  }
  return numbered;
}

}  // namespace rehearse
