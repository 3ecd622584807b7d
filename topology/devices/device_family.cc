#include "topology/devices/device_family.h"

#include <utility>

#include "topology/devices/device_rows.h"

namespace rehearse {

DeviceSpec Roofline(const RooflineFigures& figures) {
  const DeviceSpec a100 = A100Sxm40();
  DeviceSpec device;
  device.name = figures.name;
  device.description = figures.description;
  device.compute_capability = figures.compute_capability;
  device.gfx = figures.gfx;
  device.matrix_peak_16 = FlopsPerSecond(figures.matrix_16 * 1e12);
  device.matrix_peak_32 = FlopsPerSecond(figures.matrix_32 * 1e12);
  device.vector_peak_32 = FlopsPerSecond(figures.vector_32 * 1e12);
  device.vector_peak_64 = FlopsPerSecond(figures.vector_64 * 1e12);
  device.memory = Bytes(figures.gibibytes * 1024 * 1024 * 1024);
  device.memory_bandwidth = BytesPerSecond(figures.gigabytes_per_second * 1e9);
  device.memory_efficiency = a100.memory_efficiency;
  device.gemm_efficiency = figures.gemm_efficiency;
  device.attention_forward_efficiency = a100.attention_forward_efficiency;
  device.attention_backward_efficiency = a100.attention_backward_efficiency;
  device.launch_overhead = a100.launch_overhead;
  for (const char* figure : {"matrix_peak_16", "matrix_peak_32", "vector_peak_32", "vector_peak_64",
                             "memory", "memory_bandwidth"})
    device.sources.emplace_back(figure, figures.data_sheet);
  device.sources.emplace_back("gemm_efficiency", figures.gemm_source);
  device.sources.emplace_back("gemm_points", "none");
  device.sources.emplace_back("gemm_scale", "1: nothing to scale");
  for (const char* figure : {"memory_efficiency", "attention_forward_efficiency",
                             "attention_backward_efficiency", "launch_overhead"})
    device.sources.emplace_back(figure, "assumed as the A100's");
  return device;
}

DeviceSpec WithTiles(DeviceSpec device, const GemmModel& model, std::string source) {
  device.gemm_model = std::make_shared<const GemmModel>(model);
  device.sources.emplace_back("gemm_model", std::move(source));
  return device;
}

DeviceSpec WithAttention(DeviceSpec device, AttentionModel model, std::string source) {
  device.attention_model = std::make_shared<const AttentionModel>(std::move(model));
  device.sources.emplace_back(
      "attention_model",
      source.empty() ? "measured rates of each implementation: topology/devices/attention_model.cc"
                     : std::move(source));
  return device;
}

DeviceSpec WithMemory(DeviceSpec device, const MemoryFigures& figures) {
  device.memory_efficiency = figures.efficiency;
  for (auto& [figure, source] : device.sources)
    if (figure == "memory_efficiency") source = figures.efficiency_source;
  if (figures.cache == 0) return device;
  device.cache = Bytes(figures.cache);
  device.cache_bandwidth = BytesPerSecond(figures.cache_bytes_per_second);
  device.sources.emplace_back("cache", figures.cache_source);
  return device;
}

DeviceSpec WithStrided(DeviceSpec device, Generation generation, uint32_t multiprocessors) {
  struct Measured {
    Seconds element;
    double multiprocessors = 1;
    const char* source = "";
  };
  static constexpr Measured kMeasured[] = {
      {Seconds(5.3e-12), 108,
       "linkedin/Liger-Kernel, rope_speed, total_dim_8192, A100 SXM 80 GB: Hugging Face"},
      {Seconds(3.5e-12), 132,
       "linkedin/Liger-Kernel, rope_speed, total_dim_8192, H100 80 GB HBM3: Hugging Face"},
      {Seconds(3.7e-12), 148,
       "linkedin/Liger-Kernel, all_benchmark_data_rope_models.csv, qwen3_30b_a3b, B200: "
       "huggingface"}};
  const Measured& measured = kMeasured[static_cast<size_t>(generation)];
  device.strided_element = measured.element * (measured.multiprocessors / multiprocessors);
  device.sources.emplace_back("strided_element", measured.source);
  return device;
}

}  // namespace rehearse
