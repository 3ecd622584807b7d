#include "scenarios/readers/strategy_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenarios/readers/sbp_reader.h"
#include "scenarios/readers/strategy_shapes.h"
#include "sim/base/error.h"
#include "sim/schedule/expert_routing.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_combined.h"
#include "workloads/strategies/strategy_megatron.h"
#include "workloads/strategies/strategy_summa.h"
#include "workloads/strategies/strategy_zero.h"

namespace rehearse {
namespace {

// One axis of the mesh; `ranks` is the product so far.
uint32_t ReadAxis(const JsonReader& reader, const char* key, uint64_t* ranks) {
  const auto size = static_cast<uint32_t>(reader.At(key).Integer());
  *ranks *= size;
  if (*ranks > static_cast<uint64_t>(kMostMeshRanks)) {
    reader.Fail(fmt::format("a mesh of more than {} ranks: found {} with \"{}\"", kMostMeshRanks,
                            *ranks, key));
  }
  return size;
}

Strategy ReadFourD(const JsonReader& object, const Network& network) {
  // The SC24 paper's names: x is the row axis, y the column axis, z the depth.
  const bool is_xyz = object.Has("x") || object.Has("y") || object.Has("z");
  const JsonReader reader = object.As(FourDShape(), is_xyz ? kXyz : kColumnRowDepth);
  FourDOptions options;
  uint64_t ranks = 1;
  options.column = ReadAxis(reader, is_xyz ? "y" : "column", &ranks);
  options.row = ReadAxis(reader, is_xyz ? "x" : "row", &ranks);
  options.depth = ReadAxis(reader, is_xyz ? "z" : "depth", &ranks);
  options.data = ReadAxis(reader, "data", &ranks);
  options.transpose_alternate_layers = reader.At("transpose_alternate_layers").Bool();
  options.overlap_all_reduce = reader.At("overlap_all_reduce").Bool();
  options.overlap_reduce_scatter = reader.At("overlap_reduce_scatter").Bool();
  options.overlap_all_gather = reader.At("overlap_all_gather").Bool();
  options.cached_layers = reader.At("cached_layers").Whole<uint32_t>();
  return MakeFourD(options, network);
}

Strategy ReadMegatron(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(MegatronShape());
  MegatronOptions options;
  uint64_t ranks = 1;
  options.tensor = ReadAxis(reader, "tensor", &ranks);
  options.data = ReadAxis(reader, "data", &ranks);
  options.sequence_parallel = reader.At("sequence_parallel").Bool();
  options.overlap_all_reduce = reader.At("overlap_all_reduce").Bool();
  options.overlap_gradients = reader.At("overlap_gradients").Bool();
  options.distributed_optimizer = reader.At("distributed_optimizer").Bool();
  options.bucket_elements = reader.At("bucket_elements").Whole<uint64_t>();
  options.overlap_parameter_gathers = reader.At("overlap_parameter_gathers").Bool();
  return MakeMegatron(options, network);
}

Strategy ReadDataParallel(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(DataParallelShape());
  uint64_t ranks = 1;
  const uint32_t data = ReadAxis(reader, "data", &ranks);
  return MakeDataParallel(data, reader.At("overlap_gradients").Bool(), network);
}

// How stage 3 gathers parameters and reduces gradients.
void ReadGathering(const JsonReader& reader, ZeroOptions* options) {
  options->by_layer = reader.At("gather").Choice() == 1;
  options->prefetch = reader.At("prefetch").Whole<uint32_t>();
  options->reshard_after_forward = reader.At("reshard_after_forward").Bool();
  constexpr ShardCopies kCopies[] = {ShardCopies::kNone, ShardCopies::kFlat,
                                     ShardCopies::kPerParameter, ShardCopies::kBuckets};
  options->copies = kCopies[reader.At("copies").Choice()];
  options->gathers_behind_backward = reader.At("backward_prefetch").Choice() == 1;
  if (options->gathers_behind_backward && !options->by_layer)
    reader.At("backward_prefetch").Fail("\"post\" is for layers; expected \"gather\": \"layer\"");
  options->reduces_in_fp32 = reader.At("reduce").Choice() == 1;
  options->prefetch_elements = reader.At("prefetch_elements").Whole<uint64_t>();
  options->most_gathered = reader.At("most_gathered").Whole<uint64_t>();
  options->reduce_elements = reader.At("reduce_elements").Whole<uint64_t>();
  if (options->by_layer && options->prefetch_elements + options->reduce_elements > 0) {
    reader.Fail(
        "\"prefetch_elements\" and \"reduce_elements\" count products' weights; expected "
        "\"gather\": \"product\" with them");
  }
}

Strategy ReadZero(const JsonReader& reader, const Network& network, uint32_t stage) {
  ZeroOptions options;
  uint64_t ranks = 1;
  options.stage = stage;
  options.shard = ReadAxis(reader, "shard", &ranks);
  options.replicas = ReadAxis(reader, "replicas", &ranks);
  if (stage >= 2) options.overlap_reduce_scatter = reader.At("overlap_reduce_scatter").Bool();
  options.overlap_all_reduce = reader.At("overlap_gradients").Bool();
  if (stage == 3) {
    ReadGathering(reader, &options);
  }
  return MakeZero(options, network);
}

Strategy ReadZero1(const JsonReader& reader, const Network& network) {
  return ReadZero(reader.As(Zero1Shape()), network, 1);
}
Strategy ReadZero2(const JsonReader& reader, const Network& network) {
  return ReadZero(reader.As(Zero2Shape()), network, 2);
}
Strategy ReadFsdp(const JsonReader& reader, const Network& network) {
  return ReadZero(reader.As(FsdpShape()), network, 3);
}

std::vector<CombinedAxis> ReadOrder(const JsonReader& reader) {
  std::vector<CombinedAxis> order;
  for (const JsonReader& entry : reader.Elements()) {
    const std::string name = entry.String();
    size_t axis = 0;
    while (name != Name(static_cast<CombinedAxis>(axis))) ++axis;
    order.push_back(static_cast<CombinedAxis>(axis));
    if (std::count(order.begin(), order.end(), order.back()) > 1)
      entry.Fail(fmt::format("\"{}\" is named twice; expected each axis once", name));
  }
  return order;
}

void ReadContext(const JsonReader& reader, CombinedOptions* options) {
  constexpr ContextKind kKinds[] = {ContextKind::kRing, ContextKind::kAllGather,
                                    ContextKind::kUlysses};
  options->context_kind = kKinds[reader.At("context_kind").Choice()];
  const bool has_whole_sequences = options->context_kind == ContextKind::kUlysses;
  options->balances_context = !has_whole_sequences;
  if (!reader.Has("context_order")) return;
  options->balances_context = reader.At("context_order").Choice() == 0;
  if (options->balances_context && has_whole_sequences) {
    reader.At("context_order")
        .Fail("\"ulysses\" gives each rank whole sequences; expected \"contiguous\"");
  }
}

// Experts are spread over the strategy's ranks.
void ReadExperts(const JsonReader& reader, const Network& network, CombinedOptions* options) {
  options->expert = reader.At("expert").Whole<uint32_t>();
  options->expert_tensor = reader.At("expert_tensor").Whole<uint32_t>();
  options->overlap_shared_expert = reader.At("overlap_shared_expert").Bool();
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
  if (experts % options->expert != 0) {
    reader.At("expert").Fail(
        fmt::format("{} experts of {} do not split into {} equal parts; expected a divisor",
                    experts, network.name, options->expert));
  }
}

// A switch that the file or its software must give if it matters.
bool ReadSwitch(const JsonReader& reader, const char* key, bool matters) {
  return (matters || reader.Has(key)) && reader.At(key).Bool();
}

Strategy ReadCombined(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(CombinedShape());
  CombinedOptions options;
  ZeroOptions& zero = options.zero;
  uint64_t ranks = 1;
  options.tensor = ReadAxis(reader, "tensor", &ranks);
  options.context = ReadAxis(reader, "context", &ranks);
  zero.shard = ReadAxis(reader, "shard", &ranks);
  zero.replicas = ReadAxis(reader, "replicas", &ranks);
  options.data = ReadAxis(reader, "data", &ranks);
  options.order = ReadOrder(reader.At("order"));
  ReadContext(reader, &options);
  const uint64_t sharers = uint64_t{zero.shard} * options.context;
  zero.stage = sharers > 1 || reader.Has("zero") ? reader.At("zero").Whole<uint32_t>() : 0;
  options.sequence_parallel = ReadSwitch(reader, "sequence_parallel", options.tensor > 1);
  options.keeps_gathered = reader.At("keep_gathered").Bool();
  options.overlap_all_reduce = ReadSwitch(reader, "overlap_all_reduce", options.tensor > 1);
  zero.overlap_all_reduce = ReadSwitch(reader, "overlap_gradients", ranks > options.tensor);
  zero.overlap_reduce_scatter =
      ReadSwitch(reader, "overlap_reduce_scatter", sharers > 1 && zero.stage >= 2);
  if (sharers > 1 && zero.stage == 3) ReadGathering(reader, &zero);
  options.bucket_elements = reader.At("bucket_elements").Whole<uint64_t>();
  options.overlap_parameter_gathers = reader.At("overlap_parameter_gathers").Bool();
  ReadExperts(reader, network, &options);
  return MakeCombined(options, network, reader.place());
}

Strategy ReadAtp(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(AtpShape());
  AtpOptions options;
  uint64_t ranks = 1;
  options.d1 = ReadAxis(reader, "d1", &ranks);
  options.d2 = ReadAxis(reader, "d2", &ranks);
  options.data = ReadAxis(reader, "data", &ranks);
  options.column_first = reader.At("first").Choice() == 0;
  options.chunks = reader.At("chunks").Whole<uint32_t>();
  options.overlap_chunks_backward = reader.At("overlap_chunks_backward").Bool();
  options.overlap_all_reduce = reader.At("overlap_all_reduce").Bool();
  return MakeAtp(options, network);
}

Strategy ReadSumma(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(SummaShape());
  SummaOptions options;
  uint64_t ranks = 1;
  options.q = ReadAxis(reader, "q", &ranks);
  ranks *= options.q;
  options.depth = ReadAxis(reader, "depth", &ranks);
  options.data = ReadAxis(reader, "data", &ranks);
  options.overlap_panels = reader.At("overlap_panels").Bool();
  return MakeSumma(options, network);
}

}  // namespace

const std::vector<StrategyKind>& StrategyKinds() {
  static const std::vector<StrategyKind> kinds = {
      {"4d",
       "column x row x depth x data with AxoNN's optimisations A to E",
       "AxoNN, arXiv 2305.13525; SC24, arXiv 2502.08145",
       ReadFourD,
       {FourDShape}},
      {"megatron",
       "1-D tensor parallelism x data, with or without sequence parallelism",
       "Shoeybi et al., arXiv 1909.08053; Korthikanti et al., arXiv 2205.05198",
       ReadMegatron,
       {MegatronShape}},
      {"data-parallel",
       "every rank holds the whole model",
       "Li et al., VLDB 2020 (PyTorch DDP)",
       ReadDataParallel,
       {DataParallelShape}},
      {"zero-1",
       "data parallel, optimizer state sharded, replicas of the shards",
       "Rajbhandari et al., arXiv 1910.02054",
       ReadZero1,
       {Zero1Shape}},
      {"zero-2",
       "as zero-1, gradients sharded too",
       "Rajbhandari et al., arXiv 1910.02054",
       ReadZero2,
       {Zero2Shape}},
      {"fsdp",
       "ZeRO-3: parameters sharded too, gathered before use; replicas > 1: hybrid",
       "Zhao et al., arXiv 2304.11277; Rajbhandari et al., arXiv 1910.02054",
       ReadFsdp,
       {FsdpShape}},
      {"combined",
       "tensor, sequence, context and expert parallelism x data with any stage of ZeRO, in any "
       "order",
       "NVIDIA/Megatron-LM; torchtitan, arXiv 2410.06511; Ring Attention, arXiv 2310.01889; "
       "Ulysses, arXiv 2309.14509",
       ReadCombined,
       {CombinedShape}},
      {"sbp",
       "any (p0, p1, p2) or layouts for each product, in OneFlow's notation",
       "AutoDDL, arXiv 2301.06813; OneFlow, arXiv 2110.15032",
       ReadSbp,
       {SbpNumbersShape, SbpLayoutsShape}},
      {"atp",
       "2-D tensor parallelism on DeviceMesh(d1, d2) x data, in chunks that take turns",
       "ATP, arXiv 2301.08658",
       ReadAtp,
       {AtpShape}},
      {"summa",
       "SUMMA on q x q (Optimus), x depth (Tesseract), x data",
       "Optimus, arXiv 2104.05343; Tesseract, arXiv 2105.14500",
       ReadSumma,
       {SummaShape}},
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
