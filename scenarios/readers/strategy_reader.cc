#include "scenarios/readers/strategy_reader.h"

#include <fmt/format.h>

#include "scenarios/readers/sbp_reader.h"
#include "sim/base/error.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_megatron.h"
#include "workloads/strategies/strategy_summa.h"
#include "workloads/strategies/strategy_zero.h"

namespace rehearse {
namespace {

constexpr int64_t kMostRanks = 1 << 22;

// One axis of the mesh; `ranks` is the product so far.
uint32_t ReadAxis(const JsonReader& reader, const char* key, uint64_t* ranks) {
  const auto size = static_cast<uint32_t>(reader.At(key).Integer(1, kMostRanks));
  *ranks *= size;
  if (*ranks > static_cast<uint64_t>(kMostRanks)) {
    reader.Fail(
        fmt::format("a mesh of more than {} ranks: found {} with \"{}\"", kMostRanks, *ranks, key));
  }
  return size;
}

Strategy ReadFourD(const JsonReader& reader, const Network& network) {
  // The SC24 paper's names: x is the row axis, y the column axis, z the depth.
  const bool is_xyz = reader.Has("x") || reader.Has("y") || reader.Has("z");
  reader.AllowKeys({"kind", is_xyz ? "y" : "column", is_xyz ? "x" : "row", is_xyz ? "z" : "depth",
                    "data", "transpose_alternate_layers", "overlap_all_reduce",
                    "overlap_reduce_scatter", "overlap_all_gather", "cached_layers"});
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
  options.cached_layers = static_cast<uint32_t>(reader.At("cached_layers").Integer(0, 10000));
  return MakeFourD(options, network);
}

Strategy ReadMegatron(const JsonReader& reader, const Network& network) {
  reader.AllowKeys({"kind", "tensor", "data", "sequence_parallel", "overlap_all_reduce",
                    "overlap_gradients", "distributed_optimizer"});
  MegatronOptions options;
  uint64_t ranks = 1;
  options.tensor = ReadAxis(reader, "tensor", &ranks);
  options.data = ReadAxis(reader, "data", &ranks);
  options.sequence_parallel = reader.At("sequence_parallel").Bool();
  options.overlap_all_reduce = reader.At("overlap_all_reduce").Bool();
  options.overlap_gradients = reader.At("overlap_gradients").Bool();
  options.distributed_optimizer = reader.At("distributed_optimizer").Bool();
  return MakeMegatron(options, network);
}

Strategy ReadDataParallel(const JsonReader& reader, const Network& network) {
  reader.AllowKeys({"kind", "data", "overlap_gradients"});
  uint64_t ranks = 1;
  const uint32_t data = ReadAxis(reader, "data", &ranks);
  return MakeDataParallel(data, reader.At("overlap_gradients").Bool(), network);
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
    if (reader.Has("gather")) {
      options.by_layer = reader.At("gather").Choice({"product", "layer"}) == 1;
    }
    options.prefetch = static_cast<uint32_t>(reader.At("prefetch").Integer(0, 1000));
    options.reshard_after_forward = reader.At("reshard_after_forward").Bool();
  }
  return MakeZero(options, network);
}

Strategy ReadZero1(const JsonReader& reader, const Network& network) {
  reader.AllowKeys({"kind", "shard", "replicas", "overlap_gradients"});
  return ReadZero(reader, network, 1);
}
Strategy ReadZero2(const JsonReader& reader, const Network& network) {
  reader.AllowKeys({"kind", "shard", "replicas", "overlap_gradients", "overlap_reduce_scatter"});
  return ReadZero(reader, network, 2);
}
Strategy ReadFsdp(const JsonReader& reader, const Network& network) {
  reader.AllowKeys({"kind", "shard", "replicas", "overlap_gradients", "overlap_reduce_scatter",
                    "gather", "prefetch", "reshard_after_forward"});
  return ReadZero(reader, network, 3);
}

Strategy ReadAtp(const JsonReader& reader, const Network& network) {
  reader.AllowKeys({"kind", "d1", "d2", "data", "first", "chunks", "overlap_all_reduce"});
  AtpOptions options;
  uint64_t ranks = 1;
  options.d1 = ReadAxis(reader, "d1", &ranks);
  options.d2 = ReadAxis(reader, "d2", &ranks);
  options.data = ReadAxis(reader, "data", &ranks);
  options.column_first = reader.At("first").Choice({"column", "row"}) == 0;
  options.chunks = static_cast<uint32_t>(reader.At("chunks").Integer(1, 1024));
  options.overlap_all_reduce = reader.At("overlap_all_reduce").Bool();
  return MakeAtp(options, network);
}

Strategy ReadSumma(const JsonReader& reader, const Network& network) {
  reader.AllowKeys({"kind", "q", "depth", "data", "overlap_panels"});
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
      {"4d", "column x row x depth x data with AxoNN's optimisations A to E",
       "AxoNN, arXiv 2305.13525; SC24, arXiv 2502.08145", ReadFourD},
      {"megatron", "1-D tensor parallelism x data, with or without sequence parallelism",
       "Shoeybi et al., arXiv 1909.08053; Korthikanti et al., arXiv 2205.05198", ReadMegatron},
      {"data-parallel", "every rank holds the whole model", "Li et al., VLDB 2020 (PyTorch DDP)",
       ReadDataParallel},
      {"zero-1", "data parallel, optimizer state in shares, replicas of the shares",
       "Rajbhandari et al., arXiv 1910.02054", ReadZero1},
      {"zero-2", "as zero-1, gradients in shares too", "Rajbhandari et al., arXiv 1910.02054",
       ReadZero2},
      {"fsdp", "ZeRO-3: parameters in shares too, gathered before use; replicas > 1: hybrid",
       "Zhao et al., arXiv 2304.11277; Rajbhandari et al., arXiv 1910.02054", ReadFsdp},
      {"sbp", "any (p0, p1, p2) or layouts for each product, in OneFlow's notation",
       "AutoDDL, arXiv 2301.06813; OneFlow, arXiv 2110.15032", ReadSbp},
      {"atp", "2-D tensor parallelism on DeviceMesh(d1, d2) x data, in chunks that take turns",
       "ATP, arXiv 2301.08658", ReadAtp},
      {"summa", "SUMMA on q x q (Optimus), x depth (Tesseract), x data",
       "Optimus, arXiv 2104.05343; Tesseract, arXiv 2105.14500", ReadSumma},
  };
  return kinds;
}

Strategy ReadStrategy(const JsonReader& reader, const Network& network) {
  if (!reader.IsObject()) reader.Expected("an object such as {\"kind\": \"4d\", ...}");
  std::vector<std::string> names;
  for (const StrategyKind& kind : StrategyKinds()) names.push_back(kind.name);
  return StrategyKinds()[reader.At("kind").Choice(names)].read(reader, network);
}

}  // namespace rehearse
