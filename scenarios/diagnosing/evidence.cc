#include "scenarios/diagnosing/evidence.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr std::array kNoises = {0.003, 0.006, 0.0125, 0.025, 0.05, 0.1, 0.2};
constexpr double kOctavesOfError = 3;    // over which the model's error changes
constexpr double kSharedByTables = 0.5;  // of the model's error
constexpr double kTiny = 1e-9;

size_t PositionOf(double noise) {
  return static_cast<size_t>(std::find(kNoises.begin(), kNoises.end(), noise) - kNoises.begin());
}

}  // namespace

double ModelErrorAt(Bytes bytes, bool has_several_boxes) {
  struct Point {
    double octave;
    double one;
    double several;
  };
  // 64 KiB, 8 MiB (the middle of 1 to 64 MiB), 256 MiB
  static constexpr std::array kPoints = {Point{16, 0.29, 0.52}, Point{23, 0.14, 0.29},
                                         Point{28, 0.04, 0.09}};
  const double octave = std::log2(std::max(bytes.value(), 1.0));
  const auto error = [&](const Point& point) {
    return has_several_boxes ? point.several : point.one;
  };
  if (octave <= kPoints.front().octave) return error(kPoints.front());
  for (size_t i = 1; i < kPoints.size(); ++i) {
    if (octave > kPoints[i].octave) continue;
    const Point& low = kPoints[i - 1];
    const double part = (octave - low.octave) / (kPoints[i].octave - low.octave);
    return error(low) + part * (error(kPoints[i]) - error(low));
  }
  return error(kPoints.back());
}

Evidence::Evidence(const std::vector<Observation>& observations, double looseness)
    : observations_(observations) {
  const size_t n = observations_.size();
  for (const double noise : kNoises) {
    Factor factor;
    factor.lower.assign(n * n, 0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        const Observation& a = observations_[i];
        const Observation& b = observations_[j];
        double sum = looseness * looseness * a.model_error * b.model_error *
                     std::exp(-std::abs(a.octave - b.octave) / kOctavesOfError) *
                     (a.table == b.table ? 1 : kSharedByTables);
        if (i == j) sum += noise * noise + kTiny;
        for (size_t k = 0; k < j; ++k) sum -= factor.lower[i * n + k] * factor.lower[j * n + k];
        factor.lower[i * n + j] = i == j ? std::sqrt(sum) : sum / factor.lower[j * n + j];
      }
      factor.log_determinant += std::log(factor.lower[i * n + i]);
    }
    factors_.push_back(std::move(factor));
  }
}

double Evidence::Distance(const Factor& factor, const std::vector<double>& log_predicted) const {
  const size_t n = observations_.size();
  CHECK(log_predicted.size() == n);
  std::vector<double> white(n);
  double distance = 0;
  for (size_t i = 0; i < n; ++i) {
    double rest = observations_[i].log_measured - log_predicted[i];
    for (size_t k = 0; k < i; ++k) rest -= factor.lower[i * n + k] * white[k];
    white[i] = rest / factor.lower[i * n + i];
    distance += white[i] * white[i];
  }
  return distance;
}

double Evidence::LogDensity(const std::vector<double>& log_predicted) const {
  std::vector<double> densities;
  densities.reserve(factors_.size());
  for (const Factor& factor : factors_)
    densities.push_back(-Distance(factor, log_predicted) / 2 - factor.log_determinant);
  return LogMeanExp(densities);
}

double Evidence::NoiseOf(const std::vector<double>& log_predicted) const {
  double best = kNoises.front();
  double most = -INFINITY;
  for (size_t i = 0; i < factors_.size(); ++i) {
    const double density = -Distance(factors_[i], log_predicted) / 2 - factors_[i].log_determinant;
    if (density <= most) continue;
    most = density;
    best = kNoises[i];
  }
  return best;
}

double Evidence::LeastNoise() { return kNoises.front(); }

double Evidence::ChanceOf(const std::vector<double>& log_predicted, double noise) const {
  const double distance = Distance(factors_.at(PositionOf(noise)), log_predicted);
  // The cube root of chi squared over its degrees is nearly normal (Wilson and Hilferty, 1931).
  const auto n = static_cast<double>(observations_.size());
  const double spread = 2 / (9 * n);
  const double z = (std::cbrt(distance / n) - (1 - spread)) / std::sqrt(spread);
  return std::erfc(z / std::sqrt(2.0)) / 2;
}

double LogMeanExp(const std::vector<double>& values) {
  CHECK(!values.empty());
  const double most = *std::max_element(values.begin(), values.end());
  if (std::isinf(most)) return most;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - most);
  return most + std::log(sum / static_cast<double>(values.size()));
}

}  // namespace rehearse
