#include "topology/devices/measured_costs_json.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

constexpr const char* kOfGemm = "of kernel gemm";
constexpr const char* kOfOthers = "of other kernels";
const char* VariantOf(const KernelCosts& costs) {
  return costs.kernel == Kernel::kGemm ? kOfGemm : kOfOthers;
}

JsonShape NonNegative(const char* unit) {
  const bool is_time = std::string_view(unit) == "s";
  return ANumber(0, is_time ? kLongest : kLargest, unit);
}

JsonKey ForPeople(const char* name, const char* about) {
  return {name, Anything(), Optional("not given"), about, "[]"};
}

template <typename T>
Field<T> ComputesIn(std::optional<DType> T::*member) {
  return {"computes_in", member, OneNamedOf(kDTypes), Optional("as asked for"),
          "the type in which everything was computed, whatever was asked for"};
}

// ---- Kernels ------------------------------------------------------------------------------------

Field<Gemm> Side(const char* name, uint64_t Gemm::*member) {
  return {name, member, AWhole(1, kLargestSide), Required(), "size of the product", "64", kOfGemm};
}

const Fields<KernelPoint>& KernelPointFields() {
  static const FieldList<KernelWork> work = {
      Within(&KernelWork::gemm,
             FieldList<Gemm>{Side("m", &Gemm::m), Side("n", &Gemm::n), Side("k", &Gemm::k)}),
      {"bytes", &KernelWork::bytes, NonNegative("B"), Required(), "bytes read and written", "65536",
       kOfOthers},
      {"flops", &KernelWork::flops, NonNegative("FLOP"), Required(), "operations", "0", kOfOthers}};
  static const Fields<KernelPoint> fields(
      "measured kernel", "How long a kernel of this size took.",
      {Within(&KernelPoint::work, work),
       {"seconds", &KernelPoint::time, NonNegative("s"), Required(), "how long it took", "2e-5"},
       ForPeople("samples", "how many runs"),
       ForPeople("quantiles", "quantiles of the runs")});
  return fields;
}

// Of which kernel it is, only the costs know.
void ReadPoints(const JsonReader& reader, KernelCosts* costs) {
  const char* const variant = VariantOf(*costs);
  for (const JsonReader& point : reader.Elements()) {
    costs->points.push_back(KernelPointFields().Read(point, variant));
    costs->points.back().work.gemm.mode = costs->mode;
  }
  if (costs->points.empty()) reader.Expected("at least one point");
}

void WritePoints(const KernelCosts& costs, Json* to) {
  *to = Json::array();
  for (const KernelPoint& point : costs.points)
    KernelPointFields().Write(point, &to->emplace_back(), VariantOf(costs));
}

void WriteTerms(const KernelCosts& costs, Json* to) { *to = TermNames(costs); }

void CheckCoefficients(const JsonReader& reader, KernelCosts* costs) {
  const size_t terms = TermNames(*costs).size();
  if (costs->coefficients.size() != terms)
    reader.At("coefficients").Expected(fmt::format("{} numbers", terms));
}

const Fields<KernelCosts>& KernelCostsFields() {
  static const Fields<KernelCosts> fields(
      "kernel costs", "How long one kernel takes: a fit, and the measured points.",
      {{"kernel", &KernelCosts::kernel, OneUpTo<Kernel::kStateNormBackward>(), Required(),
        "which kernel"},
       {"mode", &KernelCosts::mode, OneNamedOf(kModes), Required(), "which operands are transposed",
        "", kOfGemm},
       {"dtype", &KernelCosts::dtype, OneNamedOf(kDTypes), Required(), "type of its elements"},
       {"terms", kItself,
        ReadBy<KernelCosts>(
            Anything(), [](const JsonReader&, KernelCosts*) {}, WriteTerms),
        AndWritten(Optional("not given")), "terms of the fit", "[]"},
       {"knots_bytes", &KernelCosts::knots, ListOf(NonNegative("B")), Usual(),
        "where the fit bends", "[1048576]"},
       {"coefficients", &KernelCosts::coefficients, ListOf(NonNegative("s")), Required(),
        "coefficients of the terms", "[1e-6, 2e-12]"},
       {"points", kItself,
        ReadBy(ListOf(ObjectOf(ShapeIn<KernelPointFields>)), ReadPoints, WritePoints), Required(),
        "measured points, at least one", R"([{"bytes": 65536, "flops": 0, "seconds": 2e-5}])"},
       ForPeople("held_out_errors", "held-out errors of the fit")},
      CheckCoefficients, {"terms", "coefficients", "points"});
  return fields;
}

// Other kernels may say a mode too, which is not theirs.
void ReadKernelCosts(const JsonReader& object, KernelCosts* costs) {
  const JsonReader reader = object.As(KernelCostsFields().shape(), kOfGemm);
  costs->kernel = static_cast<Kernel>(reader.At("kernel").Choice());
  KernelCostsFields().ReadInto(reader, costs, VariantOf(*costs));
}

void WriteKernelCosts(const KernelCosts& costs, Json* to) {
  KernelCostsFields().Write(costs, to, VariantOf(costs));
}

// ---- Collectives --------------------------------------------------------------------------------

void ReadCurve(const JsonReader& reader, CostCurve* curve) {
  for (const JsonReader& knot : reader.Elements()) {
    const std::vector<JsonReader> pair = knot.Elements();
    if (pair.size() != 2) knot.Expected("[bytes, seconds]");
    curve->knots.push_back({Bytes(pair[0].Number()), Seconds(pair[1].Number())});
    const size_t count = curve->knots.size();
    if (count > 1 && curve->knots[count - 2].bytes >= curve->knots[count - 1].bytes)
      pair[0].Expected("more bytes than the knot before");
  }
  if (curve->knots.empty()) reader.Expected("at least one [bytes, seconds]");
}

void WriteCurve(const CostCurve& curve, Json* to) { *to = ToJson(curve); }

FieldShape ACurve() {
  return ReadBy(ListOf(Tuple({NonNegative("B"), NonNegative("s")})), ReadCurve, WriteCurve);
}

const Fields<CollectiveCosts>& CollectiveCostsFields() {
  static const Fields<CollectiveCosts> fields(
      "collective costs", "How long a step of one collective takes.",
      {{"kind", &CollectiveCosts::kind, OneNamedOf(kKinds), Required(), "which collective"},
       {"ranks", &CollectiveCosts::ranks, AWhole(2, kMostRanks), Required(),
        "ranks of the communicator", "2"},
       {"steps", &CollectiveCosts::step, ACurve(), Required(),
        "[bytes, seconds] of a step, in order of bytes", "[[1024, 1e-5]]"},
       ForPeople("in_place", "what was measured in place"),
       ForPeople("held_out_errors", "held-out errors of the curve"),
       ForPeople("straight_line", "a straight-line fit")});
  return fields;
}

}  // namespace

const Fields<MeasuredKernels>& MeasuredKernelsFields() {
  static const Fields<MeasuredKernels> fields(
      "kernels", "How long compute takes.",
      {ComputesIn(&MeasuredKernels::computes_in),
       {"costs", &MeasuredKernels::kernels,
        ListOf(ReadBy(ObjectOf(ShapeIn<KernelCostsFields>), ReadKernelCosts, WriteKernelCosts)),
        Required(), "costs of each kernel", "[]"}});
  return fields;
}

const Fields<MeasuredCollectives>& MeasuredCollectivesFields() {
  using Measured = MeasuredCollectives;
  static const Fields<Measured> fields(
      "collectives", "How long communication takes with this many ranks.",
      {{"ranks", &Measured::ranks, AWhole(2, kMostRanks), Required(), "how many ranks", "2"},
       {"transport", &Measured::transport, AText(), Required(), "what carried the bytes",
        "\"threads\""},
       ComputesIn(&Measured::computes_in),
       {"costs", &Measured::collectives, ListOf(ObjectIn<CollectiveCostsFields>()), Required(),
        "costs of each kind of collective",
        R"([{"kind": "all-reduce", "ranks": 2, "steps": [[1024, 1e-5]]}])"},
       {"message", &Measured::message, ACurve(), Optional("as steps"),
        "[bytes, seconds] of a message", "[[1024, 1e-5]]"}});
  return fields;
}

Json ToJson(const CostCurve& curve) {
  Json knots = Json::array();
  for (const CostKnot& knot : curve.knots) knots.push_back({knot.bytes.value(), knot.time.value()});
  return knots;
}

}  // namespace rehearse
