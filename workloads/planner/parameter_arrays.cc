#include "workloads/planner/parameter_arrays.h"

#include <algorithm>
#include <utility>

#include "workloads/planner/casts.h"

namespace rehearse {

ParameterArrays::ParameterArrays(const ParameterPlaces& places, const std::vector<Layout>& rests,
                                 PlanBuilder* plan)
    : places_(places), plan_(*plan), matrices_(places.count()) {
  for (uint32_t i = 0; i < places.count(); ++i) {
    if (!places.HasMatrix(i)) continue;
    const size_t first = plan_.role().buffers.size();
    const double elements = update_elements_;
    AddMatrix(i);
    if (places.LayersLike(places.ShapeOf(i).layer) > 1)
      AddLeftOut(first, update_elements_ - elements);
  }
  vectors_.resize(places.network().vectors.size());
  for (const Stage* stage : places.stages()) GroupVectors(*stage, rests);
  for (VectorGroup& group : groups_) AddVectors(&group);
}

// ---- matrices -----------------------------------------------------------------------------------

Buffer ParameterArrays::MatrixBuffer(uint32_t index, std::string name, BufferKind kind, DType dtype,
                                     bool share) const {
  const NetworkMatrix& shape = places_.ShapeOf(index);
  const MatrixPlace& matrix = places_[index];
  const Layout& w = places_.strategy().products[index].w;
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

BufferId ParameterArrays::Add(uint32_t matrix, const char* what, BufferKind kind, DType dtype,
                              bool share) const {
  const std::string name = plan_.Label(what + (" " + places_.ShapeOf(matrix).name));
  return plan_.AddBuffer(MatrixBuffer(matrix, name, kind, dtype, share));
}

BufferId ParameterArrays::AddNarrowCopies(uint32_t matrix) const {
  const Training& training = places_.training();
  Buffer copies = MatrixBuffer(matrix, plan_.Label("cast " + places_.ShapeOf(matrix).name),
                               BufferKind::kBuffer, TypeOf(training.products), /*share=*/false);
  const double count = KeepsOnlyNarrow(training) ? 1 : CopiesOf(training);
  copies.bytes = Bytes(count * BytesOfCopy(training.products) * places_[matrix].elements);
  return plan_.AddBuffer(std::move(copies));
}

void ParameterArrays::AddMatrix(uint32_t index) {
  const MatrixPlace& place = places_[index];
  MatrixArrays& arrays = matrices_[index];
  if (!places_.IsOwner(index)) {
    arrays.parameter = matrices_[place.owner].parameter;
    arrays.whole = matrices_[place.owner].whole;
    return;
  }
  plan_.set_layer(places_.ArrayOf(index).layer);
  const std::string name = plan_.Label(places_.ArrayOf(index).name);
  const DType type = places_.KeptType(index);
  // What the step leaves is the share, until the next one gathers it.
  const bool leaves_share = place.UpdatesShare() && places_.strategy().gathers_beside_forward;
  Buffer parameter = MatrixBuffer(index, name, BufferKind::kParameter, type, place.Shares(3));
  if (leaves_share) parameter.region = kNoRegion;
  parameter.on_host = places_.IsOnHost(index);
  parameter.borrowed = places_.training().narrow_parameters && places_.IsNarrow(index) &&
                       !KeepsOnlyNarrow(places_.training()) && !place.Shares(2);
  arrays.parameter = plan_.AddBuffer(std::move(parameter));
  arrays.whole = arrays.parameter;
  if (leaves_share) {
    Buffer whole = MatrixBuffer(index, name, BufferKind::kBuffer, type, false);
    whole.bytes = Bytes(0);
    whole.view = View{arrays.parameter, 0, 0, {}, {}};
    arrays.whole = plan_.AddBuffer(std::move(whole));
  }
  if (place.Shares(3) && !places_.strategy().shard->backward_axes.empty())
    arrays.near_share = plan_.AddBuffer(NearShare(index));
  const bool is_one = KeepsOnlyNarrow(places_.training()) && CopiesOf(places_.training()) == 1;
  if (places_.IsNarrow(index) && !place.Shares(3) && !is_one)
    arrays.narrow = AddNarrowCopies(index);
  if (!places_.IsTrained(index)) return;
  if (!places_.SumsOnHost(index)) AddGradient(index, name);
  arrays.update_share =
      place.UpdatesShare() ? AddShareView(index, arrays.parameter,
                                          (leaves_share ? "updated share of " : "share of ") + name,
                                          BufferKind::kParameter, type)
                           : arrays.parameter;
  // A lookup makes a gradient of its own, which goes once it is added (NVIDIA/Megatron-LM,
  // core/distributed/distributed_data_parallel.py: main_grad.add_, then grad = None).
  const bool adds_to_sum = place.uses == 1 && !place.is_looked_up;
  if (places_.training().fused_accumulation && !place.Shares(2) && adds_to_sum)
    arrays.block = AddBlock(index);
  if (places_.training().optimizer_on_host) AddHostArrays(index, name);
  update_elements_ += place.UpdatedElements();
}

// Stage 1 keeps the gradient whole until it is summed, and then its share of the sums in place.
void ParameterArrays::AddGradient(uint32_t index, const std::string& name) {
  const MatrixPlace& place = places_[index];
  MatrixArrays& arrays = matrices_[index];
  const DType type = places_.training().gradients;
  Buffer gradient =
      MatrixBuffer(index, (place.SumsShare() ? "local gradient of " : "gradient of ") + name,
                   BufferKind::kGradient, type, place.Shares(2));
  if (place.SumsShare()) gradient.region = kNoRegion;
  arrays.main_gradient = plan_.AddBuffer(std::move(gradient));
  arrays.update_gradient = place.SumsShare()
                               ? AddShareView(index, arrays.main_gradient, "gradient of " + name,
                                              BufferKind::kGradient, type)
                               : arrays.main_gradient;
}

void ParameterArrays::AddHostArrays(uint32_t index, const std::string& name) {
  MatrixArrays& arrays = matrices_[index];
  const bool is_share = places_[index].Shares(1);
  const bool sums = places_.SumsOnHost(index);
  Buffer gradient = MatrixBuffer(index, "gradient of " + name + (sums ? "" : ", on the host"),
                                 BufferKind::kGradient, places_.training().gradients, is_share);
  gradient.on_host = true;
  if (!sums) gradient.region = kNoRegion;
  arrays.host_gradient = plan_.AddBuffer(std::move(gradient));
  arrays.host_share = arrays.parameter;
  if (places_.IsOnHost(index)) return;
  Buffer share = MatrixBuffer(index, name + ", on the host", BufferKind::kParameter,
                              places_.KeptType(index), is_share);
  share.on_host = true;
  share.region = kNoRegion;
  arrays.host_share = plan_.AddBuffer(std::move(share));
}

// It lives through the step, although each forward pass writes it anew: DeepSpeed never frees it.
Buffer ParameterArrays::NearShare(uint32_t index) const {
  const MatrixPlace& place = places_[index];
  const std::vector<uint32_t>& axes = places_.strategy().shard->backward_axes;
  const DType type = places_.GatheredType(index);
  Buffer share = MatrixBuffer(index, plan_.Label("near share of " + places_.ShapeOf(index).name),
                              BufferKind::kBuffer, type, /*share=*/true);
  const double elements = place.elements / plan_.SizeOfAxes(axes);
  share.bytes = elements * SizeOf(type);
  share.columns = static_cast<uint64_t>(elements);
  share.region = kNoRegion;
  return share;
}

// This rank's share of an array that it holds whole.
BufferId ParameterArrays::AddShareView(uint32_t index, BufferId of, std::string name,
                                       BufferKind kind, DType dtype) {
  Buffer share = MatrixBuffer(index, std::move(name), kind, dtype, true);
  share.bytes = Bytes(0);
  share.view = View{of, 0, 0, {}, {}};
  for (const uint32_t axis : places_[index].share_axes)
    share.view->columns_cut_by.emplace_back(axis);
  return plan_.AddBuffer(std::move(share));
}

// Products that add to the sum of gradients still hand over an array, one for each size
// (Transformer Engine's get_dummy_wgrad).
BufferId ParameterArrays::AddBlock(uint32_t index) {
  const MatrixPlace& place = places_[index];
  const auto [block, is_new] = blocks_.try_emplace({place.rows, place.columns});
  if (is_new) {
    Buffer buffer = MatrixBuffer(index, "gradient block of " + places_.ShapeOf(index).name,
                                 BufferKind::kBuffer, places_.training().precision, false);
    buffer.region = kNoRegion;
    block->second = plan_.AddBuffer(std::move(buffer));
  }
  return block->second;
}

// Parameters, gradients and optimizer state of the layers that are left out and equal the one whose
// buffers begin at `first`, and which updates so many elements.
void ParameterArrays::AddLeftOut(size_t first, double elements) {
  const double count = places_.network().left_out.count;
  update_elements_ += count * elements;
  for (const BufferKind kind :
       {BufferKind::kParameter, BufferKind::kGradient, BufferKind::kOptimizer}) {
    Bytes bytes;
    for (size_t i = first; i < plan_.role().buffers.size(); ++i) {
      const Buffer& buffer = plan_.role().buffers[i];
      CHECK(!buffer.on_host);  // such layers are all planned (AlikeUnder)
      if (buffer.kind == kind) bytes += buffer.bytes;
    }
    if (bytes > Bytes(0))
      plan_.AddBuffer({.name = "of layers left out", .kind = kind, .bytes = count * bytes});
  }
}

// ---- vectors ------------------------------------------------------------------------------------

void ParameterArrays::GroupVectors(const Stage& stage, const std::vector<Layout>& rests) {
  const Network& network = places_.network();
  std::vector<bool> is_known(network.vectors.size());  // nodes may share one
  for (uint32_t i = stage.node_begin(); i < stage.node_end(); ++i) {
    for (const uint32_t vector : network.nodes[i].vectors) {
      if (is_known[vector]) continue;
      is_known[vector] = true;
      Layout layout = rests[i];
      std::vector<uint32_t> sum_axes;
      for (uint32_t axis = 0; axis < layout.size(); ++axis) {
        if (!IsSplit(layout[axis], 0)) continue;
        sum_axes.push_back(axis);
        layout[axis] = B();
      }
      vectors_[vector].layout = layout;
      const bool is_frozen = network.vectors[vector].is_frozen;
      auto group = std::find_if(groups_.begin(), groups_.end(), [&](const auto& known) {
        return known.sum_axes == sum_axes && known.is_frozen == is_frozen;
      });
      if (group == groups_.end()) {
        groups_.push_back({});
        group = groups_.end() - 1;
        group->sum_axes = sum_axes;
        group->is_frozen = is_frozen;
      }
      group->vectors.push_back(vector);
      const uint64_t elements = network.vectors[vector].size / Pieces(layout, plan_.sizes(), 1);
      group->elements += places_.LayersLike(network.vectors[vector].layer) * elements;
    }
  }
}

void ParameterArrays::AddVectors(VectorGroup* group) {
  const DType precision = places_.training().precision;
  const auto add = [&](std::string name, BufferKind kind, DType dtype, bool on_host) {
    return plan_.AddBuffer({.name = std::move(name),
                            .kind = kind,
                            .bytes = static_cast<double>(group->elements) * SizeOf(dtype),
                            .dtype = dtype,
                            .rows = 1,
                            .columns = group->elements,
                            .on_host = on_host});
  };
  group->value = add("biases and norms", BufferKind::kParameter, precision, false);
  group->gradient =
      add("gradients of biases and norms", BufferKind::kGradient, DType::kFp32, false);
  if (places_.training().optimizer_on_host && !group->is_frozen) {
    group->host_value =
        add("biases and norms, on the host", BufferKind::kParameter, precision, true);
    group->host_gradient = add("gradients of biases and norms, on the host", BufferKind::kGradient,
                               DType::kFp32, true);
  }
  if (!group->is_frozen) {
    update_elements_ += static_cast<double>(group->elements);
    vector_elements_ += static_cast<double>(group->elements);
  }
  uint64_t column = 0;
  for (const uint32_t index : group->vectors) {
    const NetworkVector& vector = places_.network().vectors[index];
    VectorArrays& arrays = vectors_[index];
    plan_.set_layer(vector.layer);
    Buffer piece{.name = plan_.Label(vector.name),
                 .kind = BufferKind::kParameter,
                 .bytes = Bytes(0),
                 .dtype = precision,
                 .rows = 1,
                 .columns = vector.size / Pieces(arrays.layout, plan_.sizes(), 1),
                 .region = plan_.RegionOf(1, vector.size, arrays.layout),
                 .view = View{group->value, 0, column, {}, {}}};
    column += piece.columns;
    arrays.value = plan_.AddBuffer(piece);
    piece.name = "gradient of " + piece.name;
    piece.kind = BufferKind::kGradient;
    piece.dtype = DType::kFp32;
    piece.view->of = group->gradient;
    arrays.gradient = plan_.AddBuffer(std::move(piece));
  }
}

}  // namespace rehearse
