#include "scenarios/trials/learning_plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "sim/base/units.h"

namespace rehearse {
namespace {

constexpr double kLeastStep = 0.01;  // of the largest one
constexpr double kLargestProduct = 0.1;
constexpr ProductRange kCpuProducts{.smallest_side = 16, .largest_side = 2048, .most = {}};
constexpr ProductRange kGpuProducts{.smallest_side = 64, .largest_side = 8192, .most = {}};
constexpr double kShareOfRoom = 0.8;
constexpr double kProductsAtOnce = 4e9;  // bytes
constexpr size_t kEncounterShapes = 6;

bool IsForGpus(const LearningPlan& plan) { return plan.device == StepDevice::kGpu; }

DType TypeOf(const LearningPlan& plan) { return IsForGpus(plan) ? DType::kBf16 : DType::kFp32; }

ProductRange RangeOf(const LearningPlan& plan) {
  ProductRange range = IsForGpus(plan) ? kGpuProducts : kCpuProducts;
  range.most = kLargestProduct * plan.largest;
  return range;
}

// What the buffers of a role take, at most; backends keep all of them at once.
Bytes RoomOf(const Schedule& schedule) {
  Bytes most;
  for (const Role& role : schedule.roles) {
    Bytes own;
    for (const Buffer& buffer : role.buffers) own += buffer.bytes;
    most = std::max(most, own);
  }
  return most;
}

// Distinct products of a schedule, as each rank does them.
void AddProducts(const Schedule& schedule, std::vector<Gemm>* products) {
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || compute->kind != ComputeKind::kGemm) continue;
      Gemm gemm = compute->gemm;
      gemm.m *= gemm.batch;
      gemm.batch = 1;
      const auto is_same = [&](const Gemm& other) {
        return other.m == gemm.m && other.n == gemm.n && other.k == gemm.k &&
               other.mode == gemm.mode;
      };
      if (std::none_of(products->begin(), products->end(), is_same)) products->push_back(gemm);
    }
  }
}

// The products in as many schedules as are needed to have room for each.
std::vector<NamedSchedule> ProductSchedules(const LearningPlan& plan, uint32_t ranks,
                                            const std::vector<Gemm>& products) {
  std::vector<NamedSchedule> schedules;
  const auto bytes_of = [&](const Gemm& gemm) { return 2 * BytesOf(gemm, TypeOf(plan)); };
  for (size_t first = 0; first < products.size();) {
    size_t last = first;
    for (Bytes bytes; last < products.size() &&
                      (last == first || bytes + bytes_of(products[last]) < Bytes(kProductsAtOnce));
         ++last) {
      bytes += bytes_of(products[last]);
    }
    const std::vector<Gemm> own(products.begin() + static_cast<ptrdiff_t>(first),
                                products.begin() + static_cast<ptrdiff_t>(last));
    schedules.push_back({schedules.empty() ? "products" : "more products",
                         MakeProductProbe(ranks, own, plan.seed, TypeOf(plan))});
    first = last;
  }
  return schedules;
}

// Leaves out what there is no room for.
void Fit(const LearningPlan& plan, std::vector<NamedSchedule>* schedules,
         std::vector<std::string>* left_out) {
  if (plan.room == Bytes(0)) return;
  std::erase_if(*schedules, [&](const NamedSchedule& own) {
    const Bytes needed = RoomOf(own.schedule);
    if (needed <= kShareOfRoom * plan.room) return false;
    left_out->push_back(fmt::format("{} needs {}", own.name, Print(needed)));
    return true;
  });
}

}  // namespace

LearningPlan CpuLearningPlan() { return {}; }

LearningPlan GpuLearningPlan() {
  LearningPlan plan;
  plan.device = StepDevice::kGpu;
  plan.largest = Flops(2e13);
  plan.largest_message = Bytes(64 << 20);
  plan.networks = 8;
  return plan;
}

WorldPlan PlanLearning(const LearningPlan& plan, uint32_t ranks,
                       const std::vector<NamedSchedule>& wanted,
                       std::vector<std::string>* left_out) {
  WorldPlan world;
  const auto kinds = IsForGpus(plan) ? std::span<const CollectiveKind>(kAllCollectives)
                                     : std::span<const CollectiveKind>(kRingCollectives);
  for (uint32_t group = 2; group <= ranks; ++group) {
    if (ranks % group != 0) continue;
    world.ladder.push_back({fmt::format("collectives of {}", group),
                            MakeCollectiveProbe(ranks, group, ProbeStepSizes(plan.largest_message),
                                                plan.seed, kinds)});
  }

  std::vector<Gemm> products = ProbeProducts(plan.product_shapes, RangeOf(plan));
  for (const NamedSchedule& own : wanted) AddProducts(own.schedule, &products);
  world.steps = ProductSchedules(plan, ranks, products);
  for (const NamedSchedule& own : wanted) {
    if (own.schedule.ranks() == ranks) world.steps.push_back(own);
  }
  for (uint32_t network = 0; network < plan.networks; ++network) {
    std::vector<RandomStep> drawn = DrawSteps(plan.seed, network, ranks, StepUse::kLearning,
                                              kLeastStep * plan.largest, plan.largest, plan.device);
    if (ranks == 1) drawn.resize(1);  // on one rank all strategies are the same
    for (RandomStep& step : drawn)
      world.steps.push_back({std::move(step.name), std::move(step.schedule)});
  }
  Fit(plan, &world.ladder, left_out);
  Fit(plan, &world.steps, left_out);
  return world;
}

std::vector<Encounter> PlanEncounters(const LearningPlan& plan) {
  std::vector<Encounter> encounters;
  ProductRange range = RangeOf(plan);
  // Products are to fill a device: no side is shorter than an eighth of the longest, or than half
  // the side of the largest cube that is allowed, if that is less.
  const double cube = std::cbrt(range.most.value() / 2);
  range.smallest_side =
      std::min(range.largest_side / 8, static_cast<uint64_t>(std::max(1.0, cube / 2)));
  for (const double share : {1.0, 0.25}) {
    const Bytes bytes = share * plan.largest_message;
    for (const Gemm& gemm : ProbeProducts(kEncounterShapes, range))
      encounters.push_back({gemm, 0, bytes});
    const auto elements =
        static_cast<uint64_t>(plan.largest_message.value() / SizeOf(TypeOf(plan)).value());
    encounters.push_back({{}, elements, bytes});
  }
  return encounters;
}

}  // namespace rehearse
