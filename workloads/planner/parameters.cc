#include "workloads/planner/parameters.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "workloads/planner/casts.h"

namespace rehearse {

using Issue = PlanBuilder::Issue;

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

constexpr double kMaster = 4;  // bytes of a share in fp32

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

Parameters::Parameters(const Network& network, const Strategy& strategy, const Training& training,
                       const std::vector<Layout>& rests, std::vector<const Stage*> stages,
                       PlanBuilder* plan)
    : network_(network),
      strategy_(strategy),
      training_(training),
      stages_(InOrderOfNodes(std::move(stages))),
      stage_(stages_.front()),
      plan_(*plan),
      pure_data_(PureDataAxes(strategy)),
      data_of_dense_(PureDataAxes(strategy, &network)) {
  matrices_.resize(network.matrices.size());
  for (uint32_t i = 0; i < matrices_.size(); ++i) PlaceMatrix(i);
  if (strategy.shard && strategy.shard->by_layer) GroupByLayer();
  for (const Stage* stage : stages_) {
    for (uint32_t i = stage->node_begin(); i < stage->node_end(); ++i) {
      const NetworkNode& node = network.nodes[i];
      if (!node.matrix) continue;
      Matrix& owner = matrices_[matrices_[*node.matrix].owner];
      owner.uses += strategy.chunks;
      owner.is_looked_up = owner.is_looked_up || node.kind == NodeKind::kEmbedding;
      matrices_[*node.matrix].is_read_backward =
          (node.kind == NodeKind::kProduct || node.kind == NodeKind::kGroupedProduct) &&
          network.nodes[node.inputs.front()].kind != NodeKind::kInput;
    }
    for (const SharedMatrix& shared : stage->shared) {
      if (shared.first_rank != shared.other_rank) matrices_[shared.matrix].shared = &shared;
    }
  }
  for (uint32_t i = 0; i < matrices_.size(); ++i) {
    if (!HasMatrix(i)) continue;
    matrices_[i].uses_left = matrices_[i].uses;
    const size_t first = plan_.role().buffers.size();
    const double elements = update_elements_;
    AddMatrixBuffers(i);
    if (LayersLike(network.matrices[i].layer) > 1) AddLeftOut(first, update_elements_ - elements);
  }
  MakeBuckets();
  AddVectors(rests);
  const bool has_masters = training.precision != DType::kFp32 || ZeroStage() % 3 != 0;
  if (training.moments == DType::kFp32) {
    AddState("Adam: master weights and moments", has_masters ? 3 : 2, DType::kFp32);
  } else {
    if (has_masters) AddState("Adam: master weights", 1, DType::kFp32);
    AddState("Adam: moments", 2, training.moments);
  }
}

void Parameters::AddState(const char* name, uint64_t rows, DType dtype) {
  const auto elements = static_cast<uint64_t>(update_elements_);
  optimizer_state_.push_back(
      plan_.AddBuffer({.name = name,
                       .kind = BufferKind::kOptimizer,
                       .bytes = static_cast<double>(rows * elements) * SizeOf(dtype),
                       .dtype = dtype,
                       .rows = rows,
                       .columns = elements}));
}

bool Parameters::HasMatrix(uint32_t matrix) const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [&](const Stage* stage) { return stage->HasMatrix(matrix); });
}

// ---- where matrices lie -------------------------------------------------------------------------

void Parameters::PlaceMatrix(uint32_t index) {
  const NetworkMatrix& shape = network_.matrices[index];
  const ProductLayouts& layouts = strategy_.products[index];
  Matrix& matrix = matrices_[index];
  const auto places = MultiplyLayouts(layouts);
  if (!places) {
    throw Error(plan_.place(),
                fmt::format("\"{}\" of {}: X {} and W {} do not multiply locally", shape.name,
                            network_.name, ToString(layouts.x), ToString(layouts.w)));
  }
  if (layouts.summa && IsNarrow(training_, network_, index)) {
    throw Error(plan_.place(),
                fmt::format("\"{}\" of {} is multiplied by SUMMA, whose panels are not cast: "
                            "expected \"products\" to be \"plain\", or another strategy",
                            shape.name, network_.name));
  }
  if (shape.tied) {
    const Layout& owner = strategy_.products[*shape.tied].w;
    const bool is_same = shape.IsTable() == network_.matrices[*shape.tied].IsTable();
    const Layout table = is_same ? owner : Transposed(owner);
    if (table != layouts.w) {
      throw Error(
          plan_.place(),
          fmt::format(
              "\"{}\" of {} is tied to \"{}\" and must have its layout: found {}, expected {}",
              shape.name, network_.name, network_.matrices[*shape.tied].name, ToString(layouts.w),
              ToString(table)));
    }
  }
  matrix.places = *places;
  matrix.owner = shape.tied && HasMatrix(*shape.tied) ? *shape.tied : index;
  matrix.group_begin = index;
  matrix.group_end = index + 1;
  const std::vector<uint32_t>& sizes = plan_.sizes();
  const uint64_t k = shape.k / Pieces(layouts.w, sizes, 0);
  const uint64_t n = shape.n / Pieces(layouts.w, sizes, 1);
  matrix.rows = shape.IsTable() ? k : n;
  matrix.columns = shape.IsTable() ? n : k;
  for (const uint32_t axis : PartialAxes(matrix.places.dw)) {
    const bool shares = strategy_.shard && strategy_.shard->IsAlong(axis);
    (shares ? matrix.share_axes : matrix.sum_axes).push_back(axis);
  }
  const uint32_t tied = shape.tied.value_or(index);
  const Matrix& owner = matrices_[tied];
  if (matrix.sum_axes != owner.sum_axes || matrix.share_axes != owner.share_axes) {
    throw Error(plan_.place(),
                fmt::format("\"{}\" of {} is tied to \"{}\": the gradients of both must be summed "
                            "along the same axes, so rows of their operands must be split along "
                            "the same; found {} and {}",
                            shape.name, network_.name, network_.matrices[tied].name,
                            ToString(layouts.x), ToString(strategy_.products[tied].x)));
  }
  const uint64_t ranks = plan_.SizeOfAxes(matrix.share_axes);
  const uint64_t share = (matrix.rows * matrix.columns + ranks - 1) / ranks;
  matrix.share_elements = static_cast<double>(share);
  matrix.elements = static_cast<double>(share * ranks);
}

void Parameters::GroupByLayer() {
  for (uint32_t begin = 0, end = 0; begin < matrices_.size(); begin = end) {
    const int32_t layer = network_.matrices[begin].layer;
    end = begin + 1;
    // Those of experts may be shared by other ranks than the rest, and then go separately.
    const auto goes_along = [&](uint32_t i) {
      return network_.matrices[i].layer == layer &&
             matrices_[i].share_axes == matrices_[begin].share_axes;
    };
    while (layer >= 0 && end < matrices_.size() && goes_along(end)) ++end;
    for (uint32_t i = begin; i < end; ++i) {
      matrices_[i].group_begin = begin;
      matrices_[i].group_end = end;
    }
  }
}

Buffer Parameters::MatrixBuffer(uint32_t index, std::string name, BufferKind kind, DType dtype,
                                bool share) const {
  const NetworkMatrix& shape = network_.matrices[index];
  const Matrix& matrix = matrices_[index];
  const Layout& w = strategy_.products[index].w;
  const Layout layout = shape.IsTable() ? w : Transposed(w);  // a table is stored k×n, others n×k
  Buffer buffer{.name = std::move(name),
                .kind = kind,
                .bytes = (share ? matrix.share_elements : matrix.elements) * SizeOf(dtype),
                .dtype = dtype,
                .rows = share ? 1 : matrix.rows,
                .columns = share ? static_cast<uint64_t>(matrix.share_elements) : matrix.columns};
  buffer.region =
      plan_.RegionOf(shape.IsTable() ? shape.k : shape.n, shape.IsTable() ? shape.n : shape.k,
                     layout, share ? matrix.share_axes : std::vector<uint32_t>());
  return buffer;
}

BufferId Parameters::AddMatrixBuffer(uint32_t index, std::string name, BufferKind kind, DType dtype,
                                     bool share) {
  return plan_.AddBuffer(MatrixBuffer(index, std::move(name), kind, dtype, share));
}

// Parameters, gradients and optimizer state of the layers that are left out and equal the one whose
// buffers begin at `first`, and which updates so many elements.
void Parameters::AddLeftOut(size_t first, double elements) {
  const double count = network_.left_out.count;
  update_elements_ += count * elements;
  for (const BufferKind kind :
       {BufferKind::kParameter, BufferKind::kGradient, BufferKind::kOptimizer}) {
    Bytes bytes;
    for (size_t i = first; i < plan_.role().buffers.size(); ++i)
      if (plan_.role().buffers[i].kind == kind) bytes += plan_.role().buffers[i].bytes;
    if (bytes > Bytes(0))
      plan_.AddBuffer({.name = "of layers left out", .kind = kind, .bytes = count * bytes});
  }
}

// This rank's share of an array that it holds whole.
BufferId Parameters::AddShareView(uint32_t index, BufferId of, std::string name, BufferKind kind,
                                  DType dtype) {
  Buffer share = MatrixBuffer(index, std::move(name), kind, dtype, true);
  share.bytes = Bytes(0);
  share.view = View{of, 0, 0, {}, {}};
  for (const uint32_t axis : matrices_[index].share_axes)
    share.view->columns_cut_by.emplace_back(axis);
  return plan_.AddBuffer(std::move(share));
}

// Products that add to the sum of gradients still hand over an array, one for each size
// (Transformer Engine's get_dummy_wgrad).
BufferId Parameters::AddBlock(uint32_t index) {
  const Matrix& matrix = matrices_[index];
  const auto [block, is_new] = blocks_.try_emplace({matrix.rows, matrix.columns});
  if (is_new) {
    Buffer buffer = MatrixBuffer(index, "gradient block of " + network_.matrices[index].name,
                                 BufferKind::kBuffer, training_.precision, /*share=*/false);
    buffer.region = kNoRegion;
    block->second = plan_.AddBuffer(std::move(buffer));
  }
  return block->second;
}

void Parameters::AddMatrixBuffers(uint32_t index) {
  Matrix& matrix = matrices_[index];
  if (!IsOwner(index)) {
    matrix.parameter = matrices_[matrix.owner].parameter;
    matrix.whole = matrices_[matrix.owner].whole;
    return;
  }
  SetLayer(ArrayOf(index).layer);
  const std::string name = plan_.Label(ArrayOf(index).name);
  const bool updates_share = Shares(matrix, 1) && !Shares(matrix, 3);
  Buffer parameter =
      MatrixBuffer(index, name, BufferKind::kParameter, ParameterType(index), Shares(matrix, 3));
  // What the step leaves is the share, until the next one gathers it.
  if (updates_share && strategy_.gathers_beside_forward) parameter.region = kNoRegion;
  matrix.parameter = plan_.AddBuffer(std::move(parameter));
  matrix.whole = matrix.parameter;
  if (updates_share && strategy_.gathers_beside_forward) {
    Buffer whole = MatrixBuffer(index, name, BufferKind::kBuffer, ParameterType(index), false);
    whole.bytes = Bytes(0);
    whole.view = View{matrix.parameter, 0, 0, {}, {}};
    matrix.whole = plan_.AddBuffer(std::move(whole));
  }
  if (IsNarrowMatrix(index) && !Shares(matrix, 3)) matrix.narrow = AddNarrowCopies(index);
  // Stage 1 keeps the gradient whole until it is summed, and then its share of the sums in place.
  const bool sums_share = Shares(matrix, 1) && !Shares(matrix, 2);
  Buffer gradient = MatrixBuffer(index, (sums_share ? "local gradient of " : "gradient of ") + name,
                                 BufferKind::kGradient, training_.gradients, Shares(matrix, 2));
  if (sums_share) gradient.region = kNoRegion;
  matrix.main_gradient = plan_.AddBuffer(std::move(gradient));
  matrix.update_gradient = matrix.main_gradient;
  if (sums_share) {
    matrix.update_gradient = AddShareView(index, matrix.main_gradient, "gradient of " + name,
                                          BufferKind::kGradient, training_.gradients);
  }
  matrix.update_share = matrix.parameter;
  if (updates_share) {
    const char* const what = strategy_.gathers_beside_forward ? "updated share of " : "share of ";
    matrix.update_share = AddShareView(index, matrix.parameter, what + name, BufferKind::kParameter,
                                       ParameterType(index));
  }
  if (training_.fused_accumulation && !Shares(matrix, 2) && matrix.uses == 1)
    matrix.block = AddBlock(index);
  update_elements_ += Shares(matrix, 1) ? matrix.share_elements : matrix.elements;
}

void Parameters::SetLayer(int32_t layer) {
  Tag tag = plan_.tag();
  tag.layer = layer;
  plan_.set_tag(tag);
}

// ---- vectors ------------------------------------------------------------------------------------

void Parameters::AddVectors(const std::vector<Layout>& rests) {
  vectors_.resize(network_.vectors.size());
  for (const Stage* stage : stages_) AddVectorsOf(*stage, rests);
  for (VectorGroup& group : groups_) AddVectorViews(&group);
}

void Parameters::AddVectorsOf(const Stage& stage, const std::vector<Layout>& rests) {
  for (uint32_t i = stage.node_begin(); i < stage.node_end(); ++i) {
    for (const uint32_t vector : network_.nodes[i].vectors) {
      Layout layout = rests[i];
      std::vector<uint32_t> sum_axes;
      for (uint32_t axis = 0; axis < layout.size(); ++axis) {
        if (!IsSplit(layout[axis], 0)) continue;
        sum_axes.push_back(axis);
        layout[axis] = B();
      }
      vectors_[vector].layout = layout;
      auto group = std::find_if(groups_.begin(), groups_.end(),
                                [&](const auto& known) { return known.sum_axes == sum_axes; });
      if (group == groups_.end()) {
        groups_.push_back({});
        group = groups_.end() - 1;
        group->sum_axes = sum_axes;
      }
      group->vectors.push_back(vector);
      const uint64_t elements = network_.vectors[vector].size / Pieces(layout, plan_.sizes(), 1);
      group->elements += LayersLike(network_.vectors[vector].layer) * elements;
    }
  }
}

void Parameters::AddVectorViews(VectorGroup* group) {
  const auto add = [&](std::string name, BufferKind kind, DType dtype) {
    return plan_.AddBuffer({.name = std::move(name),
                            .kind = kind,
                            .bytes = static_cast<double>(group->elements) * SizeOf(dtype),
                            .dtype = dtype,
                            .rows = 1,
                            .columns = group->elements});
  };
  group->value = add("biases and norms", BufferKind::kParameter, training_.precision);
  group->gradient = add("gradients of biases and norms", BufferKind::kGradient, DType::kFp32);
  update_elements_ += static_cast<double>(group->elements);
  vector_elements_ += static_cast<double>(group->elements);
  uint64_t column = 0;
  for (const uint32_t index : group->vectors) {
    const NetworkVector& vector = network_.vectors[index];
    PlacedVector& placed = vectors_[index];
    SetLayer(vector.layer);
    Buffer piece{.name = plan_.Label(vector.name),
                 .kind = BufferKind::kParameter,
                 .bytes = Bytes(0),
                 .dtype = training_.precision,
                 .rows = 1,
                 .columns = vector.size / Pieces(placed.layout, plan_.sizes(), 1),
                 .region = plan_.RegionOf(1, vector.size, placed.layout),
                 .view = View{group->value, 0, column, {}, {}}};
    column += piece.columns;
    placed.value = plan_.AddBuffer(piece);
    piece.name = "gradient of " + piece.name;
    piece.kind = BufferKind::kGradient;
    piece.dtype = DType::kFp32;
    piece.view->of = group->gradient;
    placed.gradient = plan_.AddBuffer(std::move(piece));
  }
}

// ---- gathering ----------------------------------------------------------------------------------

void Parameters::Hold(Matrix* matrix) const {
  const auto found = std::find(matrix->holders.begin(), matrix->holders.end(), micro_batch_);
  if (found == matrix->holders.end()) matrix->holders.push_back(micro_batch_);
}

void Parameters::Release(uint32_t matrix) {
  if (!is_last_chunk_) return;
  Matrix& held = matrices_[matrix];
  std::erase(held.holders, micro_batch_);
  if (held.holders.empty()) held.gathered = held.landed = BufferId();
}

void Parameters::SkipMicroBatches(uint32_t count) {
  for (Matrix& matrix : matrices_) {
    for (uint32_t& holder : matrix.holders) holder += count;
  }
}

bool Parameters::HoldsNothingOf(uint32_t begin, uint32_t end) const {
  const auto is_there = [&](BufferId id) {
    return id.IsSet() && id.index() >= begin && id.index() < end;
  };
  return std::none_of(matrices_.begin(), matrices_.end(), [&](const Matrix& matrix) {
    const bool is_being_made = matrix.uses_left < matrix.uses;
    return is_there(matrix.gathered) || (matrix.gathered.IsSet() && is_there(matrix.narrow)) ||
           (is_being_made && is_there(matrix.gradient));
  });
}

// The share as a gather takes it: cast from fp32, and copied into its buffer.
BufferId Parameters::Pack(const Matrix& matrix, uint32_t index) {
  const DType type = GatherType(index);
  const bool from_master = Copies() == ShardCopies::kFlat || Copies() == ShardCopies::kPerParameter;
  if (!from_master && type == training_.precision) return matrix.parameter;
  const double element = SizeOf(type).value();
  const double from = from_master ? kMaster : plan_.element();
  const double cast = element == from ? 0 : element + from;
  const double copy = Copies() == ShardCopies::kPerParameter ? 2 * element : 0;
  const BufferId packed =
      AddMatrixBuffer(index, plan_.Label("share to gather of " + network_.matrices[index].name),
                      BufferKind::kBuffer, type, /*share=*/true);
  plan_.AddMemoryOp("pack " + network_.matrices[index].name, Kernel::kCopy,
                    KernelCost{matrix.share_elements * (cast + copy), copy > 0 ? 2u : 1u},
                    {matrix.parameter}, {packed});
  return packed;
}

// Turns what has been gathered into parameters, before their first use.
void Parameters::Unpack(uint32_t index) {
  const Matrix& asked = matrices_[index];
  const Tag tag = plan_.tag();
  for (uint32_t i = asked.group_begin; i < asked.group_end; ++i) {
    Matrix& matrix = matrices_[i];
    if (!matrix.landed.IsSet()) continue;
    SetLayer(network_.matrices[i].layer);
    plan_.AddMemoryOp("unpack " + network_.matrices[i].name, Kernel::kCopy,
                      KernelCost{2 * matrix.elements * SizeOf(GatherType(i)).value(), 1},
                      {matrix.landed}, {matrix.gathered});
    matrix.landed = BufferId();
  }
  plan_.set_tag(tag);
}

void Parameters::Gather(uint32_t index) {
  Matrix& matrix = matrices_[index];
  Hold(&matrix);
  if (matrix.gathered.IsSet()) return;
  if (!Shares(matrix, 3)) {
    Freshen(index);
    matrix.gathered = matrix.whole;
    return;
  }
  const Tag tag = plan_.tag();
  SetLayer(network_.matrices[index].layer);
  std::vector<BufferId> shares;
  std::vector<BufferId> wholes;
  double elements = 0;
  for (uint32_t i = matrix.group_begin; i < matrix.group_end; ++i) {
    Matrix& member = matrices_[i];
    if (member.gathered.IsSet()) continue;
    Hold(&member);
    const DType type = GatherType(i);
    member.gathered = AddMatrixBuffer(i, plan_.Label("gathered " + network_.matrices[i].name),
                                      BufferKind::kBuffer, type, /*share=*/false);
    if (Copies() == ShardCopies::kPerParameter || Copies() == ShardCopies::kBuckets) {
      member.landed = AddMatrixBuffer(i, plan_.Label("landed " + network_.matrices[i].name),
                                      BufferKind::kBuffer, type, /*share=*/false);
    }
    shares.push_back(Pack(member, i));
    wholes.push_back(member.landed.IsSet() ? member.landed : member.gathered);
    elements += member.elements;
  }
  const std::string what = shares.size() > 1 ? "layer" : network_.matrices[index].name;
  plan_.AddCollective("all-gather " + what, CollectiveKind::kAllGather, matrix.share_axes,
                      elements * SizeOf(GatherType(index)).value(), GatherType(index),
                      Issue::kAsynchronous, shares, wholes);
  plan_.set_tag(tag);
}

// Gathers, of the `groups` groups before the index-th matrix's own, those that belong to layers and
// will be read again.
void Parameters::GatherBefore(uint32_t index, uint32_t groups) {
  const auto is_read = [&](const Matrix& matrix) {
    return matrix.is_read_backward || training_.recomputation == Recomputation::kFull;
  };
  const uint32_t first = stage_->first_matrix();
  for (uint32_t begin = matrices_[index].group_begin; groups > 0 && begin > first; --groups) {
    const uint32_t end = begin;
    begin = matrices_[begin - 1].group_begin;
    if (network_.matrices[begin].layer < 0) continue;
    if (std::any_of(matrices_.begin() + begin, matrices_.begin() + end, is_read)) Gather(begin);
  }
}

// Whether the next one may be gathered when so many elements are under way ahead of this product.
bool Parameters::MayGatherMore(double ahead) const {
  const ShardPolicy& shard = *strategy_.shard;
  if (!(ahead < static_cast<double>(shard.prefetch_elements))) return false;
  if (shard.most_gathered == 0) return true;
  double held = 0;
  for (const Matrix& matrix : matrices_) held += matrix.gathered.IsSet() ? matrix.elements : 0;
  return held < static_cast<double>(shard.most_gathered);
}

BufferId Parameters::Fetch(uint32_t index, uint32_t end) {
  Gather(index);
  Unpack(index);
  if (strategy_.shard && strategy_.shard->prefetch_elements > 0) {
    double ahead = 0;
    for (uint32_t next = index + 1; next < end && MayGatherMore(ahead); ++next) {
      Gather(next);
      ahead += matrices_[next].elements;
    }
    return matrices_[index].gathered;
  }
  const uint32_t ahead = strategy_.shard ? strategy_.shard->prefetch : 0;
  if (goes_backward_ && strategy_.shard && strategy_.shard->by_layer) {
    if (!strategy_.shard->gathers_behind_backward) GatherBefore(index, ahead);
    return matrices_[index].gathered;
  }
  uint32_t next = matrices_[index].group_end;
  for (uint32_t i = 0; i < ahead && next < end; ++i, next = matrices_[next].group_end) Gather(next);
  return matrices_[index].gathered;
}

BufferId Parameters::FetchBackward(uint32_t index) {
  Gather(index);
  Unpack(index);
  if (!strategy_.shard) return matrices_[index].gathered;
  if (strategy_.shard->prefetch_elements > 0) {
    const bool computes_again = training_.recomputation == Recomputation::kFull;
    double ahead = 0;
    for (uint32_t before = index;
         !computes_again && before-- > stage_->first_matrix() && MayGatherMore(ahead);) {
      if (network_.matrices[before].layer < 0 || !matrices_[before].is_read_backward) continue;
      Gather(before);
      ahead += matrices_[before].elements;
    }
    return matrices_[index].gathered;
  }
  // What is recomputed was gathered for that, product by product; whole layers are gathered ahead
  // of it too.
  const bool gathers_ahead =
      strategy_.shard->by_layer ||
      (strategy_.shard->reshard_after_forward && training_.recomputation != Recomputation::kFull);
  if (gathers_ahead && !strategy_.shard->gathers_behind_backward)
    GatherBefore(index, strategy_.shard->prefetch);
  return matrices_[index].gathered;
}

void Parameters::ReleaseAfterForward(uint32_t begin, uint32_t end) {
  const bool computes_again = training_.recomputation == Recomputation::kFull;
  if (!strategy_.shard || !(computes_again || strategy_.shard->reshard_after_forward)) return;
  for (uint32_t index = begin; index < end; ++index) {
    const int32_t layer = network_.matrices[index].layer;
    const bool keeps = layer < static_cast<int32_t>(strategy_.shard->cached_layers);
    if (layer >= 0 && !keeps) Release(index);
  }
}

}  // namespace rehearse
