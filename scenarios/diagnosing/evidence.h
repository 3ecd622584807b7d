// How well predictions agree with what was measured where both err: the statistics of a diagnosis.
//
// With y the logarithms of what was measured and u of what is predicted,
//   y = u + model error + noise,   noise ~ N(0, s² I),   model error ~ N(0, M),
//   M_ij = m_i m_j r_ij,  r_ij = exp(-|octaves between i and j| / 3), half between two tables:
// a model that is off at a size is off by about as much at its neighbours, a noisy run is not. The
// noise s is not known: all of kNoises are as likely beforehand. Densities leave out the factor
// (2 pi)^(-n/2), which all predictions share.
//
// m is what predictions without any fit are off by on machines where nothing is known to be wrong:
// half the distance from the 16th to the 84th percentile of ln(measured/predicted) over the tables
// of nccl-tests in collectives/ACCURACY.md is 0.04 in one box and 0.09 in several from 64 MiB on,
// 0.14 and 0.29 from 1 MiB on, and 0.29 and 0.52 below 64 KiB.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/quantity.h"

namespace rehearse {

struct Observation {
  double log_measured = 0;
  double octave = 0;       // log2 of the size
  size_t table = 0;        // of the log
  double model_error = 0;  // m
};

// m at this size, for a machine of several boxes or one.
double ModelErrorAt(Bytes bytes, bool has_several_boxes);

class Evidence {
 public:
  // `looseness` scales all model errors: that of a model which knows nearly nothing is large.
  explicit Evidence(const std::vector<Observation>& observations, double looseness = 1);

  // The logarithm of the density of what was measured, averaged over the noises.
  double LogDensity(const std::vector<double>& log_predicted) const;
  // The noise, of kNoises, with which the measurement is likeliest.
  double NoiseOf(const std::vector<double>& log_predicted) const;
  static double LeastNoise();  // of kNoises
  // How often a measurement would be as far from the prediction, or farther, by model error and
  // this noise (one of kNoises) alone.
  double ChanceOf(const std::vector<double>& log_predicted, double noise) const;

 private:
  struct Factor {
    std::vector<double> lower;   // Cholesky's, row by row
    double log_determinant = 0;  // of it
  };

  // |L^-1 (y - u)|²
  double Distance(const Factor& factor, const std::vector<double>& log_predicted) const;

  std::vector<Observation> observations_;
  std::vector<Factor> factors_;  // by noise
};

// ln of the mean of exp(x); for values that exp() cannot hold.
double LogMeanExp(const std::vector<double>& values);

}  // namespace rehearse
