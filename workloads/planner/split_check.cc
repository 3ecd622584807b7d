#include "workloads/planner/split_check.h"

#include <fmt/format.h>

#include "sim/schedule/expert_routing.h"
#include "workloads/planner/attention_ops.h"

namespace rehearse {
namespace {

class Checker {
 public:
  Checker(const Network& network, const Strategy& strategy, const Place& place)
      : network_(network), strategy_(strategy), place_(place) {
    for (const MeshAxis& axis : strategy.mesh.axes()) sizes_.push_back(axis.size);
  }

  // Splits the `size` of `what`, outermost axis first, so that the axis named is the one that does
  // not fit.
  void Split(const std::string& what, uint64_t size, const Layout& layout,
             uint8_t dimension) const {
    SplitNamed([&] { return what; }, size, layout, dimension);
  }
  // Of what is called `kind` "name"; its words are only put together for an error.
  void Split(const char* kind, const std::string& name, uint64_t size, const Layout& layout,
             uint8_t dimension) const {
    SplitNamed([&] { return fmt::format("{} \"{}\"", kind, name); }, size, layout, dimension);
  }

  template <typename What>
  void SplitNamed(const What& what, uint64_t size, const Layout& layout, uint8_t dimension) const {
    uint64_t left = size;
    for (const uint32_t axis : SplitAxes(layout, dimension)) {
      if (left % sizes_[axis] != 0) {
        throw Error(place_,
                    fmt::format("{} {} of {} cannot be split into {} parts along axis \"{}\"", size,
                                what(), network_.name, Pieces(layout, sizes_, dimension),
                                strategy_.mesh.axes()[axis].name));
      }
      left /= sizes_[axis];
    }
  }

  void Matrices() const {
    for (size_t i = 0; i < network_.matrices.size(); ++i) {
      const NetworkMatrix& matrix = network_.matrices[i];
      const ProductLayouts& layouts = strategy_.products[i];
      const bool is_table = matrix.IsTable();
      Split(is_table ? "rows of table" : "rows of weight", matrix.name, matrix.k, layouts.w, 0);
      Split(is_table ? "columns of table" : "columns of weight", matrix.name, matrix.n, layouts.w,
            1);
    }
  }

  // Samples stay whole if a row depends on others of its sample.
  void Samples(const Layout& layout) const {
    uint64_t pieces = Pieces(layout, sizes_, 0);
    const auto& context = strategy_.context;
    if (context && IsSplit(layout[context->axis], 0)) pieces /= sizes_[context->axis];
    const uint64_t parts = pieces * network_.micro_batches * strategy_.chunks;
    if (network_.samples % parts == 0) return;
    throw Error(
        place_,
        fmt::format("a batch of {} {} cannot be split over {} groups (axes that split "
                    "rows) times {} micro-batches{}",
                    network_.samples, network_.sample_name, pieces, network_.micro_batches,
                    strategy_.chunks == 1 ? std::string()
                                          : fmt::format(" of {} chunks", strategy_.chunks)));
  }

  // Splits sequences that ranks share into equal runs, and the core's heads as its form requires.
  void Context() const {
    if (!strategy_.context) return;
    const ContextPolicy& context = *strategy_.context;
    for (const NetworkNode& node : network_.nodes) {
      if (node.kind != NodeKind::kJoinHeads) continue;
      throw Error(place_, fmt::format("context parallelism over {} ranks: {} has latent attention, "
                                      "whose sequences are not shared; expected \"context\": 1",
                                      sizes_[context.axis], network_.name));
    }
    for (const NetworkNode& node : network_.nodes) {
      if (node.kind != NodeKind::kStateSpace) continue;
      throw Error(place_, fmt::format("context parallelism over {} ranks: {} has state-space "
                                      "layers, whose sequences are not shared; expected "
                                      "\"context\": 1",
                                      sizes_[context.axis], network_.name));
    }
    const uint32_t ranks = sizes_[context.axis];
    if (network_.sequence == 0) {
      throw Error(
          place_,
          fmt::format(
              "context parallelism over {} ranks: {} has no sequences of "
              "tokens to share, expected a decoder whose sequences are one \"document\" each",
              ranks, network_.name));
    }
    const uint64_t runs = uint64_t{ranks} * (context.balanced ? 2 : 1);
    if (network_.sequence % runs != 0) {
      throw Error(place_,
                  fmt::format("a sequence of {} tokens cannot be split into {} equal runs, {}"
                              " for each of {} ranks along axis \"{}\"",
                              network_.sequence, runs, context.balanced ? "two" : "one", ranks,
                              strategy_.mesh.axes()[context.axis].name));
    }
  }

  // Ranks begin with tokens of their own, in whole runs that choose alike.
  void Experts(uint32_t index) const {
    const NetworkNode& route = network_.nodes[index];
    const uint32_t router = *network_.nodes[route.inputs.front()].matrix;
    const Layout& rows = strategy_.products[router].rest;
    for (uint32_t axis = 0; axis < rows.size(); ++axis) {
      if (IsSplit(rows[axis], 0) || sizes_[axis] == 1) continue;
      const std::string& name = strategy_.mesh.axes()[axis].name;
      throw Error(place_, fmt::format("experts of {}: the {} ranks along axis \"{}\" have the same "
                                      "tokens; expected \"kind\": \"combined\" with "
                                      "\"sequence_parallel\": true, or a kind that only splits the "
                                      "batch (data-parallel, zero-1, zero-2, fsdp)",
                                      network_.name, sizes_[axis], name));
    }
    for (uint32_t i = 0; i < network_.matrices.size() && !strategy_.experts; ++i) {
      if (!IsOfExperts(network_.matrices[i].role)) continue;
      if (Pieces(strategy_.products[i].w, sizes_, 0) * Pieces(strategy_.products[i].w, sizes_, 1) >
          1)
        throw Error(place_, fmt::format("weight \"{}\" of {} is split: ranks share experts only "
                                        "with \"kind\": \"combined\"",
                                        network_.matrices[i].name, network_.name));
    }
    const ExpertRouting routing = MakeRouting(route.attributes);
    const auto refuse = [&](const char* what, uint64_t tokens) {
      throw Error(place_,
                  fmt::format("experts of {}: {} of {} tokens, expected a multiple of {}, the run "
                              "of tokens in which the choices of {} of {} experts come out even",
                              network_.name, what, tokens, routing.period, routing.per_token,
                              routing.experts));
    };
    const uint64_t tokens = route.rows / strategy_.chunks / Pieces(rows, sizes_, 0);
    if (tokens == 0 || tokens % routing.period != 0)
      refuse("a rank's part of a micro-batch", tokens);
    const uint32_t pieces = strategy_.experts ? strategy_.experts->pieces : 1;
    if (tokens % (routing.period * pieces) != 0)
      refuse(fmt::format("one of {} pieces of a rank's part of a micro-batch", pieces).c_str(),
             tokens / pieces);
    const auto& context = strategy_.context;
    if (!context) return;
    const uint64_t run = network_.sequence / sizes_[context->axis] / (context->balanced ? 2 : 1);
    if (run % routing.period != 0) refuse("a rank's run of a sequence", run);
  }

  // What a user chooses comes first: heads and the batch.
  void Units(const NetworkNode& node, const Layout& rest) const {
    if (node.units > 0) Split(node.unit_name, node.units, rest, 1);
    const auto& context = strategy_.context;
    if (node.kind == NodeKind::kAttention && context && context->kind == ContextKind::kUlysses) {
      Split(node.unit_name, node.units, HeadsOverContext(rest, context->axis), 1);
    }
    if (node.whole_samples) Samples(rest);
    if (node.window) Samples(strategy_.products[*node.matrix].x);
  }

  void Value(const NetworkNode& node, const Layout& rest) const {
    if (node.of_choices) return;
    Split("rows of", node.name, node.rows / strategy_.chunks, rest, 0);
    Split("columns of", node.name, node.columns, rest, 1);
    if (node.kind != NodeKind::kProduct) return;
    const NetworkNode& input = network_.nodes[node.inputs.front()];
    const Layout& x = strategy_.products[*node.matrix].x;
    Split("rows of", input.name, input.rows / strategy_.chunks, x, 0);
    Split("columns of", input.name, input.columns, x, 1);
  }

 private:
  const Network& network_;
  const Strategy& strategy_;
  const Place& place_;
  std::vector<uint32_t> sizes_;
};

}  // namespace

void CheckSplits(const Network& network, const Strategy& strategy, const std::vector<Layout>& rests,
                 const Place& place) {
  CHECK_EQ(strategy.products.size(), network.matrices.size());
  const Checker checker(network, strategy, place);
  checker.Context();
  for (size_t i = 0; i < network.nodes.size(); ++i) checker.Units(network.nodes[i], rests[i]);
  for (uint32_t i = 0; i < network.nodes.size(); ++i) {
    if (network.nodes[i].kind == NodeKind::kRoute) checker.Experts(i);
  }
  checker.Matrices();
  for (size_t i = 0; i < network.nodes.size(); ++i) checker.Value(network.nodes[i], rests[i]);
  if (network.samples % (uint64_t{network.micro_batches} * strategy.chunks) != 0) {
    checker.Samples(Layout(strategy.mesh.axes().size()));
  }
  if (strategy.shard && static_cast<int32_t>(strategy.shard->cached_layers) > network.layers) {
    throw Error(place, fmt::format("{} cached layers, but {} has only {}",
                                   strategy.shard->cached_layers, network.name, network.layers));
  }
}

}  // namespace rehearse
