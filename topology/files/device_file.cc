#include "topology/files/device_file.h"

#include "topology/cluster/cluster.h"
#include "topology/devices/device.h"
#include "topology/devices/gemm_model.h"

namespace rehearse {
namespace {

JsonKey Efficiency(const char* name, const char* about) {
  return {name, ANumberAbove(0, 1), Default("1"), about, "0.9"};
}

JsonKey OtherPeak(const char* name, const char* about) {
  return {name, AFlopRate(), Optional("such work is refused"), about, "\"19.5TFLOPS\""};
}

}  // namespace

JsonShape DeviceChoiceShape() {
  return Either({AText("name of a known device"), ObjectOf(DeviceShape)});
}

const ObjectShape& DeviceShape() {
  static const ObjectShape shape = {
      "device",
      "What computes: its peaks, its memory, and how much of them it reaches.",
      {{"name", AText(), Required(), "what results call it", "\"mine\""},
       {"description", AText(), Optional("its name"), "for people", "\"a GPU of ours\""},
       {"compute_capability", AWhole(0, 1000), Default("0"),
        "NVIDIA's compute capability times ten; 0: none", "90"},
       {"matrix_peak_16", AFlopRate(), Required(), "peak of products in bf16 or fp16",
        "\"312TFLOPS\""},
       OtherPeak("matrix_peak_8", "peak of products in fp8"),
       OtherPeak("matrix_peak_4", "peak of products in fp4"),
       OtherPeak("matrix_peak_32", "peak of products in tf32"),
       OtherPeak("vector_peak_32", "peak of arithmetic in fp32"),
       OtherPeak("vector_peak_64", "peak of arithmetic in fp64"),
       {"memory", ASize(), Required(), "memory multiprocessors of the device", "\"40GiB\""},
       {"memory_bandwidth", ABandwidth(), Required(), "its nominal bandwidth", "\"1.555TBps\""},
       Efficiency("memory_efficiency", "share of the memory's bandwidth that kernels reach"),
       {"cache", ASize(), Optional("none"),
        "L2 cache, in which element-wise kernels find what was just written", "\"50MB\""},
       {"cache_bandwidth", ABandwidth(), Optional("memory_bandwidth"),
        "bandwidth reached in the cache", "\"6TBps\""},
       {"strided_element", ADuration(), Default("\"0s\""),
        "what kernels with broadcast or strided operands take for an element, if that is longer "
        "than for its bytes",
        "\"3.5ps\""},
       Efficiency("gemm_efficiency", "share of the peak that large products reach"),
       {"gemm_scale", ANumberAbove(0, 1000), Default("1"), "factor on all efficiencies of products",
        "0.95"},
       {"gemm_points", ListOf(ObjectOf(GemmPointShape)), Default("[]"), "measured products",
        R"([{"mode": "NN", "m": 4096, "n": 4096, "k": 4096, "efficiency": 0.8}])"},
       {"gemm_model", ObjectOf(GemmModelShape), Optional("gemm_points, gemm_efficiency"),
        "model of all other products, by tiles and waves",
        R"({"library": "hopper", "multiprocessors": 132, "few_waves": 0.86, "many_waves": 0.73})"},
       {"gemm_model_8", ObjectOf(GemmModelShape), Optional("gemm_model"),
        "the same for products in fp8 and fp4, as shares of their peaks",
        R"({"library": "hopper", "multiprocessors": 132, "few_waves": 0.7, "many_waves": 0.7})"},
       {"attention_model", ObjectOf(AttentionModelShape),
        Optional("attention_forward_efficiency, attention_backward_efficiency"),
        "model of attention, by implementation",
        R"({"multiprocessors": 132, "kernels": [{"kernel": "flash-2",
                     "forward": {"rates": [0.34, 0.39, 0.37]},
                     "backward": {"rates": [0.31, 0.35, 0.33]}}]})"},
       Efficiency("attention_forward_efficiency", "share of the peak that fused attention reaches"),
       Efficiency("attention_backward_efficiency", "the same of its backward pass"),
       {"launch_overhead", ADurationUpTo(kLongestLatency), Default("\"0us\""),
        "time to launch a kernel", "\"4us\""},
       {"slowdown", ObjectOf(SlowdownShape), Optional("none"),
        "slowdown while the device computes and communicates", R"({"gemm": 0.1})"},
       {"host_cores", ANumber(0, 1e6), Default("0"), "cores that the ranks of a machine share",
        "2"},
       {"sources", Named(AText("source"), "figure"), Optional("this file"),
        "where the figures come from", R"({"all": "data sheet"})"}}};
  return shape;
}

const ObjectShape& GemmPointShape() {
  constexpr int64_t kLargest = int64_t{1} << 40;
  const auto side = [](const char* name) {
    return JsonKey{name, AWhole(1, kLargest), Required(), "of the product", "4096"};
  };
  static const ObjectShape shape = {
      "gemm point",
      "What a product of m x k by k x n reaches.",
      {{"mode", OneOf({"NN", "NT", "TN"}), Required(), "which operands are transposed"},
       side("m"),
       side("n"),
       side("k"),
       Efficiency("efficiency", "share of the peak")}};
  return shape;
}

const ObjectShape& GemmModelShape() {
  std::vector<std::string> libraries;
  for (const GemmLibrary library : kGemmLibraries) libraries.emplace_back(Name(library));
  static const ObjectShape shape = {
      "gemm model",
      "How long a product takes, by tiles and waves.",
      {{"library", OneOf(std::move(libraries)), Required(), "the library whose tiles are used"},
       {"multiprocessors", AWhole(1, 1 << 16), Required(), "multiprocessors of the device", "132"},
       {"few_waves", ANumberAbove(0, 1), Required(), "share of the peak in the first waves",
        "0.86"},
       {"many_waves", ANumberAbove(0, 1), Required(), "share of the peak in the long run", "0.73"},
       {"sustained", ANumberAbove(0, 1), Default("1"),
        "share of these rates that minutes of large products sustain", "0.9"},
       {"launch", ADurationUpTo(kLongestLatency), Default("\"0us\""), "time to launch a product",
        "\"2us\""},
       {"cache", ASize(), Optional("none"), "L2 cache, where results of the library leave it",
        "\"96MB\""}}};
  return shape;
}

const ObjectShape& AttentionModelShape() {
  static const ObjectShape shape = {
      "attention model",
      "How long attention takes, by implementation.",
      {{"multiprocessors", AWhole(1, 1 << 16), Required(), "multiprocessors of the device", "132"},
       {"launch", ADurationUpTo(kLongestLatency), Default("\"0us\""),
        "time to launch an attention core", "\"2us\""},
       {"kernels", ListOf(ObjectOf(AttentionRatesShape)), Required(),
        "each implementation once; \"fused\" means the first",
        R"([{"kernel": "flash-2", "forward": {"rates": [0.34, 0.39, 0.37]},
             "backward": {"rates": [0.31, 0.35, 0.33]}}])"}}};
  return shape;
}

const ObjectShape& AttentionRatesShape() {
  static const ObjectShape shape = {
      "attention rates",
      "What one implementation reaches.",
      {{"kernel", OneOf({"flash-1", "flash-2", "flash-3", "cudnn", "efficient"}), Required(),
        "which implementation"},
       {"rows", AWhole(1, 1 << 16), Default("128"), "queries per block", "256"},
       {"forward", ObjectOf(AttentionPassShape), Required(), "its forward pass",
        R"({"rates": [0.34, 0.39, 0.37]})"},
       {"backward", ObjectOf(AttentionPassShape), Required(), "its backward pass",
        R"({"rates": [0.31, 0.35, 0.33]})"}}};
  return shape;
}

const ObjectShape& AttentionPassShape() {
  static const ObjectShape shape = {
      "attention pass",
      "One direction of attention.",
      {{"rates", Tuple({ANumberAbove(0, 1), ANumberAbove(0, 1), ANumberAbove(0, 1)}), Required(),
        "shares of the peak, for heads of 64, 128 and 256", "[0.34, 0.39, 0.37]"},
       {"causal", ANumberAbove(0, 2), Default("1"), "factor on these rates with a causal mask",
        "0.95"},
       {"setup", ANumber(0, 1 << 20), Default("0"), "fixed cost of a block, in keys", "80"},
       {"tail", ANumber(0, 1000), Default("0"), "wait for the last blocks, in longest blocks",
        "0.65"}}};
  return shape;
}

const ObjectShape& SlowdownShape() {
  const auto factor = [](const char* name, const char* about) {
    return JsonKey{name, ANumber(0, 1000), Default("0"), about, "0.1"};
  };
  static const ObjectShape shape = {
      "slowdown",
      "While a device computes and communicates, a kernel runs at 1/(1 + slowdown).",
      {factor("gemm", "slowdown of products"),
       factor("attention", "slowdown of fused attention"),
       factor("memory", "slowdown of memory-bound kernels"),
       factor("communication", "slowdown of transfers while a kernel runs"),
       {"waves", ObjectOf(WavesShape), Optional("products slow down by the factor"),
        "model of products, by waves of thread blocks",
        R"({"multiprocessors": 132, "taken": 24, "tile": [128, 256]})"}}};
  return shape;
}

const ObjectShape& WavesShape() {
  constexpr int64_t kMost = 1 << 16;
  static const ObjectShape shape = {
      "waves",
      "Thread blocks of a product, on the multiprocessors that communication leaves free.",
      {{"multiprocessors", AWhole(1, kMost), Required(), "multiprocessors of the device", "132"},
       {"taken", AWhole(0, kMost), Required(), "multiprocessors that communication takes", "24"},
       {"tile", Tuple({AWhole(1, kMost), AWhole(1, kMost)}), Required(),
        "[rows, columns] of a thread block", "[128, 256]"},
       {"persistent", TrueFalse(), Default("false"),
        "at most a block for each multiprocessor, with tiles that are dealt beforehand", "true"}}};
  return shape;
}

}  // namespace rehearse
