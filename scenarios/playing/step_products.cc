#include "scenarios/playing/step_products.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/schedule/done_ops.h"
#include "topology/devices/device.h"
#include "topology/files/device_points_file.h"

namespace rehearse {
namespace {

bool IsProduct(const Op& op) {
  const auto* compute = std::get_if<Compute>(&op.work);
  return compute != nullptr && compute->flops > Flops(0) &&
         (compute->kind == ComputeKind::kGemm || compute->kind == ComputeKind::kAttention);
}

// How often each op that a role keeps is done, by its place.
std::vector<uint64_t> CountsOf(const Role& role) {
  std::vector<uint64_t> counts(role.ops.size(), 0);
  for (const DoneOp& done : DoneOps(role)) ++counts[done.place];
  return counts;
}

std::vector<uint64_t> RanksOfRoles(const Schedule& schedule) {
  std::vector<uint64_t> ranks(schedule.roles.size(), 0);
  for (const uint32_t role : schedule.role_of_rank) ++ranks[role];
  return ranks;
}

bool IsBackward(const Op& op) { return op.tag.phase == Phase::kBackward; }

}  // namespace

std::vector<StepProduct> ProductsOf(const Schedule& schedule,
                                    const std::vector<uint32_t>& placement,
                                    const Cluster& cluster) {
  std::map<PointKey, StepProduct> products;
  const std::vector<uint64_t> ranks = RanksOfRoles(schedule);
  std::vector<bool> is_seen(schedule.roles.size(), false);
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const uint32_t number = schedule.role_of_rank[rank];
    if (is_seen[number]) continue;
    is_seen[number] = true;
    const Role& role = schedule.roles[number];
    const std::vector<uint64_t> counts = CountsOf(role);
    for (size_t place = 0; place < role.ops.size(); ++place) {
      const Op& op = role.ops[place];
      if (!IsProduct(op)) continue;
      const auto& compute = std::get<Compute>(op.work);
      const auto key = KeyOf(compute, IsBackward(op));
      if (!key) continue;
      StepProduct& product = products[*key];
      product.key = *key;
      product.count += counts[place] * ranks[number];
      product.time = ComputeTime(cluster.DeviceOf(placement[rank]), compute, IsBackward(op));
    }
  }
  std::vector<StepProduct> sorted;
  sorted.reserve(products.size());
  for (const auto& [key, product] : products) sorted.push_back(product);
  const auto all = [](const StepProduct& product) {
    return static_cast<double>(product.count) * product.time;
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const StepProduct& a, const StepProduct& b) { return all(a) > all(b); });
  return sorted;
}

std::string ToCsv(const std::vector<StepProduct>& products) {
  std::string text = PointColumns() + ",count\n";
  for (const StepProduct& product : products)
    text += fmt::format("{},{}\n", PointRow(product.key, product.time), product.count);
  return text;
}

std::vector<std::string> DevicePointNotes(const Schedule& schedule, const Cluster& cluster) {
  const std::shared_ptr<const DevicePoints>& points = cluster.DeviceOf(0).points;
  if (points == nullptr) return {};
  const std::vector<uint64_t> ranks = RanksOfRoles(schedule);
  std::set<PointKey> used;
  uint64_t products = 0;
  uint64_t matched = 0;
  for (size_t number = 0; number < schedule.roles.size(); ++number) {
    const Role& role = schedule.roles[number];
    const std::vector<uint64_t> counts = CountsOf(role);
    for (size_t place = 0; place < role.ops.size(); ++place) {
      const Op& op = role.ops[place];
      if (!IsProduct(op)) continue;
      const uint64_t times = counts[place] * ranks[number];
      products += times;
      const auto point = PointOf(*points, std::get<Compute>(op.work), IsBackward(op));
      if (!point) continue;
      matched += times;
      used.insert(*point);
    }
  }
  std::string note = fmt::format(
      "device points: {} of {} are those of {} of the step's {} products and attention cores",
      used.size(), points->times.size(), matched, products);
  constexpr size_t kMostNamed = 3;
  size_t without = 0;
  std::string names;
  for (const auto& [key, time] : points->times) {
    if (used.contains(key) || ++without > kMostNamed) continue;
    names += (names.empty() ? "" : "; ") + Describe(key);
  }
  if (without > 0) {
    note += fmt::format(
        ". No op of this step has {}{} (rehearse plan --products lists what it has)", names,
        without > kMostNamed ? fmt::format(" and {} more", without - kMostNamed) : "");
  }
  return {note};
}

}  // namespace rehearse
