#include "topology/devices/measured_costs_json.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/schedule/schedule_format.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kDTypes = {DType::kFp64, DType::kFp32, DType::kTf32, DType::kBf16,
                                DType::kFp16, DType::kFp8,  DType::kFp4};
constexpr std::array kModes = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};
constexpr std::array kKinds = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                               CollectiveKind::kBroadcast,     CollectiveKind::kReduce};
constexpr double kLargest = 1e18;
constexpr double kLongest = 1e6;
constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kLargestSide = int64_t{1} << 40;

template <typename T, size_t kCount>
JsonShape OneOfNames(const std::array<T, kCount>& values) {
  std::vector<std::string> names;
  for (const T value : values) names.emplace_back(Name(value));
  return OneOf(std::move(names));
}

JsonShape KernelName() { return OneOf(KernelNames()); }

JsonShape NonNegative(const char* unit) {
  const bool is_time = std::string_view(unit) == "s";
  return ANumber(0, is_time ? kLongest : kLargest, unit);
}

JsonKey ForPeople(const char* name, const char* about) {
  return {name, Anything(), Optional("not given"), about, "[]"};
}

JsonKey ComputesIn() {
  return {"computes_in", OneOfNames(kDTypes), Optional("as asked for"),
          "the type in which everything was computed, whatever was asked for"};
}

JsonKey MeasuredSeconds() {
  return {"seconds", NonNegative("s"), Required(), "how long it took", "2e-5"};
}

constexpr const char* kOfGemm = "of kernel gemm";
constexpr const char* kOfOthers = "of other kernels";

const ObjectShape& KernelPointShape() {
  const auto side = [](const char* name) {
    return JsonKey{name, AWhole(1, kLargestSide), Required(), "size of the product", "64", kOfGemm};
  };
  static const ObjectShape shape = {
      "measured kernel",
      "How long a kernel of this size took.",
      {side("m"),
       side("n"),
       side("k"),
       {"bytes", NonNegative("B"), Required(), "bytes read and written", "65536", kOfOthers},
       {"flops", NonNegative("FLOP"), Required(), "operations", "0", kOfOthers},
       MeasuredSeconds(),
       ForPeople("samples", "how many runs"),
       ForPeople("quantiles", "quantiles of the runs")}};
  return shape;
}

const ObjectShape& KernelCostsShape() {
  static const ObjectShape shape = {
      "kernel costs",
      "How long one kernel takes: a fit, and the measured points.",
      {{"kernel", KernelName(), Required(), "which kernel"},
       {"mode", OneOfNames(kModes), Required(), "which operands are transposed", "", kOfGemm},
       {"dtype", OneOfNames(kDTypes), Required(), "type of its elements"},
       ForPeople("terms", "terms of the fit"),
       {"knots_bytes", ListOf(NonNegative("B")), Default("[]"), "where the fit bends", "[1048576]"},
       {"coefficients", ListOf(NonNegative("s")), Required(), "coefficients of the terms",
        "[1e-6, 2e-12]"},
       {"points", ListOf(ObjectOf(KernelPointShape)), Required(), "measured points, at least one",
        R"([{"bytes": 65536, "flops": 0, "seconds": 2e-5}])"},
       ForPeople("held_out_errors", "held-out errors of the fit")}};
  return shape;
}

JsonShape CurveShape() { return ListOf(Tuple({NonNegative("B"), NonNegative("s")})); }

const ObjectShape& CollectiveCostsShape() {
  static const ObjectShape shape = {
      "collective costs",
      "How long a step of one collective takes.",
      {{"kind", OneOfNames(kKinds), Required(), "which collective"},
       {"ranks", AWhole(2, kMostRanks), Required(), "ranks of the communicator", "2"},
       {"steps", CurveShape(), Required(), "[bytes, seconds] of a step, in order of bytes",
        "[[1024, 1e-5]]"},
       ForPeople("in_place", "what was measured in place"),
       ForPeople("held_out_errors", "held-out errors of the curve"),
       ForPeople("straight_line", "a straight-line fit")}};
  return shape;
}

std::optional<DType> ReadComputesIn(const JsonReader& reader) {
  if (!reader.Has("computes_in")) return std::nullopt;
  return kDTypes[reader.At("computes_in").Choice()];
}

KernelPoint ReadPoint(const JsonReader& object, const KernelCosts& costs) {
  const bool is_gemm = costs.kernel == Kernel::kGemm;
  const JsonReader reader = object.As(KernelPointShape(), is_gemm ? kOfGemm : kOfOthers);
  KernelPoint point;
  const auto side = [&](const char* key) { return reader.At(key).Whole<uint64_t>(); };
  if (is_gemm) {
    point.work.gemm = {side("m"), side("n"), side("k"), costs.mode, 1};
  } else {
    point.work.bytes = Bytes(reader.At("bytes").Number());
    point.work.flops = Flops(reader.At("flops").Number());
  }
  point.time = Seconds(reader.At("seconds").Number());
  return point;
}

KernelCosts ReadKernelCosts(const JsonReader& object) {
  const JsonReader reader = object.As(KernelCostsShape(), kOfGemm);
  KernelCosts costs;
  costs.kernel = static_cast<Kernel>(reader.At("kernel").Choice());
  if (costs.kernel == Kernel::kGemm) costs.mode = kModes[reader.At("mode").Choice()];
  costs.dtype = kDTypes[reader.At("dtype").Choice()];
  for (const JsonReader& knot : reader.At("knots_bytes").Elements())
    costs.knots.emplace_back(knot.Number());
  for (const JsonReader& coefficient : reader.At("coefficients").Elements())
    costs.coefficients.push_back(coefficient.Number());
  const size_t terms = TermNames(costs).size();
  if (costs.coefficients.size() != terms)
    reader.At("coefficients").Expected(fmt::format("{} numbers", terms));
  for (const JsonReader& point : reader.At("points").Elements())
    costs.points.push_back(ReadPoint(point, costs));
  if (costs.points.empty()) reader.At("points").Expected("at least one point");
  return costs;
}

CostCurve ReadCurve(const JsonReader& reader) {
  CostCurve curve;
  for (const JsonReader& knot : reader.Elements()) {
    const std::vector<JsonReader> pair = knot.Elements();
    if (pair.size() != 2) knot.Expected("[bytes, seconds]");
    curve.knots.push_back({Bytes(pair[0].Number()), Seconds(pair[1].Number())});
    const size_t count = curve.knots.size();
    if (count > 1 && curve.knots[count - 2].bytes >= curve.knots[count - 1].bytes)
      pair[0].Expected("more bytes than the knot before");
  }
  if (curve.knots.empty()) reader.Expected("at least one [bytes, seconds]");
  return curve;
}

Json ToJson(const KernelCosts& costs) {
  const bool is_gemm = costs.kernel == Kernel::kGemm;
  Json json;
  json["kernel"] = Name(costs.kernel);
  if (is_gemm) json["mode"] = Name(costs.mode);
  json["dtype"] = Name(costs.dtype);
  if (!costs.knots.empty()) {
    for (const Bytes knot : costs.knots) json["knots_bytes"].push_back(knot.value());
  }
  json["terms"] = TermNames(costs);
  json["coefficients"] = costs.coefficients;
  json["points"] = Json::array();
  for (const KernelPoint& point : costs.points) {
    Json entry;
    if (is_gemm) {
      entry["m"] = point.work.gemm.m;
      entry["n"] = point.work.gemm.n;
      entry["k"] = point.work.gemm.k;
    } else {
      entry["bytes"] = point.work.bytes.value();
      entry["flops"] = point.work.flops.value();
    }
    entry["seconds"] = point.time.value();
    json["points"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

const ObjectShape& MeasuredKernelsShape() {
  static const ObjectShape shape = {
      "kernels",
      "How long compute takes.",
      {ComputesIn(),
       {"costs", ListOf(ObjectOf(KernelCostsShape)), Required(), "costs of each kernel", "[]"}}};
  return shape;
}

const ObjectShape& MeasuredCollectivesShape() {
  static const ObjectShape shape = {
      "collectives",
      "How long communication takes with this many ranks.",
      {{"ranks", AWhole(2, kMostRanks), Required(), "how many ranks", "2"},
       {"transport", AText(), Required(), "what carried the bytes", "\"threads\""},
       ComputesIn(),
       {"costs", ListOf(ObjectOf(CollectiveCostsShape)), Required(),
        "costs of each kind of collective",
        R"([{"kind": "all-reduce", "ranks": 2, "steps": [[1024, 1e-5]]}])"},
       {"message", CurveShape(), Optional("as steps"), "[bytes, seconds] of a message",
        "[[1024, 1e-5]]"}}};
  return shape;
}

MeasuredKernels ReadMeasuredKernels(const JsonReader& object) {
  const JsonReader reader = object.As(MeasuredKernelsShape());
  MeasuredKernels measured;
  measured.computes_in = ReadComputesIn(reader);
  for (const JsonReader& costs : reader.At("costs").Elements())
    measured.kernels.push_back(ReadKernelCosts(costs));
  return measured;
}

MeasuredCollectives ReadMeasuredCollectives(const JsonReader& object) {
  const JsonReader reader = object.As(MeasuredCollectivesShape());
  MeasuredCollectives measured;
  measured.ranks = reader.At("ranks").Whole<uint32_t>();
  measured.transport = reader.At("transport").String();
  measured.computes_in = ReadComputesIn(reader);
  for (const JsonReader& element : reader.At("costs").Elements()) {
    const JsonReader entry = element.As(CollectiveCostsShape());
    CollectiveCosts costs;
    costs.kind = kKinds[entry.At("kind").Choice()];
    costs.ranks = entry.At("ranks").Whole<uint32_t>();
    costs.step = ReadCurve(entry.At("steps"));
    measured.collectives.push_back(std::move(costs));
  }
  if (reader.Has("message")) measured.message = ReadCurve(reader.At("message"));
  return measured;
}

Json ToJson(const CostCurve& curve) {
  Json knots = Json::array();
  for (const CostKnot& knot : curve.knots) knots.push_back({knot.bytes.value(), knot.time.value()});
  return knots;
}

Json ToJson(const MeasuredKernels& measured) {
  Json json;
  if (measured.computes_in) json["computes_in"] = Name(*measured.computes_in);
  json["costs"] = Json::array();
  for (const KernelCosts& costs : measured.kernels) json["costs"].push_back(ToJson(costs));
  return json;
}

Json ToJson(const MeasuredCollectives& measured) {
  Json json;
  json["ranks"] = measured.ranks;
  json["transport"] = measured.transport;
  if (measured.computes_in) json["computes_in"] = Name(*measured.computes_in);
  json["costs"] = Json::array();
  for (const CollectiveCosts& costs : measured.collectives) {
    json["costs"].push_back(
        {{"kind", Name(costs.kind)}, {"ranks", costs.ranks}, {"steps", ToJson(costs.step)}});
  }
  if (measured.message) json["message"] = ToJson(*measured.message);
  return json;
}

}  // namespace rehearse
