#include "topology/files/device_file.h"

#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_document.h"
#include "topology/cluster/cluster.h"
#include "topology/devices/attention_model.h"
#include "topology/devices/device.h"
#include "topology/devices/gemm_model.h"
#include "topology/files/exact_text.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

void ReadName(const JsonReader& reader, std::string* name) {
  *name = reader.String();
  if (name->empty()) reader.Expected("a name");
}
void WriteName(const std::string& name, Json* to) { *to = name; }

// ---- Products -----------------------------------------------------------------------------------

constexpr std::array kGemmModes = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};

template <typename T>
Field<T> Side(const char* name, uint64_t T::*member) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  return {name, member, AWhole(1, kLargest), Required(), "of the product", "4096"};
}

// A new point has reached nothing; one that does not say so has reached its peak.
FieldPresence WholePeak() {
  FieldPresence presence = Default("1");
  presence.is_needed = true;
  return presence;
}

const Fields<GemmPoint>& GemmPointFields() {
  static const Fields<GemmPoint> fields("gemm point", "What a product of m x k by k x n reaches.",
                                        {{"mode", &GemmPoint::mode, OneNamedOf(kGemmModes),
                                          Required(), "which operands are transposed"},
                                         Side("m", &GemmPoint::m),
                                         Side("n", &GemmPoint::n),
                                         Side("k", &GemmPoint::k),
                                         {"efficiency", &GemmPoint::efficiency, ANumberAbove(0, 1),
                                          WholePeak(), "share of the peak", "0.9"}});
  return fields;
}

const Fields<GemmModel>& GemmModelFields() {
  static const Fields<GemmModel> fields(
      "gemm model", "How long a product takes, by tiles and waves.",
      {{"library", &GemmModel::library, OneNamedOf(kGemmLibraries), Required(),
        "the library whose tiles are used"},
       {"multiprocessors", &GemmModel::multiprocessors, AWhole(1, 1 << 16), Required(),
        "multiprocessors of the device", "132"},
       {"few_waves", &GemmModel::few_waves, ANumberAbove(0, 1), Required(),
        "share of the peak in the first waves", "0.86"},
       {"many_waves", &GemmModel::many_waves, ANumberAbove(0, 1), Required(),
        "share of the peak in the long run", "0.73"},
       {"sustained", &GemmModel::sustained, ANumberAbove(0, 1), Usual(),
        "share of these rates that minutes of large products sustain", "0.9"},
       {"launch", &GemmModel::launch, AnExactDurationUpTo(kLongestLatency), Usual(),
        "time to launch a product", "\"2us\""},
       {"cache", &GemmModel::cache, AnExactSize(), Optional("none"),
        "L2 cache, where results of the library leave it", "\"96MB\""}},
      nullptr, {"few_waves", "many_waves", "launch", "cache"});
  return fields;
}

// ---- Attention ----------------------------------------------------------------------------------

void ReadRates(const JsonReader& reader, std::array<double, 3>* rates) {
  const std::vector<JsonReader> elements = reader.Elements();
  if (elements.size() != rates->size()) reader.Expected("[heads of 64, of 128, of 256]");
  for (size_t i = 0; i < elements.size(); ++i) (*rates)[i] = elements[i].Number();
}
void WriteRates(const std::array<double, 3>& rates, Json* to) { *to = rates; }

const Fields<AttentionPass>& AttentionPassFields() {
  static const Fields<AttentionPass> fields(
      "attention pass", "One direction of attention.",
      {{"rates", &AttentionPass::rates,
        ReadBy(Tuple({ANumberAbove(0, 1), ANumberAbove(0, 1), ANumberAbove(0, 1)}), ReadRates,
               WriteRates),
        Required(), "shares of the peak, for heads of 64, 128 and 256", "[0.34, 0.39, 0.37]"},
       {"causal", &AttentionPass::causal, ANumberAbove(0, 2), UsualAndWritten(),
        "factor on these rates with a causal mask", "0.95"},
       {"setup", &AttentionPass::setup, ANumber(0, 1 << 20), UsualAndWritten(),
        "fixed cost of a block, in keys", "80"},
       {"tail", &AttentionPass::tail, ANumber(0, 1000), UsualAndWritten(),
        "wait for the last blocks, in longest blocks", "0.65"}});
  return fields;
}

const Fields<AttentionRates>& AttentionRatesFields() {
  constexpr std::array kKernels = {AttentionKernel::kFlash1, AttentionKernel::kFlash2,
                                   AttentionKernel::kFlash3, AttentionKernel::kCudnn,
                                   AttentionKernel::kEfficient};
  static const Fields<AttentionRates> fields(
      "attention rates", "What one implementation reaches.",
      {{"kernel", &AttentionRates::kernel, OneNamedOf(kKernels), Required(),
        "which implementation"},
       {"rows", &AttentionRates::rows, AWhole(1, 1 << 16), UsualAndWritten(), "queries per block",
        "256"},
       {"forward", &AttentionRates::forward, ObjectIn<AttentionPassFields>(), Required(),
        "its forward pass", R"({"rates": [0.34, 0.39, 0.37]})"},
       {"backward", &AttentionRates::backward, ObjectIn<AttentionPassFields>(), Required(),
        "its backward pass", R"({"rates": [0.31, 0.35, 0.33]})"}});
  return fields;
}

void CheckKernels(const JsonReader& reader, AttentionModel* model) {
  const std::vector<JsonReader> elements = reader.At("kernels").Elements();
  for (size_t i = 0; i < elements.size(); ++i) {
    const AttentionRates& rates = model->kernels[i];
    if (FindRates(*model, rates.kernel) != &rates)
      elements[i].At("kernel").Fail(fmt::format("\"{}\" appears twice", Name(rates.kernel)));
  }
  if (elements.empty()) reader.At("kernels").Expected("one or more");
}

const Fields<AttentionModel>& AttentionModelFields() {
  static const Fields<AttentionModel> fields(
      "attention model", "How long attention takes, by implementation.",
      {{"multiprocessors", &AttentionModel::multiprocessors, AWhole(1, 1 << 16), Required(),
        "multiprocessors of the device", "132"},
       {"launch", &AttentionModel::launch, AnExactDurationUpTo(kLongestLatency), Usual(),
        "time to launch an attention core", "\"2us\""},
       {"kernels", &AttentionModel::kernels, ListOf(ObjectIn<AttentionRatesFields>()), Required(),
        "each implementation once; \"fused\" means the first",
        R"([{"kernel": "flash-2", "forward": {"rates": [0.34, 0.39, 0.37]},
             "backward": {"rates": [0.31, 0.35, 0.33]}}])"}},
      CheckKernels);
  return fields;
}

// ---- Compute beside communication ---------------------------------------------------------------

void ReadTile(const JsonReader& reader, Waves* waves) {
  const std::vector<JsonReader> tile = reader.Elements();
  if (tile.size() != 2) reader.Expected("[rows, columns]");
  waves->tile_rows = tile[0].Whole<uint32_t>();
  waves->tile_columns = tile[1].Whole<uint32_t>();
}
void WriteTile(const Waves& waves, Json* to) { *to = {waves.tile_rows, waves.tile_columns}; }

void CheckWaves(const JsonReader& reader, Waves* waves) {
  if (waves->taken >= waves->multiprocessors)
    reader.At("taken").Expected(fmt::format("fewer than {}", waves->multiprocessors));
}

const Fields<Waves>& WavesFields() {
  constexpr int64_t kMost = 1 << 16;
  static const Fields<Waves> fields(
      "waves", "Thread blocks of a product, on the multiprocessors that communication leaves free.",
      {{"multiprocessors", &Waves::multiprocessors, AWhole(1, kMost), Required(),
        "multiprocessors of the device", "132"},
       {"taken", &Waves::taken, AWhole(0, kMost), Required(),
        "multiprocessors that communication takes", "24"},
       {"tile", kItself, ReadBy(Tuple({AWhole(1, kMost), AWhole(1, kMost)}), ReadTile, WriteTile),
        Required(), "[rows, columns] of a thread block", "[128, 256]"},
       {"persistent", &Waves::is_persistent, TrueFalse(), UsualAndWritten(),
        "at most a block for each multiprocessor, with tiles that are dealt beforehand", "true"}},
      CheckWaves);
  return fields;
}

Field<Slowdown> Factor(const char* name, double Slowdown::*member, const char* about) {
  return {name, member, ANumber(0, Slowdown::kMost), UsualAndWritten(), about, "0.1"};
}

// ---- The device ---------------------------------------------------------------------------------

Field<DeviceSpec> Efficiency(const char* name, double DeviceSpec::*member, const char* about) {
  return {name, member, ANumberAbove(0, 1), UsualAndWritten(), about, "0.9"};
}

Field<DeviceSpec> OtherPeak(const char* name, FlopsPerSecond DeviceSpec::*member,
                            const char* about) {
  return {name,  member,          AnExactFlopRate(), Optional("such work is refused"),
          about, "\"19.5TFLOPS\""};
}

// "500W", "1.2kW" or a number of watts.
void ReadPower(const JsonReader& reader, double* watts) {
  if (!reader.IsString()) {
    *watts = reader.Number();
    return;
  }
  const std::string text = reader.String();
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, *watts);
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  if (error != std::errc() || (unit != "W" && unit != "kW") || !(*watts > 0 && *watts <= 1e5))
    reader.Expected("a power such as \"500W\"");
  if (unit == "kW") *watts *= 1000;
}
void WritePower(const double& watts, Json* to) { *to = watts; }

FieldShape APower() { return ReadBy(Either({ANumber(0, 1e5), AText()}), ReadPower, WritePower); }

Field<DeviceSpec> Energy(const char* name, double DeviceSpec::*member, const char* about) {
  return {name, member, ANumber(0, 1000), Usual(), about, "0.5"};
}

using Sources = std::vector<std::pair<std::string, std::string>>;
void ReadSources(const JsonReader& reader, Sources* sources) {
  for (const auto& [figure, source] : reader.Members())
    sources->emplace_back(figure, source.String());
}
void WriteSources(const Sources& sources, Json* to) {
  for (const auto& [figure, source] : sources) (*to)[figure] = source;
}

void Complete(const JsonReader& reader, DeviceSpec* device) {
  if (!reader.Has("description")) device->description = device->name;
  if (!reader.Has("cache_bandwidth")) device->cache_bandwidth = device->memory_bandwidth;
  if (reader.Has("sources")) return;
  const Place place = reader.place();
  device->sources.emplace_back(
      "all", place.line > 0 ? fmt::format("{}:{}", place.file, place.line) : place.file);
}

const Fields<DeviceSpec>& DeviceFields() {
  using Device = DeviceSpec;
  static const Fields<Device> fields(
      "device", "What computes: its peaks, its memory, and how much of them it reaches.",
      {{"preset", AText("name of a known device"), Optional("all figures are given"),
        "a known device, whose figures hold where this object says nothing; then no key is needed",
        "\"h100\""},
       {"name", &Device::name, AName(), Required(), "what results call it", "\"mine\""},
       {"description", &Device::description, AText(), AndWritten(Optional("its name")),
        "for people", "\"a GPU of ours\""},
       {"compute_capability", &Device::compute_capability, AWhole(0, 1000), Usual(),
        "NVIDIA's compute capability times ten; 0: none", "90"},
       {"matrix_peak_16", &Device::matrix_peak_16, AnExactFlopRate(), Required(),
        "peak of products in bf16 or fp16", "\"312TFLOPS\""},
       OtherPeak("matrix_peak_8", &Device::matrix_peak_8, "peak of products in fp8"),
       OtherPeak("matrix_peak_4", &Device::matrix_peak_4, "peak of products in fp4"),
       OtherPeak("matrix_peak_32", &Device::matrix_peak_32, "peak of products in tf32"),
       OtherPeak("vector_peak_32", &Device::vector_peak_32, "peak of arithmetic in fp32"),
       OtherPeak("vector_peak_64", &Device::vector_peak_64, "peak of arithmetic in fp64"),
       {"memory", &Device::memory, AnExactSize(), Required(),
        "memory multiprocessors of the device", "\"40GiB\""},
       {"memory_bandwidth", &Device::memory_bandwidth, AnExactBandwidth(), Required(),
        "its nominal bandwidth", "\"1.555TBps\""},
       Efficiency("memory_efficiency", &Device::memory_efficiency,
                  "share of the memory's bandwidth that kernels reach"),
       {"cache", &Device::cache, AnExactSize(), Optional("none"),
        "L2 cache, in which element-wise kernels find what was just written", "\"50MB\""},
       {"cache_bandwidth", &Device::cache_bandwidth, AnExactBandwidth(),
        Optional("memory_bandwidth"), "bandwidth reached in the cache", "\"6TBps\""},
       {"strided_element", &Device::strided_element, AnExactDuration(), Default("\"0s\""),
        "what kernels with broadcast or strided operands take for an element, if that is longer "
        "than for its bytes",
        "\"3.5ps\""},
       Efficiency("gemm_efficiency", &Device::gemm_efficiency,
                  "share of the peak that large products reach"),
       {"gemm_scale", &Device::gemm_scale, ANumberAbove(0, 1000), Usual(),
        "factor on all efficiencies of products", "0.95"},
       {"gemm_points", &Device::gemm_points, ListOf(ObjectIn<GemmPointFields>()), Usual(),
        "measured products",
        R"([{"mode": "NN", "m": 4096, "n": 4096, "k": 4096, "efficiency": 0.8}])"},
       {"gemm_model", &Device::gemm_model, ObjectIn<GemmModelFields>(),
        Optional("gemm_points, gemm_efficiency"), "model of all other products, by tiles and waves",
        R"({"library": "hopper", "multiprocessors": 132, "few_waves": 0.86, "many_waves": 0.73})"},
       {"gemm_model_8", &Device::gemm_model_8, ObjectIn<GemmModelFields>(), Optional("gemm_model"),
        "the same for products in fp8 and fp4, as shares of their peaks",
        R"({"library": "hopper", "multiprocessors": 132, "few_waves": 0.7, "many_waves": 0.7})"},
       {"gemm_model_4", &Device::gemm_model_4, ObjectIn<GemmModelFields>(),
        Optional("gemm_model_8"), "the same for products in fp4, as shares of their peak",
        R"({"library": "blackwell-8", "multiprocessors": 148, "few_waves": 0.6,
           "many_waves": 0.5})"},
       {"attention_model", &Device::attention_model, ObjectIn<AttentionModelFields>(),
        Optional("attention_forward_efficiency, attention_backward_efficiency"),
        "model of attention, by implementation",
        R"({"multiprocessors": 132, "kernels": [{"kernel": "flash-2",
                     "forward": {"rates": [0.34, 0.39, 0.37]},
                     "backward": {"rates": [0.31, 0.35, 0.33]}}]})"},
       Efficiency("attention_forward_efficiency", &Device::attention_forward_efficiency,
                  "share of the peak that fused attention reaches"),
       Efficiency("attention_backward_efficiency", &Device::attention_backward_efficiency,
                  "the same of its backward pass"),
       {"launch_overhead", &Device::launch_overhead, AnExactDurationUpTo(kLongestLatency),
        UsualAndWritten(), "time to launch a kernel", "\"4us\""},
       {"power", &Device::power, APower(), Usual(),
        "what the board may draw, which sets the clock of products in the steps of a training; 0: "
        "nothing limits it",
        "\"500W\""},
       {"resting_power", &Device::resting_power, APower(), Usual(),
        "what it draws besides products", "\"140W\""},
       Energy("energy_16", &Device::energy_16,
              "picojoules of an operation of products in 16 bits, at the clock of short runs"),
       Energy("energy_8", &Device::energy_8, "the same in 8 bits"),
       Energy("energy_4", &Device::energy_4, "the same in 4 bits"),
       {"slowdown", &Device::slowdown, ObjectIn<SlowdownFields>(), Optional("none"),
        "slowdown while the device computes and communicates", R"({"gemm": 0.1})"},
       {"host_cores", &Device::host_cores, ANumber(0, 1e6), Usual(),
        "cores that the ranks of a machine share", "2"},
       {"host_bandwidth", &Device::host_bandwidth, AnExactBandwidth(),
        Optional("the machine's, shared by its devices"),
        "its share of the nominal bandwidth of its host's memory, while all devices of the machine "
        "use that",
        "\"51.2GBps\""},
       {"sources", &Device::sources,
        ReadBy(Named(AText("source"), "figure"), ReadSources, WriteSources), Optional("this file"),
        "where the figures come from", R"({"all": "data sheet"})"}},
      Complete, {"gemm_points", "sources"});
  return fields;
}

Json DeviceObject(const DeviceSpec& device) {
  DeviceSpec said = device;
  if (said.cache_bandwidth == said.memory_bandwidth) said.cache_bandwidth = BytesPerSecond();
  Json json;
  DeviceFields().Write(said, &json);
  return json;
}

}  // namespace

FieldShape AName() { return ReadBy(AText(), ReadName, WriteName); }

namespace {

const ObjectShape& ChangedDeviceShape() {
  static const ObjectShape shape = [] {
    ObjectShape changed = DeviceFields().shape();
    changed.name = "changed device";
    changed.about = "A known device, of which some figures are others.";
    for (JsonKey& key : changed.keys)
      key.presence = key.name == "preset" ? Required() : Optional("the preset's");
    return changed;
  }();
  return shape;
}

}  // namespace

JsonShape DeviceChoiceShape() {
  return Either({AText("name of a known device"), ObjectOf(ChangedDeviceShape),
                 ObjectOf(ShapeIn<DeviceFields>)});
}

const Fields<Slowdown>& SlowdownFields() {
  static const Fields<Slowdown> fields(
      "slowdown", "While a device computes and communicates, a kernel runs at 1/(1 + slowdown).",
      {Factor("gemm", &Slowdown::gemm, "slowdown of products"),
       Factor("attention", &Slowdown::attention, "slowdown of fused attention"),
       Factor("memory", &Slowdown::memory, "slowdown of memory-bound kernels"),
       Factor("communication", &Slowdown::communication,
              "slowdown of transfers while a kernel runs"),
       {"waves", &Slowdown::waves, ObjectIn<WavesFields>(),
        Optional("products slow down by the factor"),
        "model of products, by waves of thread blocks",
        R"({"multiprocessors": 132, "taken": 24, "tile": [128, 256]})"}});
  return fields;
}

namespace {

const DeviceSpec& KnownDevice(const JsonReader& name) {
  try {
    return FindDevice(name.String());
  } catch (const Error& error) {
    name.Fail(error.what());
  }
}

// The known device with what the object changes.
DeviceSpec ReadChanged(const JsonReader& reader) {
  const DeviceSpec& known = KnownDevice(reader.At("preset"));
  nlohmann::json figures = DeviceObject(known);
  figures.merge_patch(reader.value());
  const JsonDocument document = JsonDocument::FromValue(std::move(figures), reader.place());
  DeviceSpec device = DeviceFields().Read(document.Root());
  device.gfx = known.gfx;
  return device;
}

}  // namespace

DeviceSpec ReadDevice(const JsonReader& reader) {
  if (reader.IsObject())
    return reader.Has("preset") ? ReadChanged(reader) : DeviceFields().Read(reader);
  if (!reader.IsString()) reader.Expected("the name of a device or an object that describes one");
  return KnownDevice(reader);
}

Json DeviceToJson(const DeviceSpec& device) {
  Json object = DeviceObject(device);
  Json alone = object;  // without what its machine adds
  alone.erase("host_bandwidth");
  for (const DeviceSpec& known : KnownDevices()) {
    // What was read beside changes has its sources in another order.
    if (known.name != device.name || nlohmann::json(DeviceObject(known)) != nlohmann::json(alone))
      continue;
    if (alone == object) return device.name;
    return {{"preset", device.name}, {"host_bandwidth", object["host_bandwidth"]}};
  }
  return object;
}

bool IsKnownBySpec(const DeviceSpec& device) {
  const Json json = DeviceToJson(device);
  return json.is_string() || json.contains("preset");
}

}  // namespace rehearse
