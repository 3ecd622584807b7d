#include "workloads/networks/network.h"

#include <utility>

#include "sim/base/error.h"
#include "sim/schedule/attention_part.h"
#include "sim/schedule/state_space.h"

namespace rehearse {

Network WithoutParts(const Network& network) {
  return {.name = network.name,
          .layers = network.layers,
          .left_out = network.left_out,
          .samples = network.samples,
          .sample_name = network.sample_name,
          .sequence = network.sequence,
          .micro_batches = network.micro_batches,
          .matrices = {},
          .vectors = {},
          .nodes = {},
          .model_flops = network.model_flops,
          .tokens = network.tokens,
          .token_name = network.token_name,
          .draws_experts = network.draws_experts,
          .draws_by_micro_batch = network.draws_by_micro_batch};
}

namespace {

double ParametersOf(const Network& network, bool only_trained) {
  double sum = 0;
  for (const NetworkMatrix& matrix : network.matrices) {
    if (matrix.tied || (only_trained && matrix.is_frozen)) continue;
    sum += static_cast<double>(matrix.k) * static_cast<double>(matrix.n);
  }
  for (const NetworkVector& vector : network.vectors)
    sum += only_trained && vector.is_frozen ? 0 : static_cast<double>(vector.size);
  return sum;
}

}  // namespace

double Network::Parameters() const { return ParametersOf(*this, /*only_trained=*/false); }
double Network::TrainedParameters() const { return ParametersOf(*this, /*only_trained=*/true); }

namespace {

// A token sees no more keys than its window has, and no mask reduces them.
double KeysOfToken(const NetworkNode& node) {
  const double window =
      node.attributes.size() > kAttentionWindow ? node.attributes[kAttentionWindow] : 0;
  const double sequence = node.attributes[kAttentionSequence];
  return window > 0 ? std::min(window, sequence) : sequence;
}

// The sum over nodes, each by the share that `share_of` gives it.
template <typename ShareOf>
Flops ForwardFlopsOf(const Network& network, const ShareOf& share_of) {
  double flops = 0;
  for (const NetworkNode& node : network.nodes) {
    const double share = share_of(node);
    if (share == 0) continue;
    const auto elements =
        share * static_cast<double>(node.rows) * static_cast<double>(node.columns);
    if (node.kind == NodeKind::kProduct) {
      flops += 2 * elements * static_cast<double>(network.matrices[*node.matrix].k);
    }
    if (node.kind == NodeKind::kGroupedProduct) flops += 2 * elements * node.attributes[1];
    // The core has two products, QK^T and PV.
    if (node.kind == NodeKind::kAttention)
      flops += 4 * elements * WidthOfCore(node.attributes) * KeysOfToken(node);
    if (node.kind == NodeKind::kStateSpace)
      flops += share * static_cast<double>(node.rows) * StateSpaceOf(node.attributes).FlopsOfRow();
  }
  return Flops(flops * network.micro_batches);
}

}  // namespace

Flops ForwardFlops(const Network& network) {
  return ForwardFlopsOf(network, [](const NetworkNode&) { return 1.0; });
}

namespace {

// The first node of this kind after it, in its layer.
const NetworkNode* NextOf(const Network& network, const NetworkNode& node, NodeKind kind) {
  for (auto i = static_cast<size_t>(&node - network.nodes.data()); i < network.nodes.size(); ++i) {
    if (network.nodes[i].layer != node.layer) return nullptr;
    if (network.nodes[i].kind == kind) return &network.nodes[i];
  }
  return nullptr;
}

// Attention's output is the fourth product of a layer, or behind latent vectors the fifth.
bool HasSecondOutput(const Network& network, const NetworkNode& node) {
  for (auto i = static_cast<size_t>(&node - network.nodes.data()); i-- > 0;) {
    if (network.nodes[i].layer != node.layer) return true;
    if (network.nodes[i].kind == NodeKind::kJoinHeads) return false;
  }
  return true;
}

}  // namespace

double KeptShareOf(const Network& network, const NetworkNode& node, const Training& training) {
  const RecomputedOps& ops = training.recomputed_ops;
  if (node.kind != NodeKind::kProduct || !ops.second_products) return 0;
  const MatrixRole role = network.matrices[*node.matrix].role;
  if (role == MatrixRole::kFirst) {
    const bool are_two = NextOf(network, node, NodeKind::kSwiGlu) != nullptr;
    return ops.first || !are_two ? 0 : 0.5;
  }
  if (role != MatrixRole::kQkv || ops.inputs) return 0;
  const NetworkNode* const core = NextOf(network, node, NodeKind::kAttention);
  if (core == nullptr) return 0;
  const double queries = core->attributes[2];  // of a group
  return (queries + 1) / (queries + 2);
}

bool IsRecomputedOp(const Network& network, const NetworkNode& node, const Training& training) {
  if (training.recomputation != Recomputation::kSelective || node.layer < 0) return false;
  const RecomputedOps& ops = training.recomputed_ops;
  switch (node.kind) {
    case NodeKind::kAttention:  // an unfused core's rule does it on its own
      return ops.attention && training.FusesAttention();
    case NodeKind::kSwiGlu:
    case NodeKind::kSquaredRelu:
    case NodeKind::kBiasGelu:
      return ops.activations || (ops.experts && node.of_choices);
    case NodeKind::kDispatch:
    case NodeKind::kArrive:
    case NodeKind::kReturn:
      return ops.experts;
    case NodeKind::kNorm:
    case NodeKind::kRmsNorm:
      return ops.norms;
    case NodeKind::kBias: {  // in place
      const NetworkNode& of = network.nodes[node.inputs.front()];
      if (of.matrix && network.matrices[*of.matrix].role == MatrixRole::kQkv)
        return ops.inputs || ops.second_products;
      return node.part == LayerPart::kAttentionOutput && ops.output;
    }
    case NodeKind::kJoinHeads:
      return ops.projections || ops.second_products;
    case NodeKind::kProduct:
    case NodeKind::kGroupedProduct:
      switch (network.matrices[*node.matrix].role) {
        case MatrixRole::kUp:
          return ops.projections || ops.second_products;
        case MatrixRole::kQkv:
          return ops.inputs || ops.second_products;
        case MatrixRole::kFirst:
          return ops.first || ops.second_products;
        case MatrixRole::kExpertFirst:
          return ops.first || ops.experts;
        case MatrixRole::kExpertSecond:
          return ops.experts;
        default:
          break;
      }
      [[fallthrough]];
    default:
      return node.part == LayerPart::kAttentionOutput && !node.joins &&
             (ops.output || (ops.second_products && HasSecondOutput(network, node)));
  }
}

uint32_t EndOfRecomputation(const Network& network, const Training& training, uint32_t begin,
                            uint32_t end) {
  const bool ends_late =
      training.products != ProductRecipe::kNone && training.kernels != KernelStyle::kCompiled;
  if (training.recomputes_last_product || ends_late) return end;
  for (uint32_t node = end; node-- > begin;) {
    const NodeKind kind = network.nodes[node].kind;
    if (kind == NodeKind::kProduct) return node;
    const bool is_sum = kind == NodeKind::kAdd || kind == NodeKind::kBias;
    if (!is_sum) break;
  }
  return end;
}

namespace {

// Which nodes full recomputation leaves out at the ends of layers.
std::vector<bool> LeftOutOf(const Network& network, const Training& training) {
  const auto count = static_cast<uint32_t>(network.nodes.size());
  std::vector<bool> is_left_out(count, false);
  for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
    const int32_t layer = network.nodes[begin].layer;
    for (end = begin; end < count && network.nodes[end].layer == layer;) ++end;
    for (uint32_t node = EndOfRecomputation(network, training, begin, end); node < end; ++node)
      is_left_out[node] = true;
  }
  return is_left_out;
}

}  // namespace

Flops RecomputedFlops(const Network& network, const Training& training,
                      const std::vector<bool>& again) {
  const std::vector<bool> is_left_out = LeftOutOf(network, training);
  return ForwardFlopsOf(network, [&](const NetworkNode& node) {
    switch (training.recomputation) {
      case Recomputation::kNone:
        return 0.0;
      case Recomputation::kSelective:
        if (node.kind == NodeKind::kAttention && !training.FusesAttention()) return 1.0;
        return IsRecomputedOp(network, node, training) ? 1 - KeptShareOf(network, node, training)
                                                       : 0.0;
      case Recomputation::kFull:
        return node.layer >= 0 && (again.empty() || again[static_cast<size_t>(node.layer)]) &&
                       !is_left_out[static_cast<size_t>(&node - network.nodes.data())]
                   ? 1.0
                   : 0.0;
    }
    internal::FailCheck(__FILE__, __LINE__, "unknown kind of recomputation");
  });
}

uint32_t NetworkBuilder::Add(NetworkNode node) {
  node.layer = layer_;
  for (const uint32_t input : node.inputs) CHECK_LT(input, network_.nodes.size());
  if (node.op.empty()) node.op = node.name;
  network_.nodes.push_back(std::move(node));
  return static_cast<uint32_t>(network_.nodes.size() - 1);
}

uint32_t NetworkBuilder::AddMatrix(const std::string& name, uint64_t k, uint64_t n,
                                   MatrixRole role) {
  network_.matrices.push_back({scope_ + name, layer_, k, n, role, std::nullopt, is_frozen_});
  return static_cast<uint32_t>(network_.matrices.size() - 1);
}

uint32_t NetworkBuilder::AddVector(const std::string& name, uint64_t size) {
  network_.vectors.push_back({scope_ + name, layer_, size, is_frozen_});
  return static_cast<uint32_t>(network_.vectors.size() - 1);
}

uint32_t NetworkBuilder::Embedding(std::string name, uint64_t rows, uint64_t vocabulary,
                                   uint64_t columns) {
  NetworkNode node;
  node.kind = NodeKind::kEmbedding;
  node.matrix = AddMatrix(name, vocabulary, columns, MatrixRole::kTable);
  node.name = std::move(name);
  node.rows = rows;
  node.columns = columns;
  return Add(std::move(node));
}

uint32_t NetworkBuilder::Product(uint32_t x, const std::string& weight, uint64_t n,
                                 std::string name, MatrixRole role) {
  NetworkNode node;
  node.kind = NodeKind::kProduct;
  node.matrix = AddMatrix(weight, Node(x).columns, n, role);
  node.name = std::move(name);
  node.op = weight;
  node.inputs = {x};
  node.rows = Node(x).rows;
  node.columns = n;
  return Add(std::move(node));
}

uint32_t NetworkBuilder::Map(NodeKind kind, std::vector<uint32_t> inputs, std::string name,
                             std::string op, std::string backward_op) {
  NetworkNode node;
  node.kind = kind;
  node.rows = Node(inputs.front()).rows;
  node.columns = Node(inputs.front()).columns;
  node.inputs = std::move(inputs);
  node.name = std::move(name);
  node.op = std::move(op);
  node.backward_op = std::move(backward_op);
  return Add(std::move(node));
}

}  // namespace rehearse
