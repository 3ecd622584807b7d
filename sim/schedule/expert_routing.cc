#include "sim/schedule/expert_routing.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// If shares are uneven or cut short, an equal share of a run is this many choices.
constexpr uint64_t kFineShare = 16;

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Drawn(uint64_t seed, uint64_t i) {
  uint64_t x = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 0, 1, ... in an order that the seed draws.
std::vector<uint32_t> DrawOrder(uint32_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[Drawn(seed, i) % i]);
  return order;
}

// The same loads in an order in which each of so many equal runs has about as much.
std::vector<uint64_t> Packed(const std::vector<uint64_t>& loads, size_t runs) {
  std::vector<uint64_t> busiest = loads;
  std::sort(busiest.begin(), busiest.end(), std::greater<>());
  const size_t room = loads.size() / runs;
  std::vector<std::vector<uint64_t>> packed(runs);
  std::vector<uint64_t> sums(runs);
  for (const uint64_t load : busiest) {
    size_t least = runs;
    for (size_t run = 0; run < runs; ++run) {
      const bool is_less = least == runs || sums[run] < sums[least];
      if (packed[run].size() < room && is_less) least = run;
    }
    packed[least].push_back(load);
    sums[least] += load;
  }
  std::vector<uint64_t> all;
  for (const std::vector<uint64_t>& run : packed) all.insert(all.end(), run.begin(), run.end());
  return all;
}

// How many of `slots` each of `count` experts has, the busiest `imbalance` times an equal share and
// none more than `most`.
std::vector<uint64_t> DrawLoads(uint32_t count, uint64_t slots, double imbalance, uint64_t most,
                                uint64_t seed) {
  if (imbalance <= 1 && slots % count == 0) return std::vector<uint64_t>(count, slots / count);
  const auto sum_for = [&](double a) {
    double sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += 1 / (1 + a * i);
    return sum;
  };
  double low = 0;
  double high = 1e9;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (count / sum_for(middle) < imbalance ? low : high) = middle;
  }
  const double all = sum_for(high);
  const std::vector<uint32_t> order = DrawOrder(count, seed);
  std::vector<uint64_t> loads(count);
  uint64_t dealt = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(slots) / (1 + high * i) / all;
    loads[order[i]] = std::min(most, static_cast<uint64_t>(share));
    dealt += loads[order[i]];
  }
  // What rounding leaves over goes to the busier ones, one each, as long as they have room.
  while (dealt < slots) {
    const uint64_t before = dealt;
    for (uint32_t i = 0; i < count && dealt < slots; ++i) {
      uint64_t& load = loads[order[i]];
      if (load == most) continue;
      ++load;
      ++dealt;
    }
    CHECK_GT(dealt, before);
  }
  return loads;
}

// The tokens of each bin, given the bins' loads: slots go to tokens in turn.
template <typename Visit>
void Deal(const std::vector<uint64_t>& loads, uint64_t tokens, const Visit& visit) {
  uint64_t slot = 0;
  for (uint32_t bin = 0; bin < loads.size(); ++bin) {
    CHECK_LE(loads[bin], tokens);
    for (uint64_t i = 0; i < loads[bin]; ++i, ++slot) visit(bin, slot % tokens);
  }
}

}  // namespace

uint64_t ExpertRouting::Kept() const {
  return std::accumulate(loads.begin(), loads.end(), uint64_t{0});
}

bool ExpertRouting::IsEven() const {
  return std::all_of(loads.begin(), loads.end(), [&](uint64_t load) { return load == loads[0]; });
}

ExpertRouting MakeRouting(const std::vector<double>& attributes) {
  CHECK(attributes.size() == kRoutingAttributes || attributes.size() == kRoutingAttributes + 1);
  const size_t runs = attributes.size() > kRoutingBalancedOver
                          ? static_cast<size_t>(attributes[kRoutingBalancedOver])
                          : 1;
  const auto whole = [&](RoutingAttribute i) { return static_cast<uint32_t>(attributes[i]); };
  ExpertRouting routing;
  routing.experts = whole(kRoutingExperts);
  routing.per_token = whole(kRoutingPerToken);
  const uint32_t limited = whole(kRoutingLimitedGroups);
  const bool is_limited = limited < whole(kRoutingGroups);
  const uint32_t groups = is_limited ? whole(kRoutingGroups) : 1;
  const uint32_t of_token = is_limited ? limited : 1;  // groups
  const uint32_t of_group = routing.experts / groups;
  const uint32_t in_group = routing.per_token / of_token;  // choices of a token in each of its own
  CHECK(in_group * of_token == routing.per_token && in_group <= of_group);
  const double imbalance = attributes[kRoutingImbalance];
  const double capacity = attributes[kRoutingCapacity];

  const uint64_t least =
      std::lcm(uint64_t{groups} / std::gcd(groups, of_token),
               uint64_t{routing.experts} / std::gcd(routing.experts, routing.per_token));
  routing.period = least;
  if (imbalance > 1 || capacity > 0) {
    while (routing.period * routing.per_token < kFineShare * routing.experts) routing.period *= 2;
  }
  const auto seed = static_cast<uint64_t>(attributes[kRoutingSeed]);
  std::vector<std::vector<uint64_t>> tokens_of_group(groups);
  Deal(std::vector<uint64_t>(groups, routing.period * of_token / groups), routing.period,
       [&](uint32_t group, uint64_t token) { tokens_of_group[group].push_back(token); });
  std::vector<std::vector<int32_t>> of_tokens(routing.period);
  for (uint32_t group = 0; group < groups; ++group) {
    std::vector<uint64_t>& tokens = tokens_of_group[group];
    std::sort(tokens.begin(), tokens.end());
    std::vector<uint64_t> loads =
        DrawLoads(of_group, tokens.size() * in_group, imbalance, tokens.size(), seed + group);
    if (runs > groups) loads = Packed(loads, runs / groups);
    Deal(loads, tokens.size(), [&](uint32_t expert, uint64_t token) {
      of_tokens[tokens[token]].push_back(static_cast<int32_t>(group * of_group + expert));
    });
  }
  const double share = static_cast<double>(routing.period * routing.per_token) / routing.experts;
  uint64_t room = routing.period;
  if (capacity > 0) {
    const double limit = capacity * share;
    room = limit >= static_cast<double>(room) ? room : static_cast<uint64_t>(limit);
    if (static_cast<double>(room) < limit && room < routing.period) ++room;
  }
  routing.loads.assign(routing.experts, 0);
  for (const std::vector<int32_t>& of_one : of_tokens) {
    CHECK_EQ(of_one.size(), size_t{routing.per_token});
    for (const int32_t expert : of_one) {
      uint64_t& load = routing.loads[static_cast<size_t>(expert)];
      const bool is_taken = load < room;
      if (is_taken) ++load;
      routing.asked.push_back(expert);
      routing.choices.push_back(is_taken ? expert : ExpertRouting::kDropped);
    }
  }
  return routing;
}

uint64_t KeptRows(const ExpertRouting& routing, uint64_t tokens) {
  return tokens / routing.period * routing.Kept();
}

}  // namespace rehearse
