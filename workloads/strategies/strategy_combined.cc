#include "workloads/strategies/strategy_combined.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Of the mesh; ZeRO's strategies call theirs so, too.
constexpr std::array<const char*, kCombinedAxes> kMeshNames = {"tensor", "context", "shard",
                                                               "replica", "data"};

uint32_t SizeOf(const CombinedOptions& options, CombinedAxis axis) {
  switch (axis) {
    case CombinedAxis::kTensor:
      return options.tensor;
    case CombinedAxis::kContext:
      return options.context;
    case CombinedAxis::kShard:
      return options.zero.shard;
    case CombinedAxis::kReplicas:
      return options.zero.replicas;
    case CombinedAxis::kData:
      return options.data;
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown axis");
}

// The axes of the mesh, and where each lies in it.
class CombinedMesh {
 public:
  explicit CombinedMesh(const CombinedOptions& options) {
    std::vector<CombinedAxis> order = options.order;
    for (size_t i = 0; i < kCombinedAxes; ++i) {
      const auto axis = static_cast<CombinedAxis>(i);
      if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
    }
    CHECK_EQ(order.size(), kCombinedAxes);
    for (const CombinedAxis axis : order) {
      if (SizeOf(options, axis) == 1) continue;
      places_[static_cast<size_t>(axis)] = static_cast<uint32_t>(axes_.size());
      axes_.push_back({kMeshNames[static_cast<size_t>(axis)], SizeOf(options, axis)});
    }
    if (axes_.empty()) {
      places_[static_cast<size_t>(CombinedAxis::kData)] = 0;
      axes_.push_back({kMeshNames[static_cast<size_t>(CombinedAxis::kData)], 1});
    }
  }

  const std::vector<MeshAxis>& axes() const { return axes_; }
  std::optional<uint32_t> PlaceOf(CombinedAxis axis) const {
    return places_[static_cast<size_t>(axis)];
  }

  // Rows over the data axes, outermost in the mesh outermost, then over context, then over tensor
  // where it takes part.
  Layout Rows(bool over_tensor) const {
    Layout layout(axes_.size(), B());
    uint8_t level = 0;
    for (size_t axis = axes_.size(); axis-- > 0;) {
      if (!Is(CombinedAxis::kTensor, axis) && !Is(CombinedAxis::kContext, axis))
        layout[axis] = S(0, level++);
    }
    if (const auto context = PlaceOf(CombinedAxis::kContext)) layout[*context] = S(0, level++);
    const auto tensor = PlaceOf(CombinedAxis::kTensor);
    if (tensor && over_tensor) layout[*tensor] = S(0, level);
    return layout;
  }
  Layout With(Layout layout, Placement tensor) const {
    if (const auto axis = PlaceOf(CombinedAxis::kTensor)) layout[*axis] = tensor;
    return layout;
  }
  Layout Weight(Placement tensor) const { return With(Layout(axes_.size(), B()), tensor); }

 private:
  bool Is(CombinedAxis axis, size_t place) const { return PlaceOf(axis) == place; }

  std::vector<MeshAxis> axes_;
  std::array<std::optional<uint32_t>, kCombinedAxes> places_;
};

std::string NameOf(const CombinedOptions& options) {
  std::string name;
  for (size_t i = 0; i < kCombinedAxes; ++i) {
    const auto axis = static_cast<CombinedAxis>(i);
    if (SizeOf(options, axis) == 1) continue;
    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", Name(axis), SizeOf(options, axis));
    if (axis == CombinedAxis::kContext) {
      constexpr const char* kKinds[] = {"ring", "all-gather", "ulysses"};
      name += fmt::format(" ({})", kKinds[static_cast<size_t>(options.context_kind)]);
    }
    if (axis == CombinedAxis::kTensor && options.sequence_parallel)
      name += " with sequence parallelism";
  }
  if (name.empty()) name = "one rank";
  const bool shares = options.zero.stage > 0 && options.zero.shard * options.context > 1;
  return fmt::format("combined, {}{}", name,
                     shares ? fmt::format(", ZeRO-{}", options.zero.stage) : "");
}

}  // namespace

const char* Name(CombinedAxis axis) {
  constexpr std::array<const char*, kCombinedAxes> kNames = {"tensor", "context", "shard",
                                                             "replicas", "data"};
  return kNames[static_cast<size_t>(axis)];
}

Strategy MakeCombined(const CombinedOptions& options, const Network& network) {
  const CombinedMesh mesh(options);
  Strategy strategy{.name = NameOf(options),
                    .mesh = DeviceMesh(mesh.axes()),
                    .asynchronous_input_gradient = options.overlap_all_reduce,
                    .asynchronous_weight_gradient = options.zero.overlap_reduce_scatter,
                    .asynchronous_data_gradient = options.zero.overlap_all_reduce,
                    .gathers_inputs_again = options.sequence_parallel && !options.keeps_gathered};
  const Layout whole = mesh.Rows(false);
  const Layout columns = mesh.With(whole, S(1));
  const Layout hidden = mesh.Rows(options.sequence_parallel);
  RoleLayouts layouts;
  layouts.first = {.x = whole, .w = mesh.Weight(S(1)), .rest = columns};
  layouts.second = {.x = columns, .w = mesh.Weight(S(0)), .rest = hidden};
  layouts.qkv = layouts.first;
  layouts.table = layouts.second;
  layouts.head = layouts.first;
  strategy.products = LayoutsByRole(network, layouts);

  if (const auto place = mesh.PlaceOf(CombinedAxis::kContext)) {
    const bool has_whole_sequences = options.context_kind == ContextKind::kUlysses;
    strategy.context = ContextPolicy{*place, options.context_kind,
                                     options.balances_context && !has_whole_sequences};
  }
  std::vector<uint32_t> shares;
  for (const CombinedAxis axis : {CombinedAxis::kShard, CombinedAxis::kContext}) {
    if (const auto place = mesh.PlaceOf(axis)) shares.push_back(*place);
  }
  if (!shares.empty()) strategy.shard = SharesOf(options.zero, std::move(shares));
  if (options.bucket_elements > 0) {
    const uint64_t ranks =
        uint64_t{options.context} * options.zero.shard * options.zero.replicas * options.data;
    strategy.bucket_elements = std::max(options.bucket_elements, 1'000'000 * ranks);
  }
  strategy.gathers_beside_forward =
      options.overlap_parameter_gathers && strategy.shard && options.zero.stage == 1;
  return strategy;
}

}  // namespace rehearse
