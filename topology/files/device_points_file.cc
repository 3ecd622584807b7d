#include "topology/files/device_points_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "topology/devices/device.h"

namespace rehearse {
namespace {

constexpr std::array kOps = {"gemm", "attention", "attention-backward"};
constexpr std::array kModes = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};
constexpr std::array kDTypes = {DType::kFp64, DType::kFp32, DType::kTf32, DType::kBf16,
                                DType::kFp16, DType::kFp8,  DType::kFp4};
const std::vector<std::string> kColumns = {
    "op",           "m",    "n",     "k",      "heads", "head_dim", "sequence", "dtype",
    "microseconds", "mode", "batch", "causal", "count"};

class PointsReader {
 public:
  explicit PointsReader(const CsvFile& file) : file_(file) {
    for (const std::string& column : file.columns) {
      if (std::find(kColumns.begin(), kColumns.end(), column) == kColumns.end())
        Fail(file.line,
             fmt::format("there is no column \"{}\"{}", column, KnownNames(column, kColumns)));
    }
    for (const char* needed : {"op", "dtype", "microseconds"}) {
      if (std::find(file.columns.begin(), file.columns.end(), needed) == file.columns.end())
        Fail(file.line, fmt::format("there is no column \"{}\"", needed));
    }
  }

  DevicePointsFile Read() {
    DevicePointsFile result;
    for (const CsvRow& row : file_.rows) {
      row_ = &row;
      const PointKey key = Key();
      const Place place{file_.name, row.line, ""};
      const auto [known, is_new] = result.places.emplace(key, place);
      if (!is_new)
        Fail(row.line,
             fmt::format("these sizes already have a time, in line {}", known->second.line));
      result.points.times.emplace(key, Seconds(Time() * 1e-6));
    }
    if (result.places.empty()) Fail(0, "found no points below the column names");
    return result;
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_.name, line, ""}, message);
  }
  [[noreturn]] void Expected(const char* column, const std::string& cell,
                             const std::string& what) const {
    Fail(row_->line, fmt::format("{}: found {}, expected {}", column, QuotedJson(cell), what));
  }

  std::string Cell(const char* column) const {
    const auto found = std::find(file_.columns.begin(), file_.columns.end(), column);
    if (found == file_.columns.end()) return "";
    return row_->cells[static_cast<size_t>(found - file_.columns.begin())];
  }

  uint64_t Size(const char* column, bool is_needed, uint64_t otherwise = 0) const {
    const std::string cell = Cell(column);
    if (cell.empty() && !is_needed) return otherwise;
    uint64_t size = 0;
    const char* const end = cell.data() + cell.size();
    const auto [stop, error] = std::from_chars(cell.data(), end, size);
    constexpr uint64_t kMost = uint64_t{1} << 40;
    if (error != std::errc() || stop != end || size == 0 || size > kMost)
      Expected(column, cell, "a whole number above 0");
    return size;
  }

  void Refuse(const char* column, const std::string& op) const {
    if (const std::string cell = Cell(column); !cell.empty())
      Expected(column, cell, fmt::format("nothing, as {} has none", op));
  }

  double Time() const {
    const std::string cell = Cell("microseconds");
    double time = 0;
    const char* const end = cell.data() + cell.size();
    const auto [stop, error] = std::from_chars(cell.data(), end, time);
    if (error != std::errc() || stop != end || !std::isfinite(time) || !(time > 0))
      Expected("microseconds", cell, "a number of microseconds above 0, without a unit");
    return time;
  }

  template <typename Enum, size_t kCount>
  Enum Choice(const char* column, const std::array<Enum, kCount>& choices) const {
    const std::string cell = Cell(column);
    std::vector<std::string> names;
    for (const Enum choice : choices) {
      if (cell == Name(choice)) return choice;
      names.emplace_back(Name(choice));
    }
    Fail(row_->line,
         fmt::format("{}: there is no {}{}", column, QuotedJson(cell), KnownNames(cell, names)));
  }

  PointKey Key() const {
    const std::string op = Cell("op");
    const auto known = std::find(kOps.begin(), kOps.end(), op);
    if (known == kOps.end())
      Fail(row_->line,
           fmt::format("there is no op \"{}\"{}", op, KnownNames(op, {kOps.begin(), kOps.end()})));
    PointKey key;
    key.op = static_cast<PointOp>(known - kOps.begin());
    key.dtype = Choice("dtype", kDTypes);
    key.batch = Size("batch", false, 1);
    if (key.op == PointOp::kGemm) {
      for (const char* column : {"heads", "head_dim", "sequence", "causal"}) Refuse(column, op);
      key.m = Size("m", true);
      key.n = Size("n", true);
      key.k = Size("k", true);
      if (!Cell("mode").empty()) key.mode = Choice("mode", kModes);
      return key;
    }
    for (const char* column : {"m", "n", "k", "mode"}) Refuse(column, op);
    key.heads = Size("heads", true);
    key.head_size = Size("head_dim", true);
    key.sequence = Size("sequence", true);
    const std::string causal = Cell("causal");
    if (!causal.empty() && causal != "0" && causal != "1") Expected("causal", causal, "0 or 1");
    key.causal = causal != "0";
    return key;
  }

  const CsvFile& file_;
  const CsvRow* row_ = nullptr;
};

// An op of these sizes.
Compute OpOf(const PointKey& key) {
  Compute compute;
  compute.dtype = key.dtype;
  if (key.op == PointOp::kGemm) {
    compute.kind = ComputeKind::kGemm;
    compute.gemm = {key.m, key.n, key.k, key.mode.value_or(GemmMode::kNT),
                    static_cast<uint32_t>(key.batch)};
    compute.flops = FlopsOf(compute.gemm);
    compute.bytes = BytesOf(compute.gemm, key.dtype);
    return compute;
  }
  const auto heads = static_cast<double>(key.heads * key.batch);
  const auto sequence = static_cast<double>(key.sequence);
  const auto size = static_cast<double>(key.head_size);
  compute.kind = ComputeKind::kAttention;
  compute.attributes = {sequence, static_cast<double>(key.heads), 1, size, key.causal ? 1.0 : 0.0};
  const double products = key.op == PointOp::kAttentionBackward ? 10 : 4;
  compute.flops = Flops(products * (key.causal ? 0.5 : 1) * heads * sequence * sequence * size);
  compute.bytes = SizeOf(key.dtype) * (products * heads * sequence * size);
  return compute;
}

void CheckTime(const DeviceSpec& device, const PointKey& key, Seconds time, const Place& place) {
  constexpr double kFaster = 2;
  constexpr double kSlower = 300;
  const Compute op = OpOf(key);
  const Seconds least = op.flops / (kFaster * PeakOf(device, key.dtype));
  if (time < least)
    throw Error(place, fmt::format("found {}, with which device \"{}\" would compute at {} its "
                                   "peak of {}; expected microseconds",
                                   Print(time), device.name,
                                   fmt::format("{:.0f} times", kFaster * (least / time)),
                                   Print(PeakOf(device, key.dtype))));
  DeviceSpec without = device;
  without.points.reset();
  const Seconds usual = ComputeTime(without, op, key.op == PointOp::kAttentionBackward);
  if (time > kSlower * usual)
    throw Error(place, fmt::format("found {}, where the model of device \"{}\" says {}; expected "
                                   "microseconds",
                                   Print(time), device.name, Print(usual)));
}

}  // namespace

DevicePointsFile ReadDevicePoints(const CsvFile& file) { return PointsReader(file).Read(); }

DevicePointsFile ReadDevicePoints(const JsonReader& path) {
  const auto [name, text] = path.OpenText("CSV file");
  return ReadDevicePoints(ParseCsvFile(text, name));
}

std::unique_ptr<Cluster> ApplyDevicePoints(const Cluster& cluster, const DevicePointsFile& file) {
  Figures figures = cluster.figures();
  const auto points = std::make_shared<const DevicePoints>(file.points);
  for (DeviceSpec& spec : figures.device_specs) {
    for (const auto& [key, time] : points->times) CheckTime(spec, key, time, file.places.at(key));
    spec.points = points;
  }
  return std::make_unique<Cluster>(cluster.With(std::move(figures)));
}

std::string PointColumns() {
  return "op,mode,m,n,k,heads,head_dim,sequence,batch,causal,dtype,microseconds";
}

std::string PointRow(const PointKey& key, Seconds time) {
  const double microseconds = time.value() * 1e6;
  if (key.op == PointOp::kGemm) {
    return fmt::format("gemm,{},{},{},{},,,,{},,{},{}", key.mode ? Name(*key.mode) : "", key.m,
                       key.n, key.k, key.batch, Name(key.dtype), microseconds);
  }
  return fmt::format("{},,,,,{},{},{},{},{},{},{}", kOps[static_cast<size_t>(key.op)], key.heads,
                     key.head_size, key.sequence, key.batch, key.causal ? 1 : 0, Name(key.dtype),
                     microseconds);
}

std::string DescribePointColumns() {
  return "Measured times of a device's operators, as a CSV file: --device-points FILE.csv, and\n"
         "\"device_points\" of a scenario or a cluster. A row counts for exactly its sizes, on "
         "every\n"
         "device. Columns come in any order; what a row's op does not have stays empty.\n"
         "\n"
         "  op               gemm, attention or attention-backward\n"
         "  dtype            fp64, fp32, tf32, bf16, fp16, fp8 or fp4\n"
         "  microseconds     of the whole op, launches included; above 0\n"
         "  m, n, k          of a gemm: m x k times k x n\n"
         "  mode             of a gemm: NN, NT or TN; empty stands for all three\n"
         "  heads, head_dim  of attention: how many heads a sequence has, and their size\n"
         "  sequence         of attention: tokens of a sequence\n"
         "  causal           of attention: 1 with a causal mask, as when empty, 0 without one\n"
         "  batch            products, or sequences; empty is 1\n"
         "  count            for people: how often a step has it\n"
         "\n"
         "  op,m,n,k,heads,head_dim,sequence,dtype,microseconds\n"
         "  gemm,4096,8192,8192,,,,bf16,812.4\n"
         "  attention,,,,32,128,4096,bf16,433.0\n"
         "\n"
         "'rehearse plan SCENARIO --products FILE.csv' writes those of a step, to be measured.\n";
}

std::string ToCsv(const DevicePoints& points) {
  std::string text = PointColumns() + "\n";
  for (const auto& [key, time] : points.times) text += PointRow(key, time) + "\n";
  return text;
}

}  // namespace rehearse
