#include "scenarios/readers/strategy_shapes.h"

#include <utility>

#include "workloads/strategies/strategy_combined.h"

namespace rehearse {
namespace {

JsonKey Kind(const char* kind) { return {"kind", OneOf({kind}), Required(), "which strategy"}; }

JsonKey Axis(const char* name, const char* about, const char* only = "") {
  return {name, AWhole(1, kMostMeshRanks), Required(), about, "2", only};
}

JsonKey Switch(const char* name, const char* about) {
  return {name, TrueFalse(), Optional("the software's; must be given without one"), about, "true"};
}

JsonKey Data() { return Axis("data", "ranks that hold the same weights, each with its own rows"); }

JsonKey OverlapAllReduce() {
  return Switch("overlap_all_reduce", "dX is all-reduced during the product of dW");
}

JsonKey OverlapGradients() {
  return Switch("overlap_gradients", "gradients are summed during the last backward pass");
}

JsonKey OverlapReduceScatter() {
  return Switch("overlap_reduce_scatter",
                "reduce-scatters of dW are awaited only at the end of the backward pass");
}

JsonKey SequenceParallel() {
  return Switch("sequence_parallel", "norms, dropout and residuals are split by rows too");
}

JsonKey Shard() { return Axis("shard", "ranks over which the state is sharded"); }
JsonKey Replicas() { return Axis("replicas", "groups of ranks that hold the same shards"); }

// An axis that need not be given if it has one rank.
JsonKey AxisOrOne(JsonKey axis) {
  axis.presence = Default("1");
  return axis;
}

// How sharded parameters are gathered, and their gradients reduced.
std::vector<JsonKey> GatheringKeys() {
  return {
      {"gather", OneOf({"product", "layer"}), Default("\"product\""),
       "what one collective gathers or reduces: a product's weight, or a whole layer's"},
      {"prefetch", AWhole(0, 1000), Optional("the software's; must be given without one"),
       "how many products (or layers) are gathered ahead", "1"},
      {"backward_prefetch", OneOf({"pre", "post"}), Default("\"pre\""),
       "the next layer is gathered during this one's backward pass, or after it (BACKWARD_POST)",
       "\"post\""},
      Switch("reshard_after_forward", "gathered weights are dropped after the forward pass"),
      {"copies", OneOf({"none", "flat", "per-parameter", "buckets"}), Default("\"none\""),
       "copies on the device around collectives, as FSDP1 (flat), FSDP2 (per-parameter) or "
       "DeepSpeed (buckets) makes them",
       "\"flat\""},
      {"reduce", OneOf({"precision", "fp32"}), Default("\"precision\""),
       "what gradients are reduce-scattered in: the training's precision, or fp32", "\"fp32\""},
      {"prefetch_elements", AWhole(0, int64_t{1} << 50), Default("0"),
       "how many elements are gathered ahead, instead of counting products; 0: as prefetch says",
       "50000000"},
      {"most_gathered", AWhole(0, int64_t{1} << 50), Default("0"),
       "nothing more is gathered ahead while this many gathered elements are held; 0: no limit",
       "1000000000"},
      {"reduce_elements", AWhole(0, int64_t{1} << 50), Default("0"),
       "how many elements of gradients are reduce-scattered together; 0: those of a product or "
       "layer",
       "500000000"}};
}

std::vector<JsonKey> Joined(std::vector<JsonKey> first, const std::vector<JsonKey>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

const ObjectShape& FourDShape() {
  static const ObjectShape shape = {
      "strategy 4d",
      "AxoNN: a grid of column x row x depth x data, with optimisations A to E.",
      {Kind("4d"),
       Axis("column", "ranks that share the columns of a weight", kColumnRowDepth),
       Axis("row", "ranks that share the rows of a weight", kColumnRowDepth),
       Axis("depth", "ranks that share the rows of X and hold shards of the weights",
            kColumnRowDepth),
       Axis("x", "row, as the SC24 paper names it", kXyz),
       Axis("y", "column, as the SC24 paper names it", kXyz),
       Axis("z", "depth, as the SC24 paper names it", kXyz),
       Data(),
       Switch("transpose_alternate_layers", "A: row and column swap places in every other product"),
       Switch("overlap_all_reduce", "B: dX is all-reduced during the product of dW"),
       Switch("overlap_reduce_scatter",
              "C: reduce-scatters of dW are awaited only at the end of the backward pass"),
       Switch("overlap_all_gather", "D: the next product's weight is gathered during this one"),
       {"cached_layers", AWhole(0, 10000), Required(),
        "E: layers whose gathered weights are kept for recomputation", "0"}}};
  return shape;
}

JsonKey BucketElements() {
  return {"bucket_elements", AWhole(0, int64_t{1} << 40), Default("0"),
          "how many elements of gradients are summed together, or a million per rank of data if "
          "that is more; 0: each matrix alone",
          "40000000"};
}

JsonKey OverlapParameterGathers() {
  return {"overlap_parameter_gathers", TrueFalse(), Default("false"),
          "what ZeRO-1 has updated is gathered during the next forward pass", "true"};
}

const ObjectShape& MegatronShape() {
  static const ObjectShape shape = {
      "strategy megatron",
      "Megatron-LM's one-dimensional tensor parallelism under data parallelism.",
      {Kind("megatron"), Axis("tensor", "ranks that share each layer's weights"), Data(),
       SequenceParallel(), OverlapAllReduce(), OverlapGradients(),
       Switch("distributed_optimizer", "optimizer state is sharded over data (ZeRO-1)"),
       BucketElements(), OverlapParameterGathers()}};
  return shape;
}

const ObjectShape& DataParallelShape() {
  static const ObjectShape shape = {"strategy data-parallel",
                                    "Every rank holds the whole model.",
                                    {Kind("data-parallel"), Data(), OverlapGradients()}};
  return shape;
}

const ObjectShape& Zero1Shape() {
  static const ObjectShape shape = {"strategy zero-1",
                                    "Data parallelism with the optimizer's state sharded.",
                                    {Kind("zero-1"), Shard(), Replicas(), OverlapGradients()}};
  return shape;
}

const ObjectShape& Zero2Shape() {
  static const ObjectShape shape = {
      "strategy zero-2",
      "As zero-1, with gradients sharded too.",
      {Kind("zero-2"), Shard(), Replicas(), OverlapGradients(), OverlapReduceScatter()}};
  return shape;
}

const ObjectShape& FsdpShape() {
  static const ObjectShape shape = {
      "strategy fsdp",
      "ZeRO-3: parameters sharded too, and gathered before use; replicas make it hybrid.",
      Joined({Kind("fsdp"), Shard(), Replicas(), OverlapGradients(), OverlapReduceScatter()},
             GatheringKeys())};
  return shape;
}

const ObjectShape& CombinedShape() {
  std::vector<std::string> axes;
  for (size_t i = 0; i < kCombinedAxes; ++i) {
    axes.emplace_back(Name(static_cast<CombinedAxis>(i)));
  }
  static const ObjectShape shape = {
      "strategy combined",
      "Tensor, sequence, context and data parallelism with any stage of ZeRO, axis by axis.",
      Joined({Kind("combined"),
              AxisOrOne(Axis("tensor", "ranks that share each layer's weights")),
              AxisOrOne(Axis("context", "ranks that share each sequence")),
              AxisOrOne(Shard()),
              AxisOrOne(Replicas()),
              AxisOrOne(Data()),
              {"order", ListOf(OneOf(std::move(axes))), Default("[]"),
               "order of the axes, innermost ranks first; axes not named follow in the order of "
               "this list",
               R"(["tensor", "shard"])"},
              {"context_kind", OneOf({"ring", "all-gather", "ulysses"}), Default("\"ring\""),
               "keys and values travel round a ring during attention, or are gathered before it; "
               "or an all-to-all exchanges tokens for heads"},
              {"context_order", OneOf({"zigzag", "contiguous"}),
               Optional("zigzag, with ulysses contiguous"),
               "a rank has two pieces of each sequence, which balances a causal mask, or one piece",
               "\"contiguous\""},
              {"zero", AWhole(0, 3),
               Optional("the software's; needed where shard or context exceed 1"),
               "what is sharded over shard and context: 1 optimizer state, 2 gradients too, 3 "
               "parameters too",
               "3"},
              SequenceParallel(),
              {"keep_gathered", TrueFalse(), Default("false"),
               "what sequence parallelism gathers is kept for dW instead of being gathered again",
               "true"},
              OverlapAllReduce(),
              OverlapGradients(),
              OverlapReduceScatter(),
              BucketElements(),
              OverlapParameterGathers(),
              {"expert", AWhole(1, 1 << 16), Default("1"),
               "ranks over which the experts are spread: the innermost of the axes above", "8"},
              {"expert_tensor", AWhole(1, 1 << 16), Default("1"),
               "ranks that share each expert: the innermost ones", "2"},
              {"overlap_shared_expert", TrueFalse(), Default("false"),
               "tokens travel to experts and back while the shared expert computes", "true"}},
             GatheringKeys())};
  return shape;
}

const ObjectShape& AtpShape() {
  static const ObjectShape shape = {
      "strategy atp",
      "ATP: two-dimensional tensor parallelism on DeviceMesh(d1, d2), in chunks that take turns.",
      {Kind("atp"),
       Axis("d1", "ranks of the mesh's first dimension"),
       Axis("d2", "ranks of the mesh's second dimension, innermost"),
       Data(),
       {"first", OneOf({"column", "row"}), Required(), "how the first of two products is split"},
       {"chunks", AWhole(1, 1024), Required(), "parts of the batch that take turns", "2"},
       {"overlap_chunks_backward", TrueFalse(), Default("false"),
        "collectives of one chunk run beside the work on another in the backward pass, too"},
       OverlapAllReduce()}};
  return shape;
}

const ObjectShape& SummaShape() {
  static const ObjectShape shape = {
      "strategy summa",
      "SUMMA on q x q ranks (Optimus), by depth (Tesseract), by data.",
      {Kind("summa"),
       {"q", AWhole(1, kMostMeshRanks), Required(), "ranks on a side of the square", "2"},
       Axis("depth", "copies of the square, each with its own rows"),
       Data(),
       Switch("overlap_panels", "the next round's panels are sent during this round's product")}};
  return shape;
}

const ObjectShape& SbpNumbersShape() {
  const JsonShape part = Either(
      {AWhole(1, kMostMeshRanks), Tuple({AWhole(1, kMostMeshRanks), AWhole(1, kMostMeshRanks)})});
  static const ObjectShape shape = {
      "strategy sbp, by numbers",
      "AutoDDL: ranks for rows (p0), columns (p1) and the inner dimension (p2) of each product.",
      {Kind("sbp"),
       {"nodes", AWhole(1, kMostMeshRanks), Required(), "machines", "2"},
       {"gpus", AWhole(1, kMostMeshRanks), Required(), "ranks per machine", "4"},
       {"products", Named(Tuple({part, part, part}), "weight's name, or \"default\""), Required(),
        "[p0, p1, p2] of each product, each a number of machines or [machines, ranks of a machine]",
        R"({"default": [[2, 1], [1, 4], 1]})"},
       OverlapAllReduce(),
       OverlapGradients()}};
  return shape;
}

const ObjectShape& SbpLayoutsShape() {
  static const ObjectShape shape = {
      "strategy sbp, by layouts",
      "Any layout of X and W on a mesh, axis by axis, in OneFlow's notation.",
      {Kind("sbp"),
       {"mesh", ListOf(AWhole(1, kMostMeshRanks)), Required(),
        "sizes of the mesh's axes, outermost first", "[2, 4]"},
       {"products", Named(ObjectOf(SbpProductShape), "weight's name, or \"default\""), Required(),
        "layouts of each product", R"-({"default": {"x": ["S(0)", "B"], "w": ["B", "S(1)"]}})-"},
       OverlapAllReduce(),
       OverlapGradients()}};
  return shape;
}

const ObjectShape& SbpProductShape() {
  const JsonShape layout = ListOf(OneOf({"S(0)", "S(1)", "B"}));
  static const ObjectShape shape = {
      "product",
      "How the matrices of one product lie: a placement for each axis of the mesh.",
      {{"x", layout, Required(), "the input", R"-(["S(0)", "B"])-"},
       {"w", layout, Required(), "the weight", R"-(["B", "S(1)"])-"},
       {"rest", layout, Optional("partial sums are reduce-scattered to columns"),
        "where the output ends up", R"-(["S(0)", "S(1)"])-"}}};
  return shape;
}

}  // namespace rehearse
