#include "workloads/gpt_planner.h"

#include <algorithm>

#include "workloads/role_builder.h"

namespace rehearse {
namespace {

constexpr double kElement = 2;  // bytes of bf16
constexpr double kFloat = 4;    // bytes of fp32
using Issue = RoleBuilder::Issue;
using Kind = Placement::Kind;

// A matrix as it lies on the mesh: global shape, layout, and this rank's piece of it.
struct Tensor {
  std::string name;
  uint64_t rows = 0;
  uint64_t columns = 0;
  Layout layout;
  BufferId buffer;
};

// One weight matrix of the network.
struct Weight {
  std::string name;  // "qkv"
  int32_t layer = -1;
  uint64_t k = 0;
  uint64_t n = 0;
  const MatmulLayouts* layouts = nullptr;
  bool cached = false;        // the gathered array is kept for the recomputation
  double elements = 0;        // of a rank's block, before sharding
  double shard_elements = 0;  // of a rank's shard
  BufferId shard;
  BufferId main_gradient;   // fp32, of the shard
  BufferId gradient;        // bf16, of the block, while it is made
  BufferId shard_gradient;  // bf16, of the shard, until it is accumulated
  BufferId gathered;        // set while a gathered copy is at hand
};

// The activations of one layer that its backward needs.
struct LayerActivations {
  Tensor input, norm1, qkv_input, qkv, attention, projection_input, mask1, sum1;
  Tensor norm2, up_input, up, gelu, down_input, mask2;
};

class Planner {
 public:
  Planner(const GptModel& model, const Training& training, const GptStrategy& strategy,
          const Place& place)
      : model_(model), training_(training), strategy_(strategy), place_(place) {
    for (const MeshAxis& axis : strategy.mesh.axes()) axis_sizes_.push_back(axis.size);
  }

  Schedule Run() {
    CheckSizes();
    Schedule schedule;
    std::vector<uint32_t> model_axes;
    for (uint32_t axis = 0; axis < axis_sizes_.size(); ++axis) {
      schedule.communicators.push_back(strategy_.mesh.AlongAxis(axis));
      if (!IsPureDataAxis(axis)) model_axes.push_back(axis);
    }
    model_communicator_ = CommunicatorId(static_cast<uint32_t>(schedule.communicators.size()));
    schedule.communicators.push_back(strategy_.mesh.AlongAxes(model_axes, "model"));

    RoleBuilder builder("rank", schedule.communicators);
    builder_ = &builder;
    MakeWeights();
    for (uint32_t i = 0; i < training_.micro_batches; ++i) MicroBatch(static_cast<int32_t>(i));
    Synchronize();
    Update();

    schedule.roles.push_back(builder.Build());
    schedule.role_of_rank.assign(strategy_.mesh.size(), 0);
    schedule.tokens = training_.Tokens();
    schedule.model_flops = ModelFlops(model_, training_.Tokens(), training_.sequence);
    schedule.hardware_flops = Recomputes() ? HardwareFlopsWithRecomputation(
                                                 model_, training_.Tokens(), training_.sequence)
                                           : schedule.model_flops;
    return schedule;
  }

 private:
  // ---- sizes -------------------------------------------------------------------------------------

  bool Recomputes() const { return training_.recomputation == Recomputation::kFull; }

  // An axis that splits only the batch and along which weights are not sharded.
  bool IsPureDataAxis(uint32_t axis) const {
    const auto& data = strategy_.data_axes;
    const bool splits_batch = std::find(data.begin(), data.end(), axis) != data.end();
    return splits_batch && !(strategy_.gather && strategy_.gather->axis == axis);
  }

  uint32_t GatherSize() const { return strategy_.gather ? axis_sizes_[strategy_.gather->axis] : 1; }

  void CheckSplit(const char* what, uint64_t size, const Layout& layout, uint8_t dimension) const {
    uint64_t left = size;
    for (size_t axis = 0; axis < layout.size(); ++axis) {
      if (layout[axis] != S(dimension)) continue;
      if (left % axis_sizes_[axis] != 0) {
        throw Error(place_,
                    fmt::format("{} {} of {} cannot be split into {} parts along axis \"{}\"", size,
                                what, model_.name, Pieces(layout, axis_sizes_, dimension),
                                strategy_.mesh.axes()[axis].name));
      }
      left /= axis_sizes_[axis];
    }
  }

  void CheckSizes() const {
    const GptLayouts& layouts = strategy_.layouts;
    CheckSplit("attention heads", model_.heads, layouts.attention, 1);
    CheckSplit("hidden columns", model_.hidden, layouts.hidden, 1);
    CheckSplit("vocabulary entries", model_.vocabulary, layouts.logits, 1);
    for (const MatmulLayouts* matmul : {&layouts.embedding, &layouts.qkv, &layouts.projection,
                                        &layouts.up, &layouts.down, &layouts.output}) {
      const bool is_embedding = matmul == &layouts.embedding;
      CheckSplit(is_embedding ? "vocabulary entries" : "hidden rows",
                 is_embedding ? model_.vocabulary : model_.hidden, matmul->w, 0);
      if (matmul != &layouts.output) {
        CheckSplit("hidden columns", model_.hidden, matmul->w, 1);
      }
    }
    const uint64_t pieces = Pieces(layouts.hidden, axis_sizes_, 0);
    if (training_.batch % (pieces * training_.micro_batches) != 0) {
      throw Error(place_, fmt::format("a batch of {} sequences cannot be split over {} groups "
                                      "(axes that split rows) times {} micro-batches",
                                      training_.batch, pieces, training_.micro_batches));
    }
    if (strategy_.gather && strategy_.gather->cached_layers > model_.layers) {
      throw Error(place_, fmt::format("{} cached layers, but {} has only {}",
                                      strategy_.gather->cached_layers, model_.name, model_.layers));
    }
  }

  uint64_t LocalRows(const Tensor& tensor) const {
    return tensor.rows / Pieces(tensor.layout, axis_sizes_, 0);
  }
  uint64_t LocalColumns(const Tensor& tensor) const {
    return tensor.columns / Pieces(tensor.layout, axis_sizes_, 1);
  }
  double LocalElements(const Tensor& tensor) const {
    return static_cast<double>(LocalRows(tensor)) * static_cast<double>(LocalColumns(tensor));
  }

  // ---- ops ---------------------------------------------------------------------------------------

  Tensor MakeTensor(std::string name, uint64_t rows, uint64_t columns, Layout layout,
                    double element = kElement) {
    Tensor tensor{std::move(name), rows, columns, std::move(layout), {}};
    tensor.buffer = builder_->AddBuffer(Label(tensor.name), BufferKind::kActivation,
                                        Bytes(LocalElements(tensor) * element));
    return tensor;
  }

  std::string Label(const std::string& name) const {
    const Tag& tag = builder_->tag();
    return tag.layer < 0 ? name : fmt::format("{} of layer {}", name, tag.layer);
  }

  void AddMemoryOp(std::string name, double bytes, const std::vector<BufferId>& reads,
                   const std::vector<BufferId>& writes, uint32_t kernels = 1) {
    Compute compute;
    compute.kind = ComputeKind::kMemory;
    compute.bytes = Bytes(bytes);
    compute.kernels = kernels;
    builder_->AddCompute(std::move(name), compute, reads, writes);
  }

  void AddGemm(std::string name, uint64_t m, uint64_t n, uint64_t k, GemmMode mode,
               const std::vector<BufferId>& reads, const std::vector<BufferId>& writes) {
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.gemm = {.m = m, .n = n, .k = k, .mode = mode};
    compute.flops = FlopsOf(compute.gemm);
    compute.bytes = BytesOf(compute.gemm, compute.dtype);
    builder_->AddCompute(std::move(name), compute, reads, writes);
  }

  void AddCollective(std::string name, CollectiveKind kind, uint32_t axis, double bytes,
                     DType dtype, Issue issue, const std::vector<BufferId>& reads,
                     const std::vector<BufferId>& writes) {
    Collective collective;
    collective.kind = kind;
    collective.communicator = CommunicatorId(axis);
    collective.bytes = Bytes(bytes);
    collective.dtype = dtype;
    builder_->AddCollective(std::move(name), collective, issue, reads, writes);
  }

  // Brings a tensor into another layout: partial sums first, then slices, then gathers, so that as
  // little as possible travels. Pieces gathered along columns arrive one after the other: PyTorch's
  // all_gather copies them out of its flat buffer, then a concatenation interleaves them.
  Tensor Redistribute(Tensor tensor, const Layout& target, Issue issue = Issue::kBlocking) {
    for (const Move wanted : {Move::kAllReduce, Move::kReduceScatter, Move::kSlice, Move::kAllToAll,
                              Move::kAllGather}) {
      for (uint32_t axis = 0; axis < axis_sizes_.size(); ++axis) {
        if (tensor.layout[axis] == target[axis]) continue;
        const auto redistribution = ::rehearse::Redistribute(tensor.layout[axis], target[axis]);
        CHECK(redistribution.has_value());
        if (redistribution->forward == wanted) {
          tensor = MoveAlong(std::move(tensor), axis, target[axis], wanted, issue);
        }
      }
    }
    return tensor;
  }

  Tensor MoveAlong(Tensor tensor, uint32_t axis, Placement target, Move move, Issue issue) {
    const double before = LocalElements(tensor) * kElement;
    const Placement source = tensor.layout[axis];
    tensor.layout[axis] = target;
    if (axis_sizes_[axis] == 1) return tensor;
    const std::string name = fmt::format("{} {}", Name(move), tensor.name);
    const BufferId from = tensor.buffer;
    switch (move) {
      case Move::kNone:
      case Move::kSlice:  // a view
        return tensor;
      case Move::kAllReduce:
        AddCollective(name, CollectiveKind::kAllReduce, axis, before, DType::kBf16, issue, {from},
                      {from});
        return tensor;
      case Move::kReduceScatter:
        tensor = MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout);
        AddCollective(name, CollectiveKind::kReduceScatter, axis, before, DType::kBf16, issue,
                      {from}, {tensor.buffer});
        return tensor;
      case Move::kAllToAll:
        tensor = MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout);
        AddCollective(name, CollectiveKind::kAllToAll, axis, before, DType::kBf16, issue, {from},
                      {tensor.buffer});
        return tensor;
      case Move::kAllGather: {
        tensor = MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout);
        const double after = LocalElements(tensor) * kElement;
        if (source == S(0)) {
          AddCollective(name, CollectiveKind::kAllGather, axis, after, DType::kBf16, issue, {from},
                        {tensor.buffer});
          return tensor;
        }
        const BufferId pieces = builder_->AddBuffer(Label(tensor.name + " in pieces"),
                                                    BufferKind::kBuffer, Bytes(after));
        AddCollective(name, CollectiveKind::kAllGather, axis, after, DType::kBf16, issue, {from},
                      {pieces});
        AddMemoryOp("interleave " + tensor.name, 4 * after, {pieces}, {tensor.buffer}, 2);
        return tensor;
      }
    }
    return tensor;
  }

  // ---- weights -----------------------------------------------------------------------------------

  void MakeWeights() {
    const uint64_t h = model_.hidden;
    const GptLayouts& layouts = strategy_.layouts;
    weights_.reserve(2 + 4 * static_cast<size_t>(model_.layers));
    AddWeight("embedding", -1, model_.vocabulary, h, layouts.embedding);
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      const int32_t l = static_cast<int32_t>(layer);
      AddWeight("qkv", l, h, 3 * h, layouts.qkv);
      AddWeight("projection", l, h, h, layouts.projection);
      AddWeight("up", l, h, 4 * h, layouts.up);
      AddWeight("down", l, 4 * h, h, layouts.down);
    }
    // The output layer is the embedding's table transposed: its own gather, no parameters of its own.
    Weight output = weights_.front();
    output.name = "output";
    output.layouts = &layouts.output;
    std::swap(output.k, output.n);
    weights_.push_back(output);

    // Biases and norms: 13·h a layer and 2·h at the end, lying as the hidden columns do.
    small_elements_ = (13.0 * model_.layers + 2) * static_cast<double>(h) /
                      static_cast<double>(Pieces(layouts.hidden, axis_sizes_, 1));
    small_parameters_ = builder_->AddBuffer("biases and norms", BufferKind::kParameter,
                                            Bytes(small_elements_ * kElement));
    small_gradients_ = builder_->AddBuffer("gradients of biases and norms", BufferKind::kGradient,
                                           Bytes(small_elements_ * kFloat));
    double elements = small_elements_;
    for (size_t i = 0; i + 1 < weights_.size(); ++i) elements += weights_[i].shard_elements;
    parameter_elements_ = elements;
    optimizer_state_ = builder_->AddBuffer("Adam: master weights and moments",
                                           BufferKind::kOptimizer, Bytes(3 * kFloat * elements));
  }

  void AddWeight(const char* name, int32_t layer, uint64_t k, uint64_t n,
                 const MatmulLayouts& layouts) {
    Weight weight;
    weight.name = name;
    weight.layer = layer;
    weight.k = k;
    weight.n = n;
    weight.layouts = &layouts;
    weight.cached = strategy_.gather && Recomputes() && layer >= 0 &&
                    layer < static_cast<int32_t>(strategy_.gather->cached_layers);
    const uint64_t rows = k / Pieces(layouts.w, axis_sizes_, 0);
    const uint64_t columns = n / Pieces(layouts.w, axis_sizes_, 1);
    weight.elements = static_cast<double>(rows) * static_cast<double>(columns);
    weight.shard_elements = weight.elements / GatherSize();
    const std::string label = layer < 0 ? name : fmt::format("{} of layer {}", name, layer);
    weight.shard =
        builder_->AddBuffer(label, BufferKind::kParameter, Bytes(weight.shard_elements * kElement));
    weight.main_gradient = builder_->AddBuffer("gradient of " + label, BufferKind::kGradient,
                                               Bytes(weight.shard_elements * kFloat));
    weights_.push_back(std::move(weight));
  }

  Weight& Embedding() { return weights_.front(); }
  Weight& Output() { return weights_.back(); }
  // matrix: 0 qkv, 1 projection, 2 up, 3 down
  Weight& LayerWeight(uint32_t layer, uint32_t matrix) { return weights_[1 + 4 * layer + matrix]; }

  void Gather(Weight& weight) {
    if (GatherSize() == 1) {
      weight.gathered = weight.shard;
      return;
    }
    if (weight.gathered.IsSet()) return;
    const Tag tag = builder_->tag();
    Tag own = tag;
    own.layer = weight.layer;
    builder_->set_tag(own);
    const double bytes = weight.elements * kElement;
    weight.gathered =
        builder_->AddBuffer(Label("gathered " + weight.name), BufferKind::kBuffer, Bytes(bytes));
    AddCollective("all-gather " + weight.name, CollectiveKind::kAllGather, strategy_.gather->axis,
                  bytes, DType::kBf16, Issue::kAsynchronous, {weight.shard}, {weight.gathered});
    builder_->set_tag(tag);
  }

  // The whole block of a weight, gathered if it is not at hand. With prefetching the gather of the next
  // weight (up to `end`, exclusive) is issued now, before this weight's product.
  BufferId Fetch(Weight& weight, const Weight* end) {
    Gather(weight);
    if (strategy_.gather && strategy_.gather->prefetch) {
      Weight* next = &weight + 1;
      if (next < end) Gather(*next);
    }
    return weight.gathered;
  }

  void Release(Weight& weight) { weight.gathered = BufferId(); }

  // ---- products ----------------------------------------------------------------------------------

  // Y = X·W, brought into `rest`. X must lie as the layouts of the weight say.
  Tensor Multiply(Weight& weight, const Tensor& x, const Layout& rest, const char* name,
                  const Weight* end) {
    const BufferId gathered = Fetch(weight, end);
    Tensor y = MakeTensor(name, x.rows, weight.n, ProductLayout(weight));
    AddGemm(weight.name, LocalRows(x), LocalColumns(y), LocalColumns(x), GemmMode::kNT,
            {x.buffer, gathered}, {y.buffer});
    return Redistribute(y, rest);
  }

  Layout ProductLayout(const Weight& weight) const {
    Layout layout;
    for (size_t axis = 0; axis < axis_sizes_.size(); ++axis) {
      layout.push_back(Placements(weight, axis).y);
    }
    return layout;
  }

  MatmulPlacements Placements(const Weight& weight, size_t axis) const {
    const auto placements = PlaceMatmul(weight.layouts->x[axis], weight.layouts->w[axis]);
    CHECK(placements.has_value());
    return *placements;
  }

  // The gradient of X (in `rest`, where X came from) and of W, from the gradient of Y in any layout.
  Tensor MultiplyBackward(Weight& weight, const Tensor& x, Tensor dy, const Layout& rest,
                          const std::string& name) {
    Layout resolved;
    Layout dx_layout;
    for (size_t axis = 0; axis < axis_sizes_.size(); ++axis) {
      const MatmulPlacements placements = Placements(weight, axis);
      resolved.push_back(placements.y == P() ? B() : placements.y);
      dx_layout.push_back(placements.dx);
    }
    dy = Redistribute(std::move(dy), resolved);
    const BufferId gathered = Fetch(weight, &weight + 1);
    Tensor dx = MakeTensor(name, x.rows, x.columns, dx_layout);
    AddGemm(weight.name + " dX", LocalRows(dx), LocalColumns(dx), LocalColumns(dy), GemmMode::kNN,
            {dy.buffer, gathered}, {dx.buffer});
    const Issue issue =
        strategy_.asynchronous_input_gradient ? Issue::kAsynchronous : Issue::kBlocking;
    // Sums run beside the dW product; a gather that needs a copy after it comes behind dW.
    Layout summed = dx.layout;
    for (size_t axis = 0; axis < summed.size(); ++axis) {
      if (summed[axis] == P()) summed[axis] = rest[axis] == P() ? B() : rest[axis];
    }
    dx = Redistribute(std::move(dx), summed, issue);
    WeightGradient(weight, x, dy);
    return Redistribute(std::move(dx), rest);
  }

  void WeightGradient(Weight& weight, const Tensor& x, const Tensor& dy) {
    const bool tied = &weight == &Output();
    Weight& owner = tied ? Embedding() : weight;
    owner.gradient = builder_->AddBuffer(Label("gradient block of " + owner.name),
                                         BufferKind::kBuffer, Bytes(owner.elements * kElement));
    AddGemm(weight.name + " dW", LocalColumns(dy), LocalColumns(x), LocalRows(x), GemmMode::kTN,
            {x.buffer, dy.buffer}, {owner.gradient});
    Release(weight);
    if (!tied) FinishGradient(weight);  // the embedding adds its own part first
  }

  // From the block's gradient to the shard's fp32 sum: reduce-scatter where the weight is sharded.
  void FinishGradient(Weight& weight) {
    weight.shard_gradient = weight.gradient;
    if (GatherSize() > 1) {
      weight.shard_gradient =
          builder_->AddBuffer(Label("gradient shard of " + weight.name), BufferKind::kBuffer,
                              Bytes(weight.shard_elements * kElement));
      AddCollective(
          "reduce-scatter " + weight.name, CollectiveKind::kReduceScatter, strategy_.gather->axis,
          weight.elements * kElement, DType::kBf16,
          strategy_.asynchronous_weight_gradient ? Issue::kAsynchronous : Issue::kBlocking,
          {weight.gradient}, {weight.shard_gradient});
    }
    if (!strategy_.asynchronous_weight_gradient || GatherSize() == 1) Accumulate(weight);
  }

  void Accumulate(Weight& weight) {
    AddMemoryOp("accumulate " + weight.name, weight.shard_elements * (kElement + 2 * kFloat),
                {weight.shard_gradient, weight.main_gradient}, {weight.main_gradient});
  }

  // ---- one layer ---------------------------------------------------------------------------------

  // Layer norm over whole rows. Where rows are split, the statistics (two fp32 numbers a row) are
  // all-reduced first.
  Tensor Norm(const Tensor& x, const char* name) {
    const double elements = LocalElements(x);
    Tensor y = MakeTensor(name, x.rows, x.columns, x.layout);
    const std::optional<BufferId> statistics = RowStatistics(x, name, 2, elements * kElement, {});
    std::vector<BufferId> reads = {x.buffer};
    if (statistics) reads.push_back(*statistics);
    AddMemoryOp(name, elements * 2 * kElement, reads, {y.buffer});
    return y;
  }

  // `numbers` fp32 sums a row over columns that are split, made from `bytes` of memory traffic. Nothing
  // where rows are whole.
  std::optional<BufferId> RowStatistics(const Tensor& x, const std::string& name, int numbers,
                                        double bytes, const std::vector<BufferId>& more_reads) {
    if (Pieces(x.layout, axis_sizes_, 1) == 1) return std::nullopt;
    const double size = static_cast<double>(LocalRows(x)) * numbers * kFloat;
    const BufferId buffer =
        builder_->AddBuffer(Label(name + " statistics"), BufferKind::kBuffer, Bytes(size));
    std::vector<BufferId> reads = {x.buffer};
    reads.insert(reads.end(), more_reads.begin(), more_reads.end());
    AddMemoryOp(name + " statistics", bytes, reads, {buffer});
    for (uint32_t axis = 0; axis < axis_sizes_.size(); ++axis) {
      if (x.layout[axis] != S(1) || axis_sizes_[axis] == 1) continue;
      AddCollective("all-reduce " + name + " statistics", CollectiveKind::kAllReduce, axis, size,
                    DType::kFp32, Issue::kBlocking, {buffer}, {buffer});
    }
    return buffer;
  }

  // Gradient through a norm, added to the gradient that by-passed it: x, dy, the gains' and biases'
  // sums (x, dy again), the by-passing gradient, and the results.
  Tensor NormBackward(const Tensor& x, const Tensor& dy, const Tensor* bypass, const char* name) {
    const double elements = LocalElements(x);
    Tensor dx = MakeTensor(std::string("d ") + name, x.rows, x.columns, x.layout);
    const std::string label = std::string(name) + " backward";
    const std::optional<BufferId> statistics =
        RowStatistics(x, label, 2, elements * 2 * kElement, {dy.buffer});
    std::vector<BufferId> reads = {x.buffer, dy.buffer};
    if (statistics) reads.push_back(*statistics);
    if (bypass) reads.push_back(bypass->buffer);
    AddMemoryOp(label, elements * kElement * (bypass ? 8 : 5), reads, {dx.buffer, small_gradients_},
                bypass ? 3 : 2);
    return dx;
  }

  // x + dropout(y + bias): reads y and x, writes the sum and a byte of mask an element.
  Tensor AddResidual(const Tensor& y, const Tensor& x, Tensor* mask, const char* name) {
    const double elements = LocalElements(x);
    *mask = MakeTensor(std::string(name) + " mask", x.rows, x.columns, x.layout, 1);
    Tensor sum = MakeTensor(name, x.rows, x.columns, x.layout);
    AddMemoryOp(std::string("bias, dropout, ") + name, elements * (3 * kElement + 1),
                {y.buffer, x.buffer}, {sum.buffer, mask->buffer});
    return sum;
  }

  // Through the dropout, with the bias' gradient: reads dy and mask, writes, reads once more.
  Tensor DropoutBackward(const Tensor& dy, const Tensor& mask, const char* name) {
    Tensor dx = MakeTensor(name, dy.rows, dy.columns, dy.layout);
    AddMemoryOp("dropout, bias backward", LocalElements(dy) * (3 * kElement + 1),
                {dy.buffer, mask.buffer}, {dx.buffer, small_gradients_}, 2);
    return dx;
  }

  // The causal core over this rank's rows and heads: QK^T and PV are 4·s·h flops a token, half of which
  // the causal mask saves; backward is 2.5 times that with the scores recomputed (FlashAttention-2).
  void AddAttention(const char* name, const Tensor& qkv, double passes, double bytes_per_element,
                    const std::vector<BufferId>& reads, const std::vector<BufferId>& writes) {
    const double elements = LocalElements(qkv) / 3;
    Compute compute;
    compute.kind = ComputeKind::kAttention;
    compute.flops = Flops(passes * 2 * static_cast<double>(training_.sequence) * elements);
    compute.bytes = Bytes(bytes_per_element * elements);
    builder_->AddCompute(name, compute, reads, writes);
  }

  // The layer's forward pass; `end` bounds the prefetching of weights. Fills `kept` for the backward pass.
  Tensor Layer(uint32_t layer, const Tensor& x, LayerActivations* kept, const Weight* end) {
    const uint64_t h = model_.hidden;
    const GptLayouts& layouts = strategy_.layouts;
    LayerActivations& a = *kept;
    a.input = x;
    a.norm1 = Norm(x, "norm 1");
    a.qkv_input = Redistribute(a.norm1, layouts.qkv.x);
    a.qkv = Multiply(LayerWeight(layer, 0), a.qkv_input, layouts.attention, "q, k, v", end);
    // Adds the bias and splits Q, K and V into arrays of their own.
    AddMemoryOp("bias, split q, k, v", LocalElements(a.qkv) * 2 * kElement, {a.qkv.buffer},
                {a.qkv.buffer}, 3);
    a.attention = MakeTensor("attention", x.rows, h, layouts.attention);
    AddAttention("attention", a.qkv, 1, 4 * kElement, {a.qkv.buffer}, {a.attention.buffer});
    a.projection_input = Redistribute(a.attention, layouts.projection.x);
    const Tensor projected =
        Multiply(LayerWeight(layer, 1), a.projection_input, layouts.hidden, "projection", end);
    a.sum1 = AddResidual(projected, x, &a.mask1, "residual 1");
    a.norm2 = Norm(a.sum1, "norm 2");
    a.up_input = Redistribute(a.norm2, layouts.up.x);
    a.up = Multiply(LayerWeight(layer, 2), a.up_input, layouts.mlp, "mlp up", end);
    a.gelu = MakeTensor("gelu", x.rows, 4 * h, layouts.mlp);
    AddMemoryOp("bias, gelu", LocalElements(a.up) * 2 * kElement, {a.up.buffer}, {a.gelu.buffer});
    a.down_input = Redistribute(a.gelu, layouts.down.x);
    const Tensor down =
        Multiply(LayerWeight(layer, 3), a.down_input, layouts.hidden, "mlp down", end);
    return AddResidual(down, a.sum1, &a.mask2, "residual 2");
  }

  Tensor LayerBackward(uint32_t layer, const Tensor& dy, const LayerActivations& a) {
    const GptLayouts& layouts = strategy_.layouts;
    const uint64_t h = model_.hidden;
    const Tensor d_down = DropoutBackward(dy, a.mask2, "d mlp down");
    const Tensor d_gelu =
        MultiplyBackward(LayerWeight(layer, 3), a.down_input, d_down, layouts.mlp, "d gelu");
    const Tensor d_up = MakeTensor("d mlp up", dy.rows, 4 * h, layouts.mlp);
    AddMemoryOp("gelu, bias backward", LocalElements(d_up) * 4 * kElement,
                {d_gelu.buffer, a.up.buffer}, {d_up.buffer, small_gradients_}, 2);
    const Tensor d_norm2 =
        MultiplyBackward(LayerWeight(layer, 2), a.up_input, d_up, layouts.hidden, "d norm 2");
    const Tensor d_sum1 = NormBackward(a.sum1, d_norm2, &dy, "norm 2");
    const Tensor d_projection = DropoutBackward(d_sum1, a.mask1, "d projection");
    const Tensor d_attention = MultiplyBackward(LayerWeight(layer, 1), a.projection_input,
                                                d_projection, layouts.attention, "d attention");
    const Tensor d_core = MakeTensor("d q, k, v", dy.rows, 3 * h, layouts.attention);
    AddAttention("attention backward", a.qkv, 2.5, 8 * kElement,
                 {d_attention.buffer, a.qkv.buffer, a.attention.buffer}, {d_core.buffer});
    AddMemoryOp("join d q, k, v, bias backward", LocalElements(d_core) * 3 * kElement,
                {d_core.buffer}, {d_core.buffer, small_gradients_}, 2);
    const Tensor d_norm1 =
        MultiplyBackward(LayerWeight(layer, 0), a.qkv_input, d_core, layouts.hidden, "d norm 1");
    return NormBackward(a.input, d_norm1, &d_sum1, "norm 1");
  }

  // ---- the step ----------------------------------------------------------------------------------

  void SetPhase(Phase phase, int32_t layer) {
    Tag tag = builder_->tag();
    tag.phase = phase;
    tag.layer = layer;
    builder_->set_tag(tag);
  }

  void MicroBatch(int32_t index) {
    builder_->set_tag({Phase::kForward, -1, index});
    const uint64_t rows = training_.batch * training_.sequence / training_.micro_batches;
    const Weight* all = weights_.data() + weights_.size();

    Tensor x = EmbeddingForward(rows, all);
    std::vector<LayerActivations> kept(model_.layers);
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      SetPhase(Phase::kForward, static_cast<int32_t>(layer));
      x = Layer(layer, x, &kept[layer], all);
      if (!Recomputes()) continue;
      for (uint32_t matrix = 0; matrix < 4; ++matrix) {
        Weight& weight = LayerWeight(layer, matrix);
        if (!weight.cached) Release(weight);
      }
    }
    Tensor gradient = OutputAndLoss(x, all);
    for (uint32_t layer = model_.layers; layer-- > 0;) {
      const int32_t l = static_cast<int32_t>(layer);
      if (Recomputes()) {
        SetPhase(Phase::kRecompute, l);
        const Tensor input = kept[layer].input;
        Layer(layer, input, &kept[layer], &LayerWeight(layer, 3) + 1);
      }
      SetPhase(Phase::kBackward, l);
      gradient = LayerBackward(layer, gradient, kept[layer]);
      kept[layer] = {};
    }
    EmbeddingBackward(gradient);
    if (strategy_.asynchronous_weight_gradient && GatherSize() > 1) {
      for (uint32_t layer = model_.layers; layer-- > 0;) {
        SetPhase(Phase::kBackward, static_cast<int32_t>(layer));
        for (uint32_t matrix = 4; matrix-- > 0;) Accumulate(LayerWeight(layer, matrix));
      }
      SetPhase(Phase::kBackward, -1);
      Accumulate(Embedding());
    }
  }

  // Looks up the rows of the table that this rank holds, then adds up what the others found.
  Tensor EmbeddingForward(uint64_t rows, const Weight* end) {
    Weight& table = Embedding();
    const BufferId gathered = Fetch(table, end);
    Tensor y = MakeTensor("embedding", rows, model_.hidden, ProductLayout(table));
    // Reads the rows, writes them; dropout reads and writes once more.
    AddMemoryOp("embedding", LocalElements(y) * 4 * kElement, {gathered}, {y.buffer}, 2);
    Release(table);
    return Redistribute(std::move(y), strategy_.layouts.hidden);
  }

  void EmbeddingBackward(const Tensor& gradient) {
    SetPhase(Phase::kBackward, -1);
    Weight& table = Embedding();
    Layout resolved = ProductLayout(table);
    for (Placement& placement : resolved) {
      if (placement == P()) placement = B();
    }
    const Tensor dy = Redistribute(gradient, resolved);
    // Scatter-adds into the gradient that the output layer has begun.
    AddMemoryOp("embedding backward", LocalElements(dy) * 3 * kElement, {dy.buffer, table.gradient},
                {table.gradient});
    FinishGradient(table);
  }

  // Final norm, output layer, cross entropy, and their backward: returns the gradient of `x`.
  Tensor OutputAndLoss(const Tensor& x, const Weight* end) {
    const GptLayouts& layouts = strategy_.layouts;
    SetPhase(Phase::kForward, -1);
    const Tensor norm = Norm(x, "final norm");
    const Tensor input = Redistribute(norm, layouts.output.x);
    const Tensor logits = Multiply(Output(), input, layouts.logits, "logits", end);
    const double elements = LocalElements(logits);
    // Cross entropy in fp32, unfused as in Megatron-LM: convert (2+4), maximum (4), subtract and
    // exponentiate (8), sum (4) before the ranks' statistics meet (maximum, sum, the label's logit: 3
    // numbers a row), then normalise (8), scale (8) and convert the gradient back (4+2).
    Tensor dlogits = MakeTensor("d logits", logits.rows, logits.columns, logits.layout);
    const Tensor exponentials =
        MakeTensor("exponentials", logits.rows, logits.columns, logits.layout, kFloat);
    AddMemoryOp("cross entropy", elements * 22, {logits.buffer}, {exponentials.buffer}, 4);
    const std::optional<BufferId> statistics = RowStatistics(
        exponentials, "loss", 3, static_cast<double>(LocalRows(logits)) * 3 * kFloat, {});
    SetPhase(Phase::kBackward, -1);
    std::vector<BufferId> reads = {exponentials.buffer};
    if (statistics) reads.push_back(*statistics);
    AddMemoryOp("cross entropy backward", elements * 22, reads, {dlogits.buffer}, 3);
    const Tensor d_norm =
        MultiplyBackward(Output(), input, dlogits, layouts.hidden, "d final norm");
    return NormBackward(x, d_norm, nullptr, "final norm");
  }

  // Gradients are all-reduced in fp32 along every axis that splits the batch and does not shard weights;
  // biases and norms, which are not sharded, along every axis that splits the batch.
  void Synchronize() {
    builder_->set_tag({Phase::kSynchronize, -1, 0});
    for (uint32_t axis = 0; axis < axis_sizes_.size(); ++axis) {
      if (!IsPureDataAxis(axis) || axis_sizes_[axis] == 1) continue;
      for (size_t i = 0; i + 1 < weights_.size(); ++i) {
        const Weight& weight = weights_[i];
        SetPhase(Phase::kSynchronize, weight.layer);
        AddCollective("all-reduce gradient of " + weight.name, CollectiveKind::kAllReduce, axis,
                      weight.shard_elements * kFloat, DType::kFp32, Issue::kBlocking,
                      {weight.main_gradient}, {weight.main_gradient});
      }
    }
    SetPhase(Phase::kSynchronize, -1);
    for (const uint32_t axis : strategy_.data_axes) {
      if (axis_sizes_[axis] == 1) continue;
      AddCollective("all-reduce gradients of biases and norms", CollectiveKind::kAllReduce, axis,
                    small_elements_ * kFloat, DType::kFp32, Issue::kBlocking, {small_gradients_},
                    {small_gradients_});
    }
  }

  // Gradient norm over all shards (one number travels), then Adam: reads the gradient, reads and writes
  // master weight and two moments in fp32, writes the bf16 weight.
  void Update() {
    builder_->set_tag({Phase::kUpdate, -1, 0});
    std::vector<BufferId> gradients = {small_gradients_};
    std::vector<BufferId> parameters = {small_parameters_, optimizer_state_};
    for (size_t i = 0; i + 1 < weights_.size(); ++i) {
      gradients.push_back(weights_[i].main_gradient);
      parameters.push_back(weights_[i].shard);
    }
    const BufferId norm = builder_->AddBuffer("gradient norm", BufferKind::kBuffer, Bytes(kFloat));
    AddMemoryOp("gradient norm", parameter_elements_ * kFloat, gradients, {norm});
    uint32_t ranks = 1;
    for (uint32_t axis = 0; axis < axis_sizes_.size(); ++axis) {
      if (!IsPureDataAxis(axis)) ranks *= axis_sizes_[axis];
    }
    if (ranks > 1) {
      AddCollective("all-reduce gradient norm", CollectiveKind::kAllReduce,
                    model_communicator_.index(), kFloat, DType::kFp32, Issue::kBlocking, {norm},
                    {norm});
    }
    std::vector<BufferId> reads = gradients;
    reads.push_back(norm);
    AddMemoryOp("Adam", parameter_elements_ * (kFloat + 6 * kFloat + kElement), reads, parameters);
  }

  const GptModel& model_;
  const Training& training_;
  const GptStrategy& strategy_;
  const Place place_;
  std::vector<uint32_t> axis_sizes_;
  RoleBuilder* builder_ = nullptr;
  CommunicatorId model_communicator_;
  std::vector<Weight> weights_;  // embedding, four a layer, output: the order of the forward pass
  double small_elements_ = 0;
  double parameter_elements_ = 0;
  BufferId small_parameters_;
  BufferId small_gradients_;
  BufferId optimizer_state_;
};

}  // namespace

Schedule PlanGpt(const GptModel& model, const Training& training, const GptStrategy& strategy,
                 const Place& place) {
  return Planner(model, training, strategy, place).Run();
}

}  // namespace rehearse
