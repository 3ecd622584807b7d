#include "workloads/networks/decoder_network.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/expert_routing.h"

namespace rehearse {
namespace {

constexpr double kDropout = 0.1;  // GPT's; any other probability costs the same

class Decoder {
 public:
  Decoder(const GptModel& model, const Training& training, Network* network)
      : model_(model), training_(training), network_(*network), builder_(network) {}

  void Build() {
    builder_.set_frozen(model_.lora.has_value());
    const uint64_t rows = training_.batch * training_.sequence / training_.micro_batches;
    uint32_t x = builder_.Embedding("embedding", rows, model_.vocabulary, model_.hidden);
    if (DropsOut()) {
      x = builder_.Map(NodeKind::kDropout, {x}, "embedding dropout");
      Last().attributes = {kDropout};
    }
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      builder_.set_layer(static_cast<int32_t>(layer));
      x = Layer(x, layer);
    }
    builder_.set_layer(-1);
    const uint32_t last = x;
    x = Norm(x, "final norm");
    x = builder_.Product(x, "output", model_.vocabulary, "logits", MatrixRole::kHead);
    if (model_.tied) network_.matrices.back().tied = 0;
    builder_.Map(NodeKind::kCrossEntropy, {x}, "loss");
    if (model_.predict_ahead > 0) PredictAhead(last);
  }

 private:
  // Predicts tokens after the next one, each from what the layer before knows about a token joined
  // with the token before the one to be predicted. Its node belongs to the output layer's unit,
  // where it is the same on all ranks of a tensor.
  void PredictAhead(uint32_t x) {
    const auto output = static_cast<uint32_t>(network_.matrices.size() - 1);
    AheadWeights first;
    for (uint32_t ahead = 1; ahead <= model_.predict_ahead; ++ahead) {
      const AheadWeights own = {network_.matrices.size(), network_.vectors.size(),
                                network_.nodes.size()};
      x = PredictOneAhead(x, ahead, output);
      if (ahead == 1) first = own;
      if (ahead > 1 && model_.shares_ahead) Share(own, first);
    }
  }

  // Where those of a layer that predicts further ahead begin.
  struct AheadWeights {
    size_t matrix = 0;
    size_t vector = 0;
    size_t node = 0;
  };

  // Gives a layer the weights of another that was built like it.
  void Share(const AheadWeights& own, const AheadWeights& other) {
    for (size_t i = own.matrix; i < network_.matrices.size(); ++i) {
      if (!network_.matrices[i].tied)
        network_.matrices[i].tied = static_cast<uint32_t>(other.matrix + i - own.matrix);
    }
    for (size_t i = own.node; i < network_.nodes.size(); ++i) {
      for (uint32_t& vector : network_.nodes[i].vectors)
        vector = static_cast<uint32_t>(other.vector + vector - own.vector);
    }
    network_.vectors.resize(own.vector);
  }

  // Returns what the layer knows.
  uint32_t PredictOneAhead(uint32_t x, uint32_t ahead, uint32_t output) {
    const std::string scope = ahead > 1 ? fmt::format("{} tokens ", ahead) : "";
    builder_.set_scope(scope);
    const uint32_t before = Norm(x, "ahead norm");
    uint32_t next = builder_.Embedding("ahead embedding", builder_.Node(x).rows, model_.vocabulary,
                                       model_.hidden);
    network_.matrices.back().tied = 0;
    Last().attributes = {static_cast<double>(ahead)};
    next = Norm(next, "ahead embedding norm");
    uint32_t y = builder_.Map(NodeKind::kConcatenate, {before, next}, "ahead joined", "join ahead");
    Last().columns = 2 * model_.hidden;
    Last().attributes = {static_cast<double>(model_.hidden)};
    y = builder_.Product(y, "ahead join", model_.hidden, "ahead hidden", MatrixRole::kWhole);
    const auto layers = std::max<uint32_t>(1, static_cast<uint32_t>(model_.ahead_pattern.size()));
    for (uint32_t i = 0; i < layers; ++i) {
      if (i > 0) builder_.set_scope(scope + fmt::format("part {} ", i + 1));
      y = Layer(y, model_.layers + (ahead - 1) * layers + i);
    }
    builder_.set_scope(scope);
    const uint32_t last = y;
    y = Norm(y, "ahead final norm");
    y = builder_.Product(y, "ahead output", model_.vocabulary, "ahead logits", MatrixRole::kHead);
    network_.matrices.back().tied = output;
    builder_.Map(NodeKind::kCrossEntropy, {y}, "ahead loss");
    Last().attributes = {static_cast<double>(ahead), model_.ahead_weight};
    builder_.set_scope("");
    return last;
  }

  // y, which is x times the weight, and what the weight's adapters add to it. `up` is the role of a
  // product whose result lies as y does.
  uint32_t Adapted(uint32_t x, uint32_t y, bool LoraTargets::*target, const std::string& weight,
                   MatrixRole up) {
    if (!model_.lora || !(model_.lora->on.*target)) return y;
    const NetworkNode base = builder_.Node(y);
    builder_.set_frozen(false);
    const bool is_second = up == MatrixRole::kWhole;
    uint32_t z = builder_.Product(x, weight + " A", model_.lora->rank, weight + " A",
                                  is_second ? MatrixRole::kSecond : MatrixRole::kWhole);
    z = builder_.Product(z, weight + " B", base.columns, weight + " B", up);
    Last().units = base.units;
    Last().unit_name = base.unit_name;
    builder_.set_frozen(true);
    z = builder_.Map(NodeKind::kAdd, {z, y}, base.name, "add " + weight + " B");
    Last().units = base.units;
    Last().unit_name = base.unit_name;
    return z;
  }

  uint32_t Layer(uint32_t x, uint32_t layer) {
    if (!model_.layer_pattern.empty()) return LayerOfPattern(x, layer);
    if (model_.parallel != ParallelBlocks::kNone) return SideBySide(x, layer);
    const uint32_t h = Norm(x, "norm 1");
    const uint32_t y = Attention(h, x, layer);
    if (model_.experts && model_.experts->IsIn(layer)) return Experts(Norm(y, "norm 2"), y, layer);
    return FeedForward(Norm(y, "norm 2"), y);
  }

  // x and what attention and the MLP make of it, which are added first: one sum over ranks serves
  // both, and so does one dropout.
  uint32_t SideBySide(uint32_t x, uint32_t layer) {
    const bool is_one = model_.parallel == ParallelBlocks::kOneNorm;
    const uint32_t h = Norm(x, "norm 1");
    network_.nodes[h].shares = is_one;
    const uint32_t other = is_one ? h : Norm(x, "norm 2");
    const uint32_t attention = AttentionResult(h, layer);
    const uint32_t mlp = FeedForwardResult(other);
    uint32_t y = builder_.Map(NodeKind::kAdd, {attention, mlp}, "attention and mlp");
    // What adapters add rests by itself.
    const auto is_product = [&](uint32_t node) {
      return network_.nodes[node].kind == NodeKind::kProduct;
    };
    if (is_product(attention) && is_product(mlp)) {
      for (const uint32_t node : {attention, mlp, y}) network_.nodes[node].joins = true;
    }
    if (!model_.llama) y = BiasOfSum(y, "projection");
    return Residual(y, x, "down", "residual");
  }

  // A norm and one of what a layer may consist of, whose result is added to x.
  uint32_t LayerOfPattern(uint32_t x, uint32_t layer) {
    const uint32_t h = Norm(x, "norm");
    switch (static_cast<LayerLetter>(letters_[layer])) {
      case LayerLetter::kStateSpace: {
        const uint32_t y = AddStateSpace(model_.mamba.value_or(StateSpaceModel()),
                                         training_.Attended(), h, &network_, &builder_);
        return builder_.Map(NodeKind::kAdd, {y, x}, "residual");
      }
      case LayerLetter::kAttention:
        return Attention(h, x, layer);
      case LayerLetter::kMlp:
        return FeedForward(h, x);
      case LayerLetter::kExperts:
        return Experts(h, x, layer);
    }
    internal::FailCheck(__FILE__, __LINE__, "unknown letter of a layer");
  }

  NetworkNode& Last() { return network_.nodes.back(); }
  bool DropsOut() const { return !model_.llama && training_.dropout; }

  uint32_t Norm(uint32_t x, const std::string& name) {
    const uint32_t y = builder_.Map(model_.llama ? NodeKind::kRmsNorm : NodeKind::kNorm, {x}, name);
    Last().vectors = {builder_.AddVector(name + " gain", model_.hidden)};
    if (!model_.llama) Last().vectors.push_back(builder_.AddVector(name + " bias", model_.hidden));
    return y;
  }

  uint32_t BiasOfSum(uint32_t y, const std::string& weight) {
    y = builder_.Map(NodeKind::kBias, {y}, weight, weight + " bias");
    Last().vectors = {builder_.AddVector(weight + " bias", model_.hidden)};
    Last().kernels = 0;  // the sum's kernel adds it
    return y;
  }

  // x + dropout(y + bias), x + (y + bias), or x + y.
  uint32_t Residual(uint32_t y, uint32_t x, const std::string& weight, const std::string& name) {
    if (model_.llama) return builder_.Map(NodeKind::kAdd, {y, x}, name);
    if (!DropsOut()) return builder_.Map(NodeKind::kAdd, {BiasOfSum(y, weight), x}, name);
    const uint32_t sum = builder_.Map(NodeKind::kResidual, {y, x}, name, "bias, dropout, " + name,
                                      "dropout, bias backward");
    Last().vectors = {builder_.AddVector(weight + " bias", model_.hidden)};
    Last().attributes = {kDropout};
    return sum;
  }

  // x and what attention makes of h.
  uint32_t Attention(uint32_t h, uint32_t x, uint32_t layer) {
    const auto begin = AttentionResult(h, layer);
    const uint32_t end = Residual(begin, x, "projection", "residual 1");
    for (uint32_t node = begin; node <= end; ++node)
      network_.nodes[node].part = LayerPart::kAttentionOutput;
    return end;
  }

  // What attention makes of h, before a bias.
  uint32_t AttentionResult(uint32_t h, uint32_t layer) {
    const uint64_t groups = model_.Groups();
    const uint64_t size = model_.HeadSize();
    const uint64_t of_group = model_.heads / groups;
    const uint64_t columns = groups * (of_group + 2) * size;
    if (model_.latent) {
      const LatentCore core{model_.heads, training_.Attended(), model_.WindowOf(layer)};
      return AttentionOutput(AddLatentCore(*model_.latent, core, h, &network_, &builder_));
    }
    uint32_t y = builder_.Product(h, "qkv", columns, "q, k, v", MatrixRole::kQkv);
    SetHeads(groups);
    y = Adapted(h, y, &LoraTargets::qkv, "qkv", MatrixRole::kUp);
    if (!model_.llama) {
      y = builder_.Map(NodeKind::kBias, {y}, "q, k, v", "bias, split q, k, v",
                       "join d q, k, v, bias backward");
      Last().vectors = {builder_.AddVector("qkv bias", columns)};
      Last().kernels = 3;  // Q, K and V become arrays of their own
    }
    y = builder_.Map(NodeKind::kAttention, {y}, "attention");
    Last().columns = model_.heads * size;
    Last().attributes = {static_cast<double>(training_.Attended()), static_cast<double>(groups),
                         static_cast<double>(of_group), static_cast<double>(size), 1};
    const uint64_t window = model_.WindowOf(layer);
    if (window > 0 && window < training_.Attended())
      Last().attributes.push_back(static_cast<double>(window));
    Last().whole_samples = true;
    if (model_.llama && model_.rotary) Last().rotary = (model_.heads + groups) * size;
    Last().scaled_rotary = model_.scaled_rotary;
    Last().has_extra = model_.llama && model_.head_norms;
    SetHeads(groups);
    return AttentionOutput(y);
  }

  uint32_t AttentionOutput(uint32_t y) {
    const uint32_t begin =
        builder_.Product(y, "projection", model_.hidden, "projection", MatrixRole::kSecond);
    const uint32_t end =
        Adapted(y, begin, &LoraTargets::projection, "projection", MatrixRole::kWhole);
    for (uint32_t node = begin; node <= end; ++node)
      network_.nodes[node].part = LayerPart::kAttentionOutput;
    return end;
  }

  void SetHeads(uint64_t groups) {
    Last().units = groups;
    Last().unit_name = groups == model_.heads ? "attention heads" : "groups of attention heads";
  }

  // x and what the MLP makes of h.
  uint32_t FeedForward(uint32_t h, uint32_t x) {
    return Residual(FeedForwardResult(h), x, "down", "residual 2");
  }

  // What the MLP makes of h, before a bias.
  uint32_t FeedForwardResult(uint32_t h) {
    const uint64_t columns = model_.FeedForward();
    uint32_t y = builder_.Product(h, "up", Gated(columns), "mlp up", MatrixRole::kFirst);
    y = Adapted(h, y, &LoraTargets::up, "up", MatrixRole::kFirst);
    if (model_.llama) {
      y = Activated(y, columns, "");
    } else {
      y = builder_.Map(NodeKind::kBiasGelu, {y}, "gelu", "bias, gelu", "gelu, bias backward");
      Last().vectors = {builder_.AddVector("up bias", columns)};
    }
    const uint32_t z = y;
    y = builder_.Product(z, "down", model_.hidden, "mlp down", MatrixRole::kSecond);
    return Adapted(z, y, &LoraTargets::down, "down", MatrixRole::kWhole);
  }

  // The columns of the product that an activation with so many results takes.
  uint64_t Gated(uint64_t columns) const { return model_.IsGated() ? 2 * columns : columns; }

  uint32_t Activated(uint32_t x, uint64_t columns, const std::string& of) {
    const NodeKind kind = model_.IsGated() ? NodeKind::kSwiGlu : NodeKind::kSquaredRelu;
    const uint32_t y = builder_.Map(kind, {x}, of + (model_.IsGated() ? "swiglu" : "squared relu"));
    Last().columns = columns;
    Last().of_choices = builder_.Node(x).of_choices;
    return y;
  }

  // A node whose rows are choices.
  uint32_t Choices(NodeKind kind, uint32_t x, const std::string& name, uint64_t rows) {
    const uint32_t y = builder_.Map(kind, {x}, name);
    Last().rows = rows;
    Last().of_choices = true;
    return y;
  }

  uint32_t Grouped(uint32_t x, const std::string& weight, uint64_t columns, const std::string& name,
                   MatrixRole role) {
    const uint64_t experts = model_.experts->count;
    const uint64_t k = builder_.Node(x).columns;
    const uint32_t y = Choices(NodeKind::kGroupedProduct, x, name, builder_.Node(x).rows);
    const bool is_first = role == MatrixRole::kExpertFirst;
    Last().op = weight;
    Last().columns = columns;
    Last().attributes = {static_cast<double>(experts), static_cast<double>(k)};
    Last().matrix = builder_.AddMatrix(weight, is_first ? experts * k : k,
                                       is_first ? columns : experts * columns, role);
    return y;
  }

  // The shared expert comes where Megatron-LM has it, so that it may run beside the tokens' travel:
  // its first half on the way there, its second on the way back.
  uint32_t Experts(uint32_t h, uint32_t x, uint32_t layer) {
    const ExpertModel& experts = *model_.experts;
    std::vector<double> routing = experts.RoutingAttributes();
    routing[kRoutingSeed] += layer * 1e6;  // so that each layer has other busy experts
    const uint64_t kept = KeptRows(MakeRouting(routing), builder_.Node(x).rows);
    const uint32_t logits =
        builder_.Product(h, "router", experts.count, "router logits", MatrixRole::kRouter);
    const uint32_t weights =
        builder_.Map(NodeKind::kRoute, {logits}, "choices", "route", "route backward");
    Last().columns = experts.per_token;
    Last().attributes = routing;
    uint32_t y = h;
    if (experts.latent > 0)
      y = builder_.Product(h, "latent down", experts.latent, "latent tokens", MatrixRole::kWhole);
    y = Choices(NodeKind::kDispatch, y, "tokens of experts", kept);
    Last().inputs.push_back(weights);
    Last().op = "permute";
    Last().attributes = routing;
    uint32_t shared = 0;
    if (experts.shared > 0) {
      shared =
          builder_.Product(h, "shared up", Gated(experts.shared), "shared up", MatrixRole::kFirst);
      shared = Activated(shared, experts.shared, "shared ");
    }
    y = Choices(NodeKind::kArrive, y, "rows of experts", kept);
    Last().attributes = {static_cast<double>(experts.count)};
    y = Grouped(y, "experts up", Gated(experts.hidden), "experts up", MatrixRole::kExpertFirst);
    y = Activated(y, experts.hidden, "experts ");
    Last().has_extra = experts.biased;
    const uint64_t columns = experts.latent > 0 ? experts.latent : model_.hidden;
    y = Grouped(y, "experts down", columns, "experts down", MatrixRole::kExpertSecond);
    Last().has_extra = experts.biased;
    y = Choices(NodeKind::kReturn, y, "results of experts", kept);
    Last().attributes = {static_cast<double>(experts.count)};
    if (experts.shared > 0) {
      shared = builder_.Product(shared, "shared down", model_.hidden, "shared down",
                                MatrixRole::kSecond);
    }
    y = builder_.Map(NodeKind::kCombine, {y, weights}, "experts", "combine", "combine backward");
    Last().rows = builder_.Node(x).rows;
    Last().columns = columns;
    Last().attributes = routing;
    if (experts.latent > 0)
      y = builder_.Product(y, "latent up", model_.hidden, "latent results", MatrixRole::kWhole);
    if (experts.shared > 0) y = builder_.Map(NodeKind::kAdd, {shared, y}, "shared and experts");
    return builder_.Map(NodeKind::kAdd, {y, x}, "residual 2");
  }

  const GptModel& model_;
  const Training& training_;
  const std::string letters_ = model_.Letters();
  Network& network_;
  NetworkBuilder builder_;
};

}  // namespace

Network MakeDecoder(const GptModel& model, const Training& training) {
  Network network;
  network.name = model.name;
  network.layers = static_cast<int32_t>(model.layers);
  network.samples = training.batch;
  network.sample_name = "sequences";
  // Ranks share no sequence of several documents.
  network.sequence = training.Attended() == training.sequence ? training.sequence : 0;
  network.micro_batches = training.micro_batches;
  network.tokens = training.Tokens();
  network.model_flops = ModelFlops(model, training.Tokens(), training.Attended());
  network.draws_experts =
      model.experts && !model.experts->seed && model.experts->balanced_over == 1;
  network.draws_by_micro_batch =
      model.experts && model.experts->imbalance > 1 && model.experts->drawn_by_micro_batch;
  Decoder(model, training, &network).Build();
  return network;
}

}  // namespace rehearse
