#include "real/calibration/drift.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;
using Piece = std::tuple<uint64_t, uint64_t, uint64_t, double, double>;
using PieceTimes = std::map<Piece, Seconds>;

// What is timed, in the order of the file, with the times of each piece of work.
std::vector<std::pair<std::string, PieceTimes>> TimesOf(const Calibration& calibration) {
  std::vector<std::pair<std::string, PieceTimes>> all;
  if (calibration.kernels) {
    for (const KernelCosts& costs : calibration.kernels->kernels) {
      const bool is_product = costs.kernel == Kernel::kGemm;
      auto& [name, times] = all.emplace_back();
      name = fmt::format("{}{} {}", Name(costs.kernel),
                         is_product ? fmt::format(" {}", Name(costs.mode)) : "", Name(costs.dtype));
      for (const KernelPoint& point : costs.points) {
        const KernelWork& work = point.work;
        times[is_product ? Piece(work.gemm.m, work.gemm.n, work.gemm.k, 0, 0)
                         : Piece(0, 0, 0, work.bytes.value(), work.flops.value())] = point.time;
      }
    }
  }
  for (const MeasuredCollectives& measured : calibration.collectives) {
    for (const CollectiveCosts& costs : measured.collectives) {
      auto& [name, times] = all.emplace_back();
      name = fmt::format("{} of {} among {}", Name(costs.kind), costs.ranks, measured.ranks);
      for (const CostKnot& knot : costs.step.knots)
        times[Piece(0, 0, 0, knot.bytes.value(), 0)] = knot.time;
    }
  }
  return all;
}

}  // namespace

std::vector<Drift> DriftBetween(const Calibration& before, const Calibration& after) {
  std::map<std::string, PieceTimes> later;
  for (auto& [name, times] : TimesOf(after)) later[name] = std::move(times);
  std::vector<Drift> drifts;
  for (const auto& [name, times] : TimesOf(before)) {
    const auto found = later.find(name);
    if (found == later.end()) continue;
    std::vector<double> ratios;
    for (const auto& [work, time] : times) {
      const auto same = found->second.find(work);
      if (same != found->second.end() && time > Seconds(0)) ratios.push_back(same->second / time);
    }
    if (ratios.empty()) continue;
    std::sort(ratios.begin(), ratios.end());
    drifts.push_back(
        {name, ratios.size(), ratios[(ratios.size() - 1) / 2], ratios.front(), ratios.back()});
  }
  if (drifts.empty())
    throw Error(
        "the two calibrations have timed nothing that is in both, so that nothing can be "
        "said of drift");
  return drifts;
}

Json ToJson(const std::vector<Drift>& drifts) {
  Json json = {{"schema", "rehearse.drift.v1"}, {"drifts", Json::array()}};
  for (const Drift& drift : drifts) {
    json["drifts"].push_back({{"what", drift.what},
                              {"points", drift.points},
                              {"median", drift.median},
                              {"least", drift.least},
                              {"greatest", drift.greatest},
                              {"drifted", drift.IsLarge()}});
  }
  return json;
}

std::string ToText(const std::vector<Drift>& drifts) {
  std::string text = fmt::format("{:<32} {:>7} {:>12} {:>18}\n", "times now / then", "points",
                                 "median", "least .. greatest");
  size_t large = 0;
  for (const Drift& drift : drifts) {
    large += drift.IsLarge() ? 1 : 0;
    text += fmt::format("{:<32} {:>7} {:>12.2f} {:>18}{}\n", drift.what, drift.points, drift.median,
                        fmt::format("{:.2f} .. {:.2f}", drift.least, drift.greatest),
                        drift.IsLarge() ? "  drifted" : "");
  }
  text += large == 0 ? fmt::format("\nNothing drifted by more than {:.0f} % in the median.\n",
                                   100 * kMostDrift)
                     : fmt::format("\n{} of {} drifted by more than {:.0f} % in the median.\n",
                                   large, drifts.size(), 100 * kMostDrift);
  return text;
}

}  // namespace rehearse
