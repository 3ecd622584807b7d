#include "topology/files/device_shapes.h"

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
       {"compute_capability", AWhole(0, 1000), Default("0"), "NVIDIA's times ten; 0: none", "90"},
       {"matrix_peak_16", AFlopRate(), Required(), "products in bf16 or fp16", "\"312TFLOPS\""},
       OtherPeak("matrix_peak_8", "products in fp8"),
       OtherPeak("matrix_peak_4", "products in fp4"),
       OtherPeak("matrix_peak_32", "products in tf32"),
       OtherPeak("vector_peak_32", "arithmetic in fp32"),
       OtherPeak("vector_peak_64", "arithmetic in fp64"),
       {"memory", ASize(), Required(), "of the device", "\"40GiB\""},
       {"memory_bandwidth", ABandwidth(), Required(), "nominal", "\"1.555TBps\""},
       Efficiency("memory_efficiency", "of the memory's bandwidth"),
       {"cache", ASize(), Optional("none"), "L2: what element-wise kernels read is still there",
        "\"50MB\""},
       {"cache_bandwidth", ABandwidth(), Optional("memory_bandwidth"), "reached there",
        "\"6TBps\""},
       Efficiency("gemm_efficiency", "of the peak, reached by large products"),
       {"gemm_scale", ANumberAbove(0, 1000), Default("1"), "of all efficiencies of products",
        "0.95"},
       {"gemm_points", ListOf(ObjectOf(GemmPointShape)), Default("[]"), "measured products",
        R"([{"mode": "NN", "m": 4096, "n": 4096, "k": 4096, "efficiency": 0.8}])"},
       {"gemm_model", ObjectOf(GemmModelShape), Optional("gemm_points, gemm_efficiency"),
        "tiles and waves of all other products",
        R"({"library": "hopper", "multiprocessors": 132, "few_waves": 0.86, "many_waves": 0.73})"},
       {"gemm_model_8", ObjectOf(GemmModelShape), Optional("gemm_model"),
        "the same of products in fp8 and fp4, as shares of their peaks",
        R"({"library": "hopper", "multiprocessors": 132, "few_waves": 0.7, "many_waves": 0.7})"},
       {"attention_model", ObjectOf(AttentionModelShape),
        Optional("attention_forward_efficiency, attention_backward_efficiency"),
        "attention by implementation",
        R"({"multiprocessors": 132, "kernels": [{"kernel": "flash-2",
                     "forward": {"rates": [0.34, 0.39, 0.37]},
                     "backward": {"rates": [0.31, 0.35, 0.33]}}]})"},
       Efficiency("attention_forward_efficiency", "of fused attention, of the peak"),
       Efficiency("attention_backward_efficiency", "of its backward pass"),
       {"launch_overhead", ADurationUpTo(kLongestLatency), Default("\"0us\""), "of a kernel",
        "\"4us\""},
       {"slowdown", ObjectOf(SlowdownShape), Optional("none"),
        "while the device computes and communicates", R"({"gemm": 0.1})"},
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
       Efficiency("efficiency", "of the peak")}};
  return shape;
}

const ObjectShape& GemmModelShape() {
  std::vector<std::string> libraries;
  for (const GemmLibrary library : kGemmLibraries) libraries.emplace_back(Name(library));
  static const ObjectShape shape = {
      "gemm model",
      "How long a product takes, by tiles and waves.",
      {{"library", OneOf(std::move(libraries)), Required(), "whose tiles"},
       {"multiprocessors", AWhole(1, 1 << 16), Required(), "of the device", "132"},
       {"few_waves", ANumberAbove(0, 1), Required(), "of the peak, in the first waves", "0.86"},
       {"many_waves", ANumberAbove(0, 1), Required(), "of the peak, in the long run", "0.73"},
       {"sustained", ANumberAbove(0, 1), Default("1"), "of the rates, in minutes of large products",
        "0.9"},
       {"launch", ADurationUpTo(kLongestLatency), Default("\"0us\""), "of a product", "\"2us\""},
       {"cache", ASize(), Optional("none"), "L2, if the library's results leave it", "\"96MB\""}}};
  return shape;
}

const ObjectShape& AttentionModelShape() {
  static const ObjectShape shape = {
      "attention model",
      "How long attention takes, by implementation.",
      {{"multiprocessors", AWhole(1, 1 << 16), Required(), "of the device", "132"},
       {"launch", ADurationUpTo(kLongestLatency), Default("\"0us\""), "of a core", "\"2us\""},
       {"kernels", ListOf(ObjectOf(AttentionRatesShape)), Required(),
        "each once; the first is what fused means",
        R"([{"kernel": "flash-2", "forward": {"rates": [0.34, 0.39, 0.37]},
             "backward": {"rates": [0.31, 0.35, 0.33]}}])"}}};
  return shape;
}

const ObjectShape& AttentionRatesShape() {
  static const ObjectShape shape = {
      "attention rates",
      "What one implementation reaches.",
      {{"kernel", OneOf({"flash-1", "flash-2", "flash-3", "cudnn", "efficient"}), Required(),
        "which"},
       {"rows", AWhole(1, 1 << 16), Default("128"), "queries of a block", "256"},
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
        "of the peak, for heads of 64, 128 and 256", "[0.34, 0.39, 0.37]"},
       {"causal", ANumberAbove(0, 2), Default("1"), "of these with a causal mask", "0.95"},
       {"setup", ANumber(0, 1 << 20), Default("0"), "what a block costs in addition, in keys",
        "80"},
       {"tail", ANumber(0, 1000), Default("0"), "how long the last blocks take, in longest blocks",
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
      {factor("gemm", "of products"),
       factor("attention", "of fused attention"),
       factor("memory", "of kernels that are bound by memory"),
       factor("communication", "of transfers, while a kernel runs"),
       {"waves", ObjectOf(WavesShape), Optional("products slow down by the factor"),
        "products in waves of thread blocks",
        R"({"multiprocessors": 132, "taken": 24, "tile": [128, 256]})"}}};
  return shape;
}

const ObjectShape& WavesShape() {
  constexpr int64_t kMost = 1 << 16;
  static const ObjectShape shape = {
      "waves",
      "Thread blocks of a product on the multiprocessors that communication leaves.",
      {{"multiprocessors", AWhole(1, kMost), Required(), "of the device", "132"},
       {"taken", AWhole(0, kMost), Required(), "by communication", "24"},
       {"tile", Tuple({AWhole(1, kMost), AWhole(1, kMost)}), Required(),
        "[rows, columns] of a thread block", "[128, 256]"}}};
  return shape;
}

}  // namespace rehearse
