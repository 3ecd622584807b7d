#include "topology/devices/measured_costs_json.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kDTypes = {DType::kFp64, DType::kFp32, DType::kTf32, DType::kBf16,
                                DType::kFp16};
constexpr std::array kModes = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};
constexpr std::array kKinds = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                               CollectiveKind::kBroadcast,     CollectiveKind::kReduce};
constexpr double kLargest = 1e18;
constexpr double kLongest = 1e6;
constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kLargestSide = int64_t{1} << 40;

template <typename T, size_t kCount>
T ReadName(const JsonReader& reader, const std::array<T, kCount>& values) {
  std::vector<std::string> names;
  for (const T value : values) names.emplace_back(Name(value));
  return values[reader.Choice(names)];
}

Kernel ReadKernel(const JsonReader& reader) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Kernel::kAdam); ++i)
    names.emplace_back(Name(static_cast<Kernel>(i)));
  return static_cast<Kernel>(reader.Choice(names));
}

std::optional<DType> ReadComputesIn(const JsonReader& reader) {
  if (!reader.Has("computes_in")) return std::nullopt;
  return ReadName(reader.At("computes_in"), kDTypes);
}

KernelPoint ReadPoint(const JsonReader& reader, const KernelCosts& costs) {
  KernelPoint point;
  const auto side = [&](const char* key) {
    return static_cast<uint64_t>(reader.At(key).Integer(1, kLargestSide));
  };
  if (costs.kernel == Kernel::kGemm) {
    reader.AllowKeys({"m", "n", "k", "seconds", "samples", "quantiles"});
    point.work.gemm = {side("m"), side("n"), side("k"), costs.mode, 1};
  } else {
    reader.AllowKeys({"bytes", "flops", "seconds", "samples", "quantiles"});
    point.work.bytes = Bytes(reader.At("bytes").Number(0, kLargest));
    point.work.flops = Flops(reader.At("flops").Number(0, kLargest));
  }
  point.time = Seconds(reader.At("seconds").Number(0, kLongest));
  return point;
}

KernelCosts ReadKernelCosts(const JsonReader& reader) {
  reader.AllowKeys({"kernel", "mode", "dtype", "terms", "knots_bytes", "coefficients", "points",
                    "held_out_errors"});
  KernelCosts costs;
  costs.kernel = ReadKernel(reader.At("kernel"));
  if (costs.kernel == Kernel::kGemm) costs.mode = ReadName(reader.At("mode"), kModes);
  costs.dtype = ReadName(reader.At("dtype"), kDTypes);
  if (reader.Has("knots_bytes")) {
    for (const JsonReader& knot : reader.At("knots_bytes").Elements())
      costs.knots.emplace_back(knot.Number(0, kLargest));
  }
  for (const JsonReader& coefficient : reader.At("coefficients").Elements())
    costs.coefficients.push_back(coefficient.Number(0, kLongest));
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
    curve.knots.push_back(
        {Bytes(pair[0].Number(0, kLargest)), Seconds(pair[1].Number(0, kLongest))});
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

MeasuredKernels ReadMeasuredKernels(const JsonReader& reader) {
  reader.AllowKeys({"computes_in", "costs"});
  MeasuredKernels measured;
  measured.computes_in = ReadComputesIn(reader);
  for (const JsonReader& costs : reader.At("costs").Elements())
    measured.kernels.push_back(ReadKernelCosts(costs));
  return measured;
}

MeasuredCollectives ReadMeasuredCollectives(const JsonReader& reader) {
  reader.AllowKeys({"ranks", "transport", "computes_in", "costs", "message"});
  MeasuredCollectives measured;
  measured.ranks = static_cast<uint32_t>(reader.At("ranks").Integer(2, kMostRanks));
  measured.transport = reader.At("transport").String();
  measured.computes_in = ReadComputesIn(reader);
  for (const JsonReader& entry : reader.At("costs").Elements()) {
    entry.AllowKeys({"kind", "ranks", "steps", "in_place", "held_out_errors", "straight_line"});
    CollectiveCosts costs;
    costs.kind = ReadName(entry.At("kind"), kKinds);
    costs.ranks = static_cast<uint32_t>(entry.At("ranks").Integer(2, kMostRanks));
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
