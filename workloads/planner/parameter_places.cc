#include "workloads/planner/parameter_places.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "workloads/planner/casts.h"

namespace rehearse {

std::vector<uint32_t> PureDataAxes(const Strategy& strategy, const Network* dense_of) {
  std::vector<ProductLayouts> products;
  for (size_t i = 0; i < strategy.products.size(); ++i) {
    const bool is_left_out = dense_of != nullptr && IsOfExperts(dense_of->matrices[i].role);
    if (!is_left_out) products.push_back(strategy.products[i]);
  }
  std::vector<uint32_t> axes;
  for (uint32_t axis = 0; axis < strategy.mesh.axes().size(); ++axis) {
    // Vectors lie as the columns of the values that they belong to.
    const bool splits =
        std::any_of(products.begin(), products.end(), [&](const ProductLayouts& product) {
          return IsSplit(product.w[axis]) || IsSplit(product.rest[axis], 1);
        });
    if (!splits && !(strategy.shard && strategy.shard->IsAlong(axis))) axes.push_back(axis);
  }
  return axes;
}

namespace {

// SUMMA leaves Y and dX laid out like X and dW like W, except for the axes that also split the
// batch.
std::optional<MatmulResult> MultiplyLayouts(const ProductLayouts& layouts) {
  if (!layouts.summa) return PlaceMatmul(layouts.x, layouts.w);
  MatmulResult result{layouts.x, layouts.x, layouts.w};
  for (uint32_t axis = 0; axis < layouts.x.size(); ++axis) {
    if (axis == layouts.summa->row_axis || axis == layouts.summa->column_axis) continue;
    const auto placements = PlaceMatmul(layouts.x[axis], layouts.w[axis]);
    if (!placements) return std::nullopt;
    result.dw[axis] = placements->dw;
  }
  return result;
}

// Whichever copy of the model they belong to, so that both copies lay out parameters alike.
std::vector<const Stage*> InOrderOfNodes(std::vector<const Stage*> stages) {
  std::sort(stages.begin(), stages.end(),
            [](const Stage* a, const Stage* b) { return a->node_begin() < b->node_begin(); });
  return stages;
}

}  // namespace

ParameterPlaces::ParameterPlaces(const Network& network, const Strategy& strategy,
                                 const Training& training, std::vector<const Stage*> stages,
                                 const PlanBuilder& plan)
    : network_(network),
      strategy_(strategy),
      training_(training),
      stages_(InOrderOfNodes(std::move(stages))),
      matrices_(network.matrices.size()) {
  for (uint32_t i = 0; i < count(); ++i) PlaceMatrix(i, plan);
  if (strategy.shard && strategy.shard->by_layer) GroupByLayer();
  for (const Stage* stage : stages_) CountUses(*stage);
  if (strategy.bucket_elements == 0 && !strategy.gathers_beside_forward) return;
  for (uint32_t stage = 0; stage < stages_.size(); ++stage) MakeBuckets(stage);
}

void ParameterPlaces::PlaceMatrix(uint32_t index, const PlanBuilder& plan) {
  const NetworkMatrix& shape = ShapeOf(index);
  const ProductLayouts& layouts = strategy_.products[index];
  MatrixPlace& matrix = matrices_[index];
  const auto products = MultiplyLayouts(layouts);
  if (!products) {
    throw Error(plan.place(),
                fmt::format("\"{}\" of {}: X {} and W {} do not multiply locally", shape.name,
                            network_.name, ToString(layouts.x), ToString(layouts.w)));
  }
  if (layouts.summa && IsNarrow(index)) {
    throw Error(plan.place(),
                fmt::format("\"{}\" of {} is multiplied by SUMMA, whose panels are not cast: "
                            "expected \"products\" to be \"plain\", or another strategy",
                            shape.name, network_.name));
  }
  matrix.products = *products;
  matrix.owner = shape.tied && HasMatrix(*shape.tied) ? *shape.tied : index;
  matrix.group_begin = index;
  matrix.group_end = index + 1;
  const uint64_t k = shape.k / Pieces(layouts.w, plan.sizes(), 0);
  const uint64_t n = shape.n / Pieces(layouts.w, plan.sizes(), 1);
  matrix.rows = shape.IsTable() ? k : n;
  matrix.columns = shape.IsTable() ? n : k;
  for (const uint32_t axis : PartialAxes(matrix.products.dw)) {
    const bool shares = strategy_.shard && strategy_.shard->IsAlong(axis);
    (shares ? matrix.share_axes : matrix.sum_axes).push_back(axis);
  }
  // What is not updated has neither gradient nor state to share.
  if (shape.is_frozen && strategy_.shard && strategy_.shard->stage < 3) matrix.share_axes.clear();
  if (shape.tied) CheckTie(index, plan.place());
  if (!matrix.share_axes.empty()) matrix.zero_stage = strategy_.shard->stage;
  const uint64_t ranks = plan.SizeOfAxes(matrix.share_axes);
  const uint64_t share = (matrix.rows * matrix.columns + ranks - 1) / ranks;
  matrix.share_elements = static_cast<double>(share);
  matrix.elements = static_cast<double>(share * ranks);
}

// A tied matrix must lie, and have its gradient summed, like the one before it that it is tied to.
void ParameterPlaces::CheckTie(uint32_t index, const Place& place) const {
  const NetworkMatrix& shape = ShapeOf(index);
  const NetworkMatrix& tied = ShapeOf(*shape.tied);
  const ProductLayouts& layouts = strategy_.products[index];
  const ProductLayouts& of_tied = strategy_.products[*shape.tied];
  const Layout expected = shape.IsTable() == tied.IsTable() ? of_tied.w : Transposed(of_tied.w);
  if (expected != layouts.w) {
    throw Error(
        place,
        fmt::format("\"{}\" of {} is tied to \"{}\" and must have its layout: found {}, expected "
                    "{}",
                    shape.name, network_.name, tied.name, ToString(layouts.w), ToString(expected)));
  }
  const MatrixPlace& matrix = matrices_[index];
  const MatrixPlace& owner = matrices_[*shape.tied];
  if (matrix.sum_axes != owner.sum_axes || matrix.share_axes != owner.share_axes) {
    throw Error(place,
                fmt::format("\"{}\" of {} is tied to \"{}\": the gradients of both must be summed "
                            "along the same axes, so rows of their operands must be split along "
                            "the same; found {} and {}",
                            shape.name, network_.name, tied.name, ToString(layouts.x),
                            ToString(of_tied.x)));
  }
}

void ParameterPlaces::GroupByLayer() {
  for (uint32_t begin = 0, end = 0; begin < count(); begin = end) {
    const int32_t layer = ShapeOf(begin).layer;
    end = begin + 1;
    // Those of experts may be shared by other ranks than the rest, and then go separately.
    const auto goes_along = [&](uint32_t i) {
      return ShapeOf(i).layer == layer && matrices_[i].share_axes == matrices_[begin].share_axes;
    };
    while (layer >= 0 && end < count() && goes_along(end)) ++end;
    for (uint32_t i = begin; i < end; ++i) {
      matrices_[i].group_begin = begin;
      matrices_[i].group_end = end;
    }
  }
}

void ParameterPlaces::CountUses(const Stage& stage) {
  for (uint32_t i = stage.node_begin(); i < stage.node_end(); ++i) {
    const NetworkNode& node = network_.nodes[i];
    if (!node.matrix) continue;
    MatrixPlace& owner = matrices_[matrices_[*node.matrix].owner];
    owner.uses += strategy_.chunks;
    owner.is_looked_up = owner.is_looked_up || node.kind == NodeKind::kEmbedding;
    matrices_[*node.matrix].is_read_backward =
        (node.kind == NodeKind::kProduct || node.kind == NodeKind::kGroupedProduct) &&
        network_.nodes[node.inputs.front()].kind != NodeKind::kInput;
  }
  for (const SharedMatrix& shared : stage.shared) {
    if (shared.first_rank != shared.other_rank) matrices_[shared.matrix].shared = &shared;
  }
}

void ParameterPlaces::MakeBuckets(uint32_t stage) {
  const auto least = static_cast<double>(strategy_.bucket_elements);
  const bool is_whole = !strategy_.asynchronous_data_gradient && least > 0;
  const auto first_bucket = static_cast<uint32_t>(buckets_.size());
  struct Open {
    std::optional<uint32_t> bucket;
    double elements = 0;
  };
  std::map<std::tuple<std::vector<uint32_t>, std::vector<uint32_t>, DType>, Open> open;
  for (uint32_t index = stages_[stage]->matrix_end(); index-- > stages_[stage]->first_matrix();) {
    MatrixPlace& matrix = matrices_[index];
    if (!IsTrained(index) || matrix.Shares(2)) continue;
    if (matrix.sum_axes.empty() && !matrix.Shares(1)) continue;
    Open& last = open[{matrix.sum_axes, matrix.share_axes, KeptType(index)}];
    if (!last.bucket || (!is_whole && last.elements >= least)) {
      last = {static_cast<uint32_t>(buckets_.size()), 0};
      buckets_.emplace_back().stage = stage;
      if (*last.bucket > first_bucket) buckets_.back().next = *last.bucket - 1;
    }
    matrix.bucket = last.bucket;
    last.elements += matrix.elements;
    buckets_[*last.bucket].matrices.push_back(index);
  }
}

bool ParameterPlaces::HasMatrix(uint32_t matrix) const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [&](const Stage* stage) { return stage->HasMatrix(matrix); });
}

std::vector<uint32_t> ParameterPlaces::Owners() const {
  std::vector<uint32_t> owners;
  for (uint32_t index = 0; index < count(); ++index)
    if (IsOwner(index)) owners.push_back(index);
  return owners;
}

std::vector<uint32_t> ParameterPlaces::TrainedOwners() const {
  std::vector<uint32_t> owners;
  for (uint32_t index = 0; index < count(); ++index)
    if (IsTrained(index)) owners.push_back(index);
  return owners;
}

const NetworkMatrix& ParameterPlaces::ArrayOf(uint32_t matrix) const {
  return ShapeOf(ShapeOf(matrix).tied.value_or(matrix));
}

uint32_t ParameterPlaces::LayersLike(int32_t layer) const {
  const LeftOutLayers& left_out = network_.left_out;
  return left_out.count > 0 && layer == left_out.like ? 1 + left_out.count : 1;
}

bool ParameterPlaces::IsNarrow(uint32_t matrix) const {
  return rehearse::IsNarrow(training_, network_, matrix);
}

bool ParameterPlaces::KeepsMasters() const {
  const auto& shard = strategy_.shard;
  return shard && shard->stage == 3 && training_.masters == MasterWeights::kFp32 &&
         (shard->copies == ShardCopies::kFlat || shard->copies == ShardCopies::kPerParameter);
}

bool ParameterPlaces::SumsOnHost(uint32_t matrix) const {
  const MatrixPlace& place = matrices_[matrix];
  return training_.optimizer_on_host && place.Shares(2) && place.sum_axes.empty() &&
         place.shared == nullptr && !stages_.front()->mirror;
}

// ZeRO-3 keeps shares in the training's precision, unless they are what is updated.
DType ParameterPlaces::KeptType(uint32_t matrix) const {
  if (KeepsMasters() && !ShapeOf(matrix).is_frozen) return DType::kFp32;
  return matrices_[matrix].Shares(3) ? training_.precision : GatheredType(matrix);
}

DType ParameterPlaces::GatheredType(uint32_t matrix) const {
  return KeepsOnlyNarrow(training_) && IsNarrow(matrix) ? TypeOf(training_.products)
                                                        : training_.precision;
}

}  // namespace rehearse
