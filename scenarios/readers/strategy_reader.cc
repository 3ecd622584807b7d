#include "scenarios/readers/strategy_reader.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenarios/readers/sbp_reader.h"
#include "scenarios/readers/strategy_shapes.h"
#include "sim/base/error.h"
#include "sim/schedule/expert_routing.h"
#include "workloads/strategies/strategy_presets.h"

namespace rehearse {
namespace {

// The product of these axes, "q" counting twice. Error where it is too large.
uint64_t RanksOf(const JsonReader& reader, std::initializer_list<const char*> axes) {
  uint64_t ranks = 1;
  for (const std::string key : axes) {
    const auto size = reader.At(key).Whole<uint64_t>();
    for (int times = key == "q" ? 2 : 1; times > 0; --times) {
      ranks *= size;
      if (ranks > static_cast<uint64_t>(kMostMeshRanks)) {
        reader.Fail(fmt::format("a mesh of more than {} ranks: found {} with \"{}\"",
                                kMostMeshRanks, ranks, key));
      }
    }
  }
  return ranks;
}

Strategy ReadFourD(const JsonReader& object, const Network& network) {
  // The SC24 paper's names: x is the row axis, y the column axis, z the depth.
  const bool is_xyz = object.Has("x") || object.Has("y") || object.Has("z");
  const char* const variant = is_xyz ? kXyz : kColumnRowDepth;
  const JsonReader reader = object.As(FourDFields().shape(), variant);
  FourDOptions options;
  RanksOf(reader, {is_xyz ? "y" : "column", is_xyz ? "x" : "row", is_xyz ? "z" : "depth", "data"});
  FourDFields().ReadInto(reader, &options, variant);
  return MakeFourD(options, network);
}

Strategy ReadAtp(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(AtpFields().shape());
  RanksOf(reader, {"d1", "d2", "data"});
  AtpOptions options;
  AtpFields().ReadInto(reader, &options);
  return MakeAtp(options, network);
}

Strategy ReadSumma(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(SummaFields().shape());
  RanksOf(reader, {"q", "depth", "data"});
  SummaOptions options;
  SummaFields().ReadInto(reader, &options);
  return MakeSumma(options, network);
}

// ---- Presets of the combined strategy -----------------------------------------------------------

void CheckGathering(const ZeroOptions& options, const JsonReader& reader) {
  if (options.gathers_behind_backward && !options.by_layer)
    reader.At("backward_prefetch").Fail("\"post\" is for layers; expected \"gather\": \"layer\"");
  if (options.by_layer && options.prefetch_elements + options.reduce_elements > 0) {
    reader.Fail(
        "\"prefetch_elements\" and \"reduce_elements\" count products' weights; expected "
        "\"gather\": \"product\" with them");
  }
}

Strategy ReadPreset(CombinedOptions options, const Fields<CombinedOptions>& fields,
                    std::initializer_list<const char*> axes, const JsonReader& object,
                    const Network& network) {
  const JsonReader reader = object.As(fields.shape());
  RanksOf(reader, axes);
  fields.ReadInto(reader, &options);
  if (options.zero.stage == 3) CheckGathering(options.zero, reader);
  return MakeCombined(options, network, reader.place());
}

Strategy ReadMegatron(const JsonReader& object, const Network& network) {
  return ReadPreset(MegatronPreset(), MegatronFields(), {"tensor", "data"}, object, network);
}
Strategy ReadDataParallel(const JsonReader& object, const Network& network) {
  return ReadPreset(DataParallelPreset(), DataParallelFields(), {"data"}, object, network);
}
Strategy ReadZero1(const JsonReader& object, const Network& network) {
  return ReadPreset(ZeroPreset(1), Zero1Fields(), {"shard", "replicas"}, object, network);
}
Strategy ReadZero2(const JsonReader& object, const Network& network) {
  return ReadPreset(ZeroPreset(2), Zero2Fields(), {"shard", "replicas"}, object, network);
}
Strategy ReadFsdp(const JsonReader& object, const Network& network) {
  return ReadPreset(ZeroPreset(3), FsdpFields(), {"shard", "replicas"}, object, network);
}

// ---- The combined strategy ----------------------------------------------------------------------

// Nothing is sharded or overlapped unless the file or its software says so.
CombinedOptions Unsaid() {
  CombinedOptions options;
  options.zero.stage = 0;
  options.zero.overlap_reduce_scatter = false;
  options.overlap_all_reduce = false;
  return options;
}

// Where nothing is gathered, what the software says about it does not count.
ZeroOptions WithoutGathering(const ZeroOptions& options) {
  ZeroOptions kept;
  kept.shard = options.shard;
  kept.replicas = options.replicas;
  kept.stage = options.stage;
  kept.overlap_reduce_scatter = options.overlap_reduce_scatter;
  kept.overlap_all_reduce = options.overlap_all_reduce;
  return kept;
}

void CheckOrder(const std::vector<CombinedAxis>& order, const JsonReader& reader) {
  for (auto axis = order.begin(); axis != order.end(); ++axis) {
    if (std::find(order.begin(), axis, *axis) == axis) continue;
    reader.At("order").Elements()[static_cast<size_t>(axis - order.begin())].Fail(fmt::format(
        "\"{}\" is named twice; expected each axis once", NameIn(kCombinedAxisNames, *axis)));
  }
}

void FinishContext(const JsonReader& reader, CombinedOptions* options) {
  if (options->context_kind != ContextKind::kUlysses) return;
  if (reader.Has("context_order") && options->balances_context) {
    reader.At("context_order")
        .Fail("\"ulysses\" gives each rank whole sequences; expected \"contiguous\"");
  }
  options->balances_context = false;
}

// Experts are spread over the strategy's ranks.
void CheckExperts(const CombinedOptions& options, const JsonReader& reader,
                  const Network& network) {
  const auto routes = [](const NetworkNode& node) { return node.kind == NodeKind::kRoute; };
  const auto route = std::find_if(network.nodes.begin(), network.nodes.end(), routes);
  if (route == network.nodes.end()) {
    for (const char* key : {"expert", "expert_tensor"}) {
      if (reader.At(key).Integer() > 1)
        reader.At(key).Fail(fmt::format("{} has no experts; expected 1", network.name));
    }
    return;
  }
  const auto experts = static_cast<uint32_t>(route->attributes[kRoutingExperts]);
  if (experts % options.expert != 0) {
    reader.At("expert").Fail(
        fmt::format("{} experts of {} do not split into {} equal parts; expected a divisor",
                    experts, network.name, options.expert));
  }
}

// What the file or its software must say where it matters.
void MustHaveWhatMatters(const CombinedOptions& options, uint64_t ranks, bool shares,
                         const JsonReader& reader) {
  const uint32_t stage = options.zero.stage;
  if (shares) MustHave(reader, {"zero"});
  if (options.tensor > 1) MustHave(reader, {"sequence_parallel", "overlap_all_reduce"});
  if (ranks > options.tensor) MustHave(reader, {"overlap_gradients"});
  if (shares && stage >= 2) MustHave(reader, {"overlap_reduce_scatter"});
  if (shares && stage == 3) MustHave(reader, {"prefetch", "reshard_after_forward"});
}

Strategy ReadCombined(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(CombinedFields().shape());
  const uint64_t ranks = RanksOf(reader, {"tensor", "context", "shard", "replicas", "data"});
  CombinedOptions options = Unsaid();
  CombinedFields().ReadInto(reader, &options);
  CheckOrder(options.order, reader);
  FinishContext(reader, &options);
  const bool shares = uint64_t{options.zero.shard} * options.context > 1;
  MustHaveWhatMatters(options, ranks, shares, reader);
  if (shares && options.zero.stage == 3) {
    CheckGathering(options.zero, reader);
  } else {
    options.zero = WithoutGathering(options.zero);
  }
  CheckExperts(options, reader, network);
  return MakeCombined(options, network, reader.place());
}

}  // namespace

const std::vector<StrategyKind>& StrategyKinds() {
  static const std::vector<StrategyKind> kinds = {
      {"4d",
       "column x row x depth x data with AxoNN's optimisations A to E",
       "AxoNN, arXiv 2305.13525; SC24, arXiv 2502.08145",
       ReadFourD,
       {ShapeIn<FourDFields>}},
      {"megatron",
       "1-D tensor parallelism x data, with or without sequence parallelism",
       "Shoeybi et al., arXiv 1909.08053; Korthikanti et al., arXiv 2205.05198",
       ReadMegatron,
       {ShapeIn<MegatronFields>}},
      {"data-parallel",
       "every rank holds the whole model",
       "Li et al., VLDB 2020 (PyTorch DDP)",
       ReadDataParallel,
       {ShapeIn<DataParallelFields>}},
      {"zero-1",
       "data parallel, optimizer state sharded, replicas of the shards",
       "Rajbhandari et al., arXiv 1910.02054",
       ReadZero1,
       {ShapeIn<Zero1Fields>}},
      {"zero-2",
       "as zero-1, gradients sharded too",
       "Rajbhandari et al., arXiv 1910.02054",
       ReadZero2,
       {ShapeIn<Zero2Fields>}},
      {"fsdp",
       "ZeRO-3: parameters sharded too, gathered before use; replicas > 1: hybrid",
       "Zhao et al., arXiv 2304.11277; Rajbhandari et al., arXiv 1910.02054",
       ReadFsdp,
       {ShapeIn<FsdpFields>}},
      {"combined",
       "tensor, sequence, context and expert parallelism x data with any stage of ZeRO, in any "
       "order",
       "NVIDIA/Megatron-LM; torchtitan, arXiv 2410.06511; Ring Attention, arXiv 2310.01889; "
       "Ulysses, arXiv 2309.14509",
       ReadCombined,
       {ShapeIn<CombinedFields>}},
      {"sbp",
       "any (p0, p1, p2) or layouts for each product, in OneFlow's notation",
       "AutoDDL, arXiv 2301.06813; OneFlow, arXiv 2110.15032",
       ReadSbp,
       {SbpNumbersShape, SbpLayoutsShape}},
      {"atp",
       "2-D tensor parallelism on DeviceMesh(d1, d2) x data, in chunks that take turns",
       "ATP, arXiv 2301.08658",
       ReadAtp,
       {ShapeIn<AtpFields>}},
      {"summa",
       "SUMMA on q x q (Optimus), x depth (Tesseract), x data",
       "Optimus, arXiv 2104.05343; Tesseract, arXiv 2105.14500",
       ReadSumma,
       {ShapeIn<SummaFields>}},
  };
  return kinds;
}

JsonShape StrategyShape() {
  std::vector<JsonShape> shapes;
  for (const StrategyKind& kind : StrategyKinds()) {
    for (const ObjectShapeOf table : kind.tables) shapes.push_back(ObjectOf(table));
  }
  return Either(std::move(shapes));
}

Strategy ReadStrategy(const JsonReader& reader, const Network& network) {
  if (!reader.IsObject()) reader.Expected("an object such as {\"kind\": \"4d\", ...}");
  std::vector<std::string> names;
  for (const StrategyKind& kind : StrategyKinds()) names.push_back(kind.name);
  return StrategyKinds()[reader.At("kind").Choice(names)].read(reader, network);
}

}  // namespace rehearse
