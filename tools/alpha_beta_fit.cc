#include "tools/alpha_beta_fit.h"

#include <cmath>
#include <set>

#include <fmt/format.h>

namespace rehearse {

std::optional<AlphaBetaFit> FitAlphaBeta(const std::vector<FitTable>& tables) {
  std::vector<AlphaBetaSample> samples;
  std::set<double> sizes;
  for (const FitTable& table : tables) {
    const auto ranks = static_cast<uint32_t>(table.trial.groups.front().size());
    if (!HasAutoddlTime(table.trial.kind) || ranks < 2) continue;
    for (const NcclRow& row : table.rows) {
      samples.push_back({table.trial.kind, ranks, row.bytes, row.time});
      sizes.insert(row.bytes.value());
    }
  }
  if (sizes.size() < 2) return std::nullopt;
  AlphaBetaFit fit{FitAlphaBeta(samples), {}};
  std::vector<double> errors;
  for (const AlphaBetaSample& sample : samples) {
    const Seconds model = AutoddlTime(sample.kind, sample.devices, sample.bytes, fit.network);
    errors.push_back(std::abs((model - sample.time) / sample.time));
  }
  fit.errors = SummarizeErrors(errors);
  return fit;
}

std::string ToText(const AlphaBetaFit& fit) {
  return fmt::format(
      "alpha and beta by least squares (AutoDDL, section 3.2): {:.2f} us a step, {:.2f} GB/s; "
      "error {:.1f} % in the median, {:.1f} % at most",
      fit.network.alpha.value() * 1e6, 1e-9 / fit.network.beta, fit.errors.median * 100,
      fit.errors.largest * 100);
}

nlohmann::ordered_json ToJson(const AlphaBetaFit& fit) {
  return {{"alpha_seconds", fit.network.alpha.value()},
          {"beta_seconds_per_byte", fit.network.beta},
          {"samples", fit.errors.samples},
          {"median_error", fit.errors.median},
          {"largest_error", fit.errors.largest}};
}

}  // namespace rehearse
