// What a network computes in one training step, wherever it runs: a graph of tensor operations.
//
// Values are matrices, for one micro-batch at a time; a row is a token, a sample or a pixel of one.
// Nodes come in the order in which they run, each after its inputs; nodes of one layer are
// consecutive and are what full recomputation computes again. Parameters are matrices (of products)
// and vectors (biases, gains). The rules of each kind of node, forward and backward, are in
// workloads/planner/node_rules.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "workloads/networks/training.h"

namespace rehearse {

// What a node computes from its inputs, X the first and Z the second; see sim/schedule/kernel.h
// for the formulas.
enum class NodeKind : uint8_t {
  kInput,        // the data; has no gradient
  kEmbedding,    // rows of a table
  kProduct,      // X·W
  kBias,         // X + bias, in place
  kBiasGelu,     // gelu(X + bias)
  kSwiGlu,       // silu(gate)·up of column pairs
  kSquaredRelu,  // max(X, 0)²
  kRelu,         // of X + bias
  kDropout,      // of X
  kNorm,         // layer norm with gain and bias
  kRmsNorm,      // with gain
  kAttention,    // softmax(Q·K^T)·V
  kJoinHeads,    // Q, K with V, and what all keys share, as groups of heads
  kStateSpace,   // all between the two products of a state-space layer
  kResidual,     // Z + dropout(X + bias)
  kAdd,          // Z + X
  kMaxPool,      // of an image
  kUpsample,     // of an image, twice in each direction
  kFlatten,      // an image becomes a row
  kConcatenate,  // columns of X and Z in alternating blocks
  kGroupNorm,    // over the pixels of groups of channels, with gain and bias
  kModulate,     // Z·(1 + a) + b with the pairs (a, b) in X's row of the image
  // Experts (sim/schedule/expert_routing.h): the weights of each token's choices from the router's
  // logits; a row for each choice, on its way to the experts and there, expert by expert; products
  // with each expert's own matrix; their results on the way back; and X weighted by Z and added up.
  kRoute,
  kDispatch,
  kArrive,
  kGroupedProduct,
  kReturn,
  kCombine,
  kCrossEntropy,  // the loss
  kSquaredError,  // the loss of networks without classes
};
inline constexpr size_t kNodeKinds = 30;

// The part that a product plays, by which strategies choose its layout: products alternate between
// first and second.
enum class MatrixRole : uint8_t {
  kTable,   // V×h of an embedding, the product of one-hot rows
  kQkv,     // a first product whose result feeds an attention core
  kFirst,   // of a pair: h×4h
  kSecond,  // 4h×h
  kHead,    // a first product whose result feeds the loss
  kStem,    // its input has too few columns to split: the colours of an image
  kTail,    // its result has too few columns to split
  kWhole,   // only rows are split: from a token to a short vector
  kUp,      // a first product, from a short vector to heads
  kRouter,  // h×E, a column for each expert
  // The matrices of all experts: E first ones (h×f) above one another, or E second ones (f×h) side
  // by side.
  kExpertFirst,
  kExpertSecond,
};
inline constexpr size_t kMatrixRoles = 12;
inline constexpr bool IsOfExperts(MatrixRole role) {
  return role == MatrixRole::kExpertFirst || role == MatrixRole::kExpertSecond;
}

// W (k×n) of a product, V×h of an embedding.
struct NetworkMatrix {
  std::string name;  // "qkv"
  int32_t layer = -1;
  uint64_t k = 0;
  uint64_t n = 0;
  MatrixRole role = MatrixRole::kFirst;
  // The matrix that this one is (or is the transpose of, if one of them is a table), having no
  // parameters of its own: an output layer tied to the embedding.
  std::optional<uint32_t> tied;
  bool is_frozen = false;  // no step changes it, so it has no gradient

  bool IsTable() const { return role == MatrixRole::kTable; }
  friend bool operator==(const NetworkMatrix&, const NetworkMatrix&) = default;
};

struct NetworkVector {
  std::string name;
  int32_t layer = -1;
  uint64_t size = 0;
  bool is_frozen = false;

  friend bool operator==(const NetworkVector&, const NetworkVector&) = default;
};

// The parts of an image that a convolution multiplies by its weights, each a row of channels ×
// kernel × kernel inputs.
struct Window {
  uint64_t height = 0;  // of the image
  uint64_t width = 0;
  uint64_t kernel = 1;
  uint64_t stride = 1;
  uint64_t padding = 0;

  uint64_t OutHeight() const { return (height + 2 * padding - kernel) / stride + 1; }
  uint64_t OutWidth() const { return (width + 2 * padding - kernel) / stride + 1; }
  friend bool operator==(const Window&, const Window&) = default;
};

// What selective recomputation has to tell apart beyond kinds of nodes.
enum class LayerPart : uint8_t { kOther, kAttentionOutput };

struct NetworkNode {
  NodeKind kind = NodeKind::kInput;
  std::string name;         // of the value: "q, k, v"
  std::string op;           // of the forward op: "bias, split q, k, v"
  std::string backward_op;  // empty if it follows from `op`
  int32_t layer = -1;
  std::vector<uint32_t> inputs;  // nodes
  uint64_t rows = 0;             // of a micro-batch, over all ranks
  uint64_t columns = 0;
  std::optional<uint32_t> matrix;
  std::optional<Window> window;   // kProduct: of the windows of X, an image
  std::vector<uint32_t> vectors;  // bias; gain and bias of a norm
  // kBias: more if it splits its operand into several arrays, 0 if the kernel after it adds the
  // bias.
  uint32_t kernels = 1;
  // kAttention: elements of a row that are first rotated by their positions (rotary embedding; it
  // only takes time, backends do not compute it).
  uint64_t rotary = 0;
  bool scaled_rotary = false;  // with scaled sines and cosines
  // kAttention: these elements are normalised by head before. kSwiGlu: its operand is clamped.
  // kGroupedProduct: a bias is added to each expert's result. All three only take time.
  bool has_extra = false;
  // kAttention: sequence, groups, heads per group, head size, causal, window if any, ...
  // kJoinHeads: those of its kernel, over all ranks. kStateSpace: StateSpaceAttribute
  // (sim/schedule/state_space.h), over all ranks. kEmbedding, kCrossEntropy: those of their
  // kernels. kDropout, kResidual: probability. Nodes of images: as their kernels
  // (sim/schedule/kernel.h), over all ranks. kRoute, kDispatch, kCombine: RoutingAttribute
  // (sim/schedule/expert_routing.h). kGroupedProduct: experts, rows of an expert's matrix.
  std::vector<double> attributes;
  // Columns belong together in so many equal units ("64 attention heads") that no split may cut.
  uint64_t units = 0;
  std::string unit_name;
  bool whole_samples = false;  // rows of one sample must stay together: attention, images
  LayerPart part = LayerPart::kOther;
  bool of_choices = false;  // has a row for each kept choice of a token, not for each token
  // Layers whose attention and MLP stand side by side (GptModel::parallel). `joins`: a product, or
  // the kAdd of two, whose results are added before they are summed over ranks. `shares`: a norm
  // whose products share what brings it to them, and the sum of its gradients over ranks.
  bool joins = false;
  bool shares = false;

  friend bool operator==(const NetworkNode&, const NetworkNode&) = default;
};

// Layers that a network stands for without having them (workloads/planner/fewer_layers.h).
struct LeftOutLayers {
  uint32_t count = 0;
  int32_t like = 0;  // the layer that they equal
};

struct Network {
  std::string name;
  int32_t layers = 0;
  LeftOutLayers left_out = {};
  uint64_t samples = 0;  // of the step, over all ranks
  std::string sample_name = "samples";
  // Rows of a sample that only attention brings together (tokens), so that ranks may share them. 0:
  // rows of a sample stay together.
  uint64_t sequence = 0;
  uint32_t micro_batches = 1;
  std::vector<NetworkMatrix> matrices;  // in the order in which the forward pass uses them
  std::vector<NetworkVector> vectors;
  std::vector<NetworkNode> nodes;
  Flops model_flops;  // of the step over all ranks, without recomputation (RecomputedFlops)
  double tokens = 0;
  std::string token_name = "tokens";  // what they are
  bool draws_experts = false;         // which are busy is left open: any seed will do
  bool draws_by_micro_batch = false;  // which are busy changes with each micro-batch

  double Parameters() const;         // tied matrices counted once
  double TrainedParameters() const;  // those of them that are not frozen
};

// The network with everything but its matrices, vectors and nodes.
Network WithoutParts(const Network& network);

// Flops of the products and attention cores of one step over all ranks: a forward pass, and what
// the training recomputes. Work that several ranks do counts once, and a core counts without its
// mask.
Flops ForwardFlops(const Network& network);
// With full recomputation, `again` says which layers count; if it is empty, all do.
Flops RecomputedFlops(const Network& network, const Training& training,
                      const std::vector<bool>& again = {});

// Where full recomputation of the layer with the nodes [begin, end) stops: at `end`, or at the
// layer's last product if the training leaves that out and what is behind it keeps nothing.
// PyTorch stops when the last tensor is saved: a function of Python, as products of 8 bits are,
// saves it after its product, unless the layer is compiled and so leaves out what nothing needs.
uint32_t EndOfRecomputation(const Network& network, const Training& training, uint32_t begin,
                            uint32_t end);

// Whether selective recomputation drops the node's value and recomputes it.
bool IsRecomputedOp(const Network& network, const NetworkNode& node, const Training& training);
// The share of such a result that is kept all the same, and not computed again.
double KeptShareOf(const Network& network, const NetworkNode& node, const Training& training);

// Adds nodes in order; each call returns the node's number.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(Network* network) : network_(*network) {}

  void set_layer(int32_t layer) { layer_ = layer; }
  // What the names of parameters that are added from now on begin with.
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  // Whether parameters that are added from now on are frozen.
  void set_frozen(bool is_frozen) { is_frozen_ = is_frozen; }
  const NetworkNode& Node(uint32_t index) const { return network_.nodes[index]; }
  uint32_t Add(NetworkNode node);
  uint32_t AddMatrix(const std::string& name, uint64_t k, uint64_t n, MatrixRole role);
  uint32_t AddVector(const std::string& name, uint64_t size);

  // These are the usual nodes; their values have the rows of their inputs.
  uint32_t Embedding(std::string name, uint64_t rows, uint64_t vocabulary, uint64_t columns);
  uint32_t Product(uint32_t x, const std::string& weight, uint64_t n, std::string name,
                   MatrixRole role);
  // A node with one or two equally shaped operands. `op` is the name of its op; if empty, the
  // value's.
  uint32_t Map(NodeKind kind, std::vector<uint32_t> inputs, std::string name, std::string op = "",
               std::string backward_op = "");

 private:
  Network& network_;
  int32_t layer_ = -1;
  std::string scope_;
  bool is_frozen_ = false;
};

}  // namespace rehearse
