// How much devices of one kind differ in speed, and how slow the slowest of many is, for which a
// synchronous step waits.
//
// Source: Sinha et al., SC22 (arXiv 2208.11035), over 90 % of the GPUs of five clusters: variation
// of 8 % in the mean over clusters and programs. We assume that this is the distance of a box
// plot's whiskers, without outliers: those of a normal distribution are 5.4 standard deviations
// apart (each ends 1.5 interquartile ranges beyond its quartile), which makes 1.5 %, for all GPUs.
// It agrees with 9 % over 64,000 GPUs of one training run (PRISM, arXiv 2510.15596), where a normal
// distribution's slowest is 4.2 standard deviations behind the median, 6 %.
#pragma once

#include <cstdint>

#include "topology/devices/device.h"

namespace rehearse {

// Standard deviation of the time that equal devices take for equal work, as a share of the median;
// 0 if nothing is known (CPU ranks).
double SpeedSpread(const DeviceSpec& device);

// With this probability no device of `count` takes more than so many times the median. `count` is
// at least 1, the probability in (0, 1). The result is at least 0.
double SlowestOf(uint32_t count, double probability, double spread);

}  // namespace rehearse
