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

// Names in the mesh.
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

// The axes of the mesh, and where each lies in it: in one piece, or cut where the ranks that share
// an expert end, or those over which experts are spread.
class CombinedMesh {
 public:
  CombinedMesh(const CombinedOptions& options, const Place& place) {
    std::vector<CombinedAxis> order = options.order;
    for (size_t i = 0; i < kCombinedAxes; ++i) {
      const auto axis = static_cast<CombinedAxis>(i);
      if (!Has(order, axis)) order.push_back(axis);
    }
    CHECK_EQ(order.size(), kCombinedAxes);
    const uint64_t of_tensor = options.expert_tensor;
    const uint64_t of_experts = of_tensor * options.expert;
    uint64_t stride = 1;
    for (const CombinedAxis axis : order) {
      const uint32_t size = SizeOf(options, axis);
      if (size == 1) {
        if (Has(options.kept_axes, axis)) Add(axis, {kMeshNames[static_cast<size_t>(axis)], 1});
        continue;
      }
      std::vector<uint64_t> ends;
      const uint64_t within = WithinOf(options, axis, stride, place);
      std::vector<uint64_t> cuts = {of_tensor, of_experts, within};
      std::sort(cuts.begin(), cuts.end());
      for (const uint64_t cut : cuts) {
        if (cut <= stride || cut >= stride * size) continue;
        if (cut % stride != 0 || stride * size % cut != 0 || axis == CombinedAxis::kContext) {
          throw Error(place, DoesNotFit(options, axis));
        }
        if (ends.empty() || ends.back() != cut) ends.push_back(cut);
      }
      ends.push_back(stride * size);
      const char* const name = kMeshNames[static_cast<size_t>(axis)];
      for (const uint64_t end : ends) {
        MeshAxis piece{name, static_cast<uint32_t>(end / stride)};
        if (ends.size() > 1) {
          piece.part_of = name;
          piece.name = NameOfPiece(name, end, of_tensor, of_experts);
          if (within > 0 && of_experts == 1) piece.name = NameWithin(name, end, within);
        }
        const uint32_t index = Add(axis, std::move(piece));
        if (end <= within) within_.insert(within_.begin(), index);
        if (end <= of_tensor) {
          tensor_of_experts_.insert(tensor_of_experts_.begin(), index);
        } else if (end <= of_experts) {
          experts_.insert(experts_.begin(), index);
        }
        stride = end;
      }
    }
    if (stride % of_experts != 0) {
      throw Error(place, fmt::format("\"expert\" {} x \"expert_tensor\" {}: expected a divisor "
                                     "of the {} ranks of tensor, context and data parallelism",
                                     options.expert, options.expert_tensor, stride));
    }
    if (axes_.empty()) {
      Add(CombinedAxis::kData, {kMeshNames[static_cast<size_t>(CombinedAxis::kData)], 1});
    }
  }

  const std::vector<MeshAxis>& axes() const { return axes_; }
  // From the innermost outwards.
  const std::vector<uint32_t>& PlacesOf(CombinedAxis axis) const {
    return places_[static_cast<size_t>(axis)];
  }
  // Outermost first.
  const std::vector<uint32_t>& experts() const { return experts_; }
  const std::vector<uint32_t>& tensor_of_experts() const { return tensor_of_experts_; }
  // Those of the shares from which the backward pass gathers; none if it gathers from all.
  const std::vector<uint32_t>& within() const { return within_; }

  // Rows over the data axes, outermost in the mesh outermost, then over context, then over tensor
  // where it takes part.
  Layout Rows(bool over_tensor) const {
    Layout layout(axes_.size(), B());
    uint8_t level = 0;
    for (size_t axis = axes_.size(); axis-- > 0;) {
      if (!Is(CombinedAxis::kTensor, axis) && !Is(CombinedAxis::kContext, axis))
        layout[axis] = S(0, level++);
    }
    for (const uint32_t place : PlacesOf(CombinedAxis::kContext)) layout[place] = S(0, level++);
    if (!over_tensor) return layout;
    const std::vector<uint32_t>& tensor = PlacesOf(CombinedAxis::kTensor);
    for (size_t i = tensor.size(); i-- > 0;) layout[tensor[i]] = S(0, level++);
    return layout;
  }
  // A split over tensor nests its pieces, outermost first.
  Layout With(Layout layout, Placement tensor) const {
    const std::vector<uint32_t>& places = PlacesOf(CombinedAxis::kTensor);
    for (size_t i = places.size(); i-- > 0; ++tensor.level) layout[places[i]] = tensor;
    return layout;
  }
  Layout Weight(Placement tensor) const { return With(Layout(axes_.size(), B()), tensor); }

  // For the experts' matrices, which have experts in k or n and the axis that ranks share in the
  // other one.
  ProductLayouts OfExperts(bool is_first) const {
    Layout x = Rows(/*over_tensor=*/true);
    Layout w(axes_.size(), B());
    Layout rest = x;
    uint8_t level = 0;
    for (const uint32_t axis : experts_) {
      x[axis] = is_first ? S(1, level) : B();
      w[axis] = S(is_first ? 0 : 1, level++);
    }
    level = 0;
    for (const uint32_t axis : tensor_of_experts_) {
      x[axis] = is_first ? B() : S(1, level);
      w[axis] = S(is_first ? 1 : 0, level);
      rest[axis] = is_first ? S(1, level) : B();
      ++level;
    }
    return {.x = x, .w = w, .rest = rest};
  }

 private:
  static bool Has(const std::vector<CombinedAxis>& axes, CombinedAxis axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }

  // Returns its place in the mesh.
  uint32_t Add(CombinedAxis axis, MeshAxis piece) {
    const auto index = static_cast<uint32_t>(axes_.size());
    places_[static_cast<size_t>(axis)].push_back(index);
    axes_.push_back(std::move(piece));
    return index;
  }

  bool Is(CombinedAxis axis, size_t place) const {
    const std::vector<uint32_t>& places = PlacesOf(axis);
    return std::find(places.begin(), places.end(), place) != places.end();
  }

  static std::string DoesNotFit(const CombinedOptions& options, CombinedAxis axis) {
    return fmt::format("\"expert\" {} x \"expert_tensor\" {} ends within \"{}\" {}, {}",
                       options.expert, options.expert_tensor, NameIn(kCombinedAxisNames, axis),
                       SizeOf(options, axis),
                       axis == CombinedAxis::kContext ? "which cannot be cut"
                                                      : "which it does not cut into equal parts");
  }

  // Where the ranks within which the backward pass gathers end; 0 if it gathers over all.
  static uint64_t WithinOf(const CombinedOptions& options, CombinedAxis axis, uint64_t stride,
                           const Place& place) {
    const uint64_t ranks = options.zero.backward_within;
    if (axis != CombinedAxis::kShard || options.zero.stage != 3 || ranks == 0 ||
        ranks == options.zero.shard)
      return 0;
    if (options.zero.shard % ranks != 0 || options.context > 1 || options.expert > 1) {
      throw Error(place, fmt::format("\"backward_within\" {}: expected a divisor of \"shard\" {}, "
                                     "and neither \"context\" nor \"expert\"",
                                     ranks, options.zero.shard));
    }
    return stride * ranks;
  }

  static std::string NameWithin(const std::string& name, uint64_t end, uint64_t within) {
    return end <= within ? name + " within" : name + " across";
  }

  static std::string NameOfPiece(const std::string& name, uint64_t end, uint64_t of_tensor,
                                 uint64_t of_experts) {
    if (end <= of_tensor) return name + " in expert";
    return end <= of_experts ? name + " over experts" : "expert data";
  }

  std::vector<MeshAxis> axes_;
  std::array<std::vector<uint32_t>, kCombinedAxes> places_;
  std::vector<uint32_t> experts_;
  std::vector<uint32_t> tensor_of_experts_;
  std::vector<uint32_t> within_;
};

std::string NameOf(const CombinedOptions& options) {
  std::string name;
  for (size_t i = 0; i < kCombinedAxes; ++i) {
    const auto axis = static_cast<CombinedAxis>(i);
    if (SizeOf(options, axis) == 1) continue;
    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", NameIn(kCombinedAxisNames, axis),
                        SizeOf(options, axis));
    if (axis == CombinedAxis::kContext) {
      name += fmt::format(" ({})", NameIn(kContextKindNames, options.context_kind));
    }
    if (axis == CombinedAxis::kTensor && options.sequence_parallel)
      name += " with sequence parallelism";
  }
  if (options.expert > 1) name += fmt::format(", expert {}", options.expert);
  if (options.expert_tensor > 1) name += fmt::format(", expert tensor {}", options.expert_tensor);
  if (name.empty()) name = "one rank";
  const bool shares = options.zero.stage > 0 && options.zero.shard * options.context > 1;
  return fmt::format("combined, {}{}", name,
                     shares ? fmt::format(", ZeRO-{}", options.zero.stage) : "");
}

// Megatron-Core's: at least a million per rank of data.
uint64_t BucketElements(const CombinedOptions& options) {
  if (options.bucket_elements == 0 || options.zero.stage > 1) return 0;
  const uint64_t ranks =
      uint64_t{options.context} * options.zero.shard * options.zero.replicas * options.data;
  return std::max(options.bucket_elements, 1'000'000 * ranks);
}

// The axes along which ZeRO's shares lie.
std::vector<uint32_t> AxesOfShares(const CombinedOptions& options, const CombinedMesh& mesh) {
  if (options.shares_over_data)
    return options.data > 1 ? mesh.PlacesOf(CombinedAxis::kData) : std::vector<uint32_t>{};
  std::vector<uint32_t> axes = mesh.PlacesOf(CombinedAxis::kShard);
  const std::vector<uint32_t>& context = mesh.PlacesOf(CombinedAxis::kContext);
  axes.insert(axes.end(), context.begin(), context.end());
  return axes;
}

std::optional<ShardPolicy> SharesOf(const CombinedOptions& options, const CombinedMesh& mesh) {
  std::vector<uint32_t> axes = AxesOfShares(options, mesh);
  const ZeroOptions& zero = options.zero;
  if (zero.stage == 0 || axes.empty()) return std::nullopt;
  return ShardPolicy{.axes = std::move(axes),
                     .stage = zero.stage,
                     .by_layer = zero.by_layer,
                     .prefetch = zero.prefetch,
                     .backward_axes = mesh.within(),
                     .gathers_behind_backward = zero.gathers_behind_backward,
                     .within_layer = zero.stage == 3 && zero.within_layer,
                     .reshard_after_forward = zero.reshard_after_forward,
                     .reshards_recomputed = zero.reshard_after_forward,
                     .until_last_micro_batch = zero.stage == 3 && zero.until_last_micro_batch,
                     .copies = zero.copies,
                     .reduces_in_fp32 = zero.reduces_in_fp32,
                     .prefetch_elements = zero.prefetch_elements,
                     .most_gathered = zero.most_gathered,
                     .reduce_elements = zero.reduce_elements};
}

}  // namespace

Strategy MakeCombined(const CombinedOptions& options, const Network& network, const Place& place) {
  const CombinedMesh mesh(options, place);
  if (options.split_products != SplitProducts::kNone && !options.sequence_parallel) {
    throw Error(place,
                "\"split_products\" needs \"sequence_parallel\": true, or nothing is gathered or "
                "reduce-scattered around products");
  }
  if (options.expert_pieces > 1 && (options.expert == 1 || options.expert_tensor > 1)) {
    throw Error(
        place,
        "\"expert_pieces\" needs experts that are spread and not shared: expected \"expert\" "
        "of 2 or more and \"expert_tensor\" 1");
  }
  Strategy strategy{.name = options.name != nullptr ? options.name(options) : NameOf(options),
                    .mesh = DeviceMesh(mesh.axes()),
                    .asynchronous_input_gradient = options.overlap_all_reduce,
                    .asynchronous_weight_gradient = options.zero.overlap_reduce_scatter,
                    .asynchronous_data_gradient = options.zero.overlap_all_reduce,
                    .bucket_elements = BucketElements(options),
                    .split_products = options.split_products,
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

  if (!mesh.experts().empty() || !mesh.tensor_of_experts().empty()) {
    strategy.experts = ExpertPolicy{mesh.experts(), mesh.tensor_of_experts(), false};
    for (size_t i = 0; i < network.matrices.size(); ++i) {
      const MatrixRole role = network.matrices[i].role;
      if (IsOfExperts(role))
        strategy.products[i] = mesh.OfExperts(role == MatrixRole::kExpertFirst);
    }
    strategy.experts->overlaps_shared = options.overlap_shared_expert;
    strategy.experts->narrow_dispatch = options.narrow_dispatch;
    strategy.experts->pieces = options.expert_pieces;
    strategy.experts->tiles = options.expert_tiles;
  }
  const std::vector<uint32_t>& context = mesh.PlacesOf(CombinedAxis::kContext);
  if (!context.empty()) {
    const bool has_whole_sequences = options.context_kind == ContextKind::kUlysses;
    strategy.context = ContextPolicy{context.front(), options.context_kind,
                                     options.balances_context && !has_whole_sequences};
  }
  strategy.shard = SharesOf(options, mesh);
  strategy.gathers_beside_forward = options.overlap_parameter_gathers && options.zero.stage == 1 &&
                                    (strategy.shard || options.shares_over_data);
  return strategy;
}

}  // namespace rehearse
