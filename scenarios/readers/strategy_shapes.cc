#include "scenarios/readers/strategy_shapes.h"

namespace rehearse {
namespace {

JsonKey Kind(const char* kind) { return {"kind", OneOf({kind}), Required(), "which strategy"}; }

template <typename T>
Field<T> Axis(const char* name, uint32_t T::*member, const char* about, const char* only = "") {
  return {name, member, AWhole(1, kMostMeshRanks), Required(), about, "2", only};
}

constexpr const char* kOfSoftware = "the software's; must be given without one";

// A switch that the software sets (scenarios/readers/software.h); without one it must be given.
template <typename T>
Field<T> Switch(const char* name, bool T::*member, const char* about) {
  return {name, member, TrueFalse(), FilledIn(kOfSoftware), about, "true"};
}

JsonKey SwitchByHand(const char* name, const char* about) {
  return {name, TrueFalse(), Optional(kOfSoftware), about, "true"};
}

constexpr const char* kAboutData = "ranks that hold the same weights, each with its own rows";
constexpr const char* kAboutOverlapGradients = "gradients are summed during the last backward pass";
constexpr const char* kAboutOverlapAllReduce = "dX is all-reduced during the product of dW";

// ---- The combined strategy and its presets ------------------------------------------------------

using Combined = CombinedOptions;
using Zero = ZeroOptions;

constexpr ValueName<bool> kGatherNames[] = {{"product", false}, {"layer", true}};
constexpr ValueName<bool> kBackwardPrefetchNames[] = {{"pre", false}, {"post", true}};
constexpr ValueName<ShardCopies> kCopyNames[] = {{"none", ShardCopies::kNone},
                                                 {"flat", ShardCopies::kFlat},
                                                 {"per-parameter", ShardCopies::kPerParameter},
                                                 {"buckets", ShardCopies::kBuckets}};
constexpr ValueName<bool> kReduceNames[] = {{"precision", false}, {"fp32", true}};
constexpr ValueName<bool> kContextOrderNames[] = {{"zigzag", true}, {"contiguous", false}};
constexpr ValueName<bool> kDispatchNames[] = {{"plain", false}, {"fp8", true}};

// What a preset must say, and the whole strategy need not, as it may not matter there.
enum class Needed : uint8_t { kAlways, kWhereItMatters };

FieldPresence Size(Needed needed) {
  return needed == Needed::kAlways ? FieldPresence(Required()) : Usual();
}

FieldPresence OfSoftware(Needed needed) {
  return needed == Needed::kAlways ? FilledIn(kOfSoftware) : FieldPresence(Optional(kOfSoftware));
}

// The rows of ZeRO's options, as those of the whole strategy.
Field<Combined> OfZero(const Field<Zero>& row) { return row.Within(&Combined::zero); }

template <typename T>
Field<T> Axis(const char* name, uint32_t T::*member, Needed needed, const char* about) {
  return {name, member, AWhole(1, kMostMeshRanks), Size(needed), about, "2"};
}

Field<Combined> Tensor(Needed needed) {
  return Axis("tensor", &Combined::tensor, needed, "ranks that share each layer's weights");
}
Field<Combined> Data(Needed needed) { return Axis("data", &Combined::data, needed, kAboutData); }
Field<Combined> Shard(Needed needed) {
  return OfZero(Axis("shard", &Zero::shard, needed, "ranks over which the state is sharded"));
}
Field<Combined> Replicas(Needed needed) {
  return OfZero(
      Axis("replicas", &Zero::replicas, needed, "groups of ranks that hold the same shards"));
}

template <typename T>
Field<T> Switch(const char* name, bool T::*member, Needed needed, const char* about) {
  return {name, member, TrueFalse(), OfSoftware(needed), about, "true"};
}

Field<Combined> SequenceParallel(Needed needed) {
  return Switch("sequence_parallel", &Combined::sequence_parallel, needed,
                "norms, dropout and residuals are split by rows too");
}
Field<Combined> OverlapAllReduce(Needed needed) {
  return Switch("overlap_all_reduce", &Combined::overlap_all_reduce, needed,
                kAboutOverlapAllReduce);
}
Field<Combined> Splits() {
  return {"split_products",
          &Combined::split_products,
          OneOf(kSplitProductsNames),
          Usual(),
          "products are cut into pieces, beside which their rows are gathered and their sums "
          "reduce-scattered, as Transformer Engine (tp_comm_overlap) or PyTorch does it; needs "
          "sequence_parallel",
          "\"user-buffers\""};
}
Field<Combined> OverlapGradients(Needed needed) {
  return OfZero(
      Switch("overlap_gradients", &Zero::overlap_all_reduce, needed, kAboutOverlapGradients));
}
Field<Combined> OverlapReduceScatter(Needed needed) {
  return OfZero(Switch("overlap_reduce_scatter", &Zero::overlap_reduce_scatter, needed,
                       "reduce-scatters of dW are awaited only at the end of the backward pass"));
}

// How gradients are summed in buckets, and updated shares gathered in the same ones.
Field<Combined> Buckets() {
  return FieldList<Combined>{
      {"bucket_elements", &Combined::bucket_elements, AWhole(0, int64_t{1} << 40), Usual(),
       "how many elements of gradients are summed together, or a million per rank of data if "
       "that is more; 0: each matrix alone",
       "40000000"},
      {"overlap_parameter_gathers", &Combined::overlap_parameter_gathers, TrueFalse(), Usual(),
       "what ZeRO-1 has updated is gathered during the next forward pass", "true"}};
}

// How sharded parameters are gathered, and their gradients reduced.
Field<Combined> Gathering(Needed needed) {
  return Within(
      &Combined::zero,
      FieldList<Zero>{
          {"gather", &Zero::by_layer, OneOf(kGatherNames), Usual(),
           "what one collective gathers or reduces: a product's weight, or a whole layer's"},
          {"prefetch", &Zero::prefetch, AWhole(0, 1000), OfSoftware(needed),
           "how many products (or layers) are gathered ahead", "1"},
          {"backward_prefetch", &Zero::gathers_behind_backward, OneOf(kBackwardPrefetchNames),
           Usual(),
           "the next layer is gathered during this one's backward pass, or after it "
           "(BACKWARD_POST)",
           "\"post\""},
          {"within_layer", &Zero::within_layer, TrueFalse(), Usual(),
           "gathers begin, and sums of gradients end, within the layer that needs them (a loop "
           "over "
           "layers, as XLA compiles it without double buffering)",
           "true"},
          {"reshard_after_forward", &Zero::reshard_after_forward, TrueFalse(), OfSoftware(needed),
           "gathered weights are dropped after the forward pass", "true"},
          {"until_last_micro_batch", &Zero::until_last_micro_batch, TrueFalse(), Usual(),
           "weights that a backward pass used stay gathered for the next micro-batch, and "
           "gradients "
           "stay whole, until the last one reduces them (torchtitan's pipelines)",
           "true"},
          {"backward_within", &Zero::backward_within, AWhole(0, kMostMeshRanks), Usual(),
           "the backward pass gathers from shares that the forward pass leaves over so many ranks, "
           "the innermost ones (DeepSpeed's zero_hpz_partition_size); 0: over all",
           "8"},
          {"copies", &Zero::copies, OneOf(kCopyNames), Usual(),
           "copies on the device around collectives, as FSDP1 (flat), FSDP2 (per-parameter) or "
           "DeepSpeed (buckets) makes them",
           "\"flat\""},
          {"reduce", &Zero::reduces_in_fp32, OneOf(kReduceNames), Usual(),
           "what gradients are reduce-scattered in: the training's precision, or fp32", "\"fp32\""},
          {"prefetch_elements", &Zero::prefetch_elements, AWhole(0, int64_t{1} << 50), Usual(),
           "how many elements are gathered ahead, instead of counting products; 0: as prefetch "
           "says",
           "50000000"},
          {"most_gathered", &Zero::most_gathered, AWhole(0, int64_t{1} << 50), Usual(),
           "nothing more is gathered ahead while this many gathered elements are held; 0: no limit",
           "1000000000"},
          {"reduce_elements", &Zero::reduce_elements, AWhole(0, int64_t{1} << 50), Usual(),
           "how many elements of gradients are reduce-scattered together; 0: those of a product or "
           "layer",
           "500000000"}});
}

}  // namespace

const Fields<Combined>& MegatronFields() {
  constexpr Needed kAlways = Needed::kAlways;
  static const Fields<Combined> fields(
      "strategy megatron",
      "Megatron-LM's one-dimensional tensor parallelism under data parallelism.",
      {Kind("megatron"), Tensor(kAlways), Data(kAlways), SequenceParallel(kAlways), Splits(),
       OverlapAllReduce(kAlways), OverlapGradients(kAlways),
       Switch("distributed_optimizer", &Combined::shares_over_data,
              "optimizer state is sharded over data (ZeRO-1)"),
       Buckets()});
  return fields;
}

const Fields<Combined>& DataParallelFields() {
  static const Fields<Combined> fields(
      "strategy data-parallel", "Every rank holds the whole model.",
      {Kind("data-parallel"), Data(Needed::kAlways), OverlapGradients(Needed::kAlways)});
  return fields;
}

const Fields<Combined>& Zero1Fields() {
  constexpr Needed kAlways = Needed::kAlways;
  static const Fields<Combined> fields(
      "strategy zero-1", "Data parallelism with the optimizer's state sharded.",
      {Kind("zero-1"), Shard(kAlways), Replicas(kAlways), OverlapGradients(kAlways)});
  return fields;
}

const Fields<Combined>& Zero2Fields() {
  constexpr Needed kAlways = Needed::kAlways;
  static const Fields<Combined> fields("strategy zero-2", "As zero-1, with gradients sharded too.",
                                       {Kind("zero-2"), Shard(kAlways), Replicas(kAlways),
                                        OverlapGradients(kAlways), OverlapReduceScatter(kAlways)});
  return fields;
}

const Fields<Combined>& FsdpFields() {
  constexpr Needed kAlways = Needed::kAlways;
  static const Fields<Combined> fields(
      "strategy fsdp",
      "ZeRO-3: parameters sharded too, and gathered before use; replicas make it hybrid.",
      {Kind("fsdp"), Shard(kAlways), Replicas(kAlways), OverlapGradients(kAlways),
       OverlapReduceScatter(kAlways), Gathering(kAlways)});
  return fields;
}

const Fields<Combined>& CombinedFields() {
  constexpr Needed kWhereItMatters = Needed::kWhereItMatters;
  static const Fields<Combined> fields(
      "strategy combined",
      "Tensor, sequence, context and data parallelism with any stage of ZeRO, axis by axis.",
      {Kind("combined"),
       Tensor(kWhereItMatters),
       Axis("context", &Combined::context, kWhereItMatters, "ranks that share each sequence"),
       Shard(kWhereItMatters),
       Replicas(kWhereItMatters),
       Data(kWhereItMatters),
       {"order", &Combined::order, ListOf(OneOf(kCombinedAxisNames)), Usual(),
        "order of the axes, innermost ranks first; axes not named follow in the order of "
        "this list",
        R"(["tensor", "shard"])"},
       {"context_kind", &Combined::context_kind, OneOf(kContextKindNames), Usual(),
        "keys and values travel round a ring during attention, or are gathered before it; "
        "or an all-to-all exchanges tokens for heads"},
       {"context_order", &Combined::balances_context, OneOf(kContextOrderNames),
        Optional("zigzag, with ulysses contiguous"),
        "a rank has two pieces of each sequence, which balances a causal mask, or one piece",
        "\"contiguous\""},
       OfZero({"zero", &Zero::stage, AWhole(0, 3),
               Optional("the software's; needed where shard or context exceed 1"),
               "what is sharded over shard and context: 1 optimizer state, 2 gradients too, 3 "
               "parameters too",
               "3"}),
       SequenceParallel(kWhereItMatters),
       {"keep_gathered", &Combined::keeps_gathered, TrueFalse(), Usual(),
        "what sequence parallelism gathers is kept for dW instead of being gathered again", "true"},
       Splits(),
       OverlapAllReduce(kWhereItMatters),
       OverlapGradients(kWhereItMatters),
       OverlapReduceScatter(kWhereItMatters),
       Buckets(),
       {"expert", &Combined::expert, AWhole(1, 1 << 16), Usual(),
        "ranks over which the experts are spread: the innermost of the axes above", "8"},
       {"expert_tensor", &Combined::expert_tensor, AWhole(1, 1 << 16), Usual(),
        "ranks that share each expert: the innermost ones", "2"},
       {"dispatch", &Combined::narrow_dispatch, OneOf(kDispatchNames), Usual(),
        "in which format tokens travel to experts; their results come back plain", "\"fp8\""},
       {"expert_pieces", &Combined::expert_pieces, AWhole(1, 1024), Usual(),
        "tokens travel to experts and back in so many pieces, each beside the products of another "
        "(Tutel, FasterMoE)",
        "4"},
       {"expert_tiles", &Combined::expert_tiles, TrueFalse(), Usual(),
        "products of pieces are parts of one kernel that takes as long as the whole (COMET)",
        "true"},
       {"overlap_shared_expert", &Combined::overlap_shared_expert, TrueFalse(), Usual(),
        "tokens travel to experts and back while the shared expert computes", "true"},
       Gathering(kWhereItMatters)});
  return fields;
}

// ---- The others ---------------------------------------------------------------------------------

const Fields<FourDOptions>& FourDFields() {
  using Options = FourDOptions;
  static const Fields<Options> fields(
      "strategy 4d", "AxoNN: a grid of column x row x depth x data, with optimisations A to E.",
      {Kind("4d"),
       Axis("column", &Options::column, "ranks that share the columns of a weight",
            kColumnRowDepth),
       Axis("row", &Options::row, "ranks that share the rows of a weight", kColumnRowDepth),
       Axis("depth", &Options::depth,
            "ranks that share the rows of X and hold shards of the weights", kColumnRowDepth),
       Axis("x", &Options::row, "row, as the SC24 paper names it", kXyz),
       Axis("y", &Options::column, "column, as the SC24 paper names it", kXyz),
       Axis("z", &Options::depth, "depth, as the SC24 paper names it", kXyz),
       Axis("data", &Options::data, kAboutData),
       Switch("transpose_alternate_layers", &Options::transpose_alternate_layers,
              "A: row and column swap places in every other product"),
       Switch("overlap_all_reduce", &Options::overlap_all_reduce,
              "B: dX is all-reduced during the product of dW"),
       Switch("overlap_reduce_scatter", &Options::overlap_reduce_scatter,
              "C: reduce-scatters of dW are awaited only at the end of the backward pass"),
       Switch("overlap_all_gather", &Options::overlap_all_gather,
              "D: the next product's weight is gathered during this one"),
       {"cached_layers", &Options::cached_layers, AWhole(0, 10000), Required(),
        "E: layers whose gathered weights are kept for recomputation", "0"}});
  return fields;
}

const Fields<AtpOptions>& AtpFields() {
  using Options = AtpOptions;
  static constexpr ValueName<bool> kFirstNames[] = {{"column", true}, {"row", false}};
  static const Fields<Options> fields(
      "strategy atp",
      "ATP: two-dimensional tensor parallelism on DeviceMesh(d1, d2), in chunks that take turns.",
      {Kind("atp"),
       Axis("d1", &Options::d1, "ranks of the mesh's first dimension"),
       Axis("d2", &Options::d2, "ranks of the mesh's second dimension, innermost"),
       Axis("data", &Options::data, kAboutData),
       {"first", &Options::column_first, OneOf(kFirstNames), Required(),
        "how the first of two products is split"},
       {"chunks", &Options::chunks, AWhole(1, 1024), Required(),
        "parts of the batch that take turns", "2"},
       {"overlap_chunks_backward", &Options::overlap_chunks_backward, TrueFalse(), Usual(),
        "collectives of one chunk run beside the work on another in the backward pass, too"},
       Switch("overlap_all_reduce", &Options::overlap_all_reduce, kAboutOverlapAllReduce)});
  return fields;
}

const Fields<SummaOptions>& SummaFields() {
  using Options = SummaOptions;
  static const Fields<Options> fields(
      "strategy summa", "SUMMA on q x q ranks (Optimus), by depth (Tesseract), by data.",
      {Kind("summa"), Axis("q", &Options::q, "ranks on a side of the square"),
       Axis("depth", &Options::depth, "copies of the square, each with its own rows"),
       Axis("data", &Options::data, kAboutData),
       Switch("overlap_panels", &Options::overlap_panels,
              "the next round's panels are sent during this round's product")});
  return fields;
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
       SwitchByHand("overlap_all_reduce", kAboutOverlapAllReduce),
       SwitchByHand("overlap_gradients", kAboutOverlapGradients)}};
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
       SwitchByHand("overlap_all_reduce", kAboutOverlapAllReduce),
       SwitchByHand("overlap_gradients", kAboutOverlapGradients)}};
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
