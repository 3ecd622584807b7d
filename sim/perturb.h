// What if the machine is not as steady as the model? A pure function from a program to one whose
// delays and links are a little off.
//
// Each delay is multiplied by 1 + delay_jitter·z, the capacity of each link by 1 + link_jitter·z,
// with a z of its own: the sum of 12 numbers uniform on [0, 1), less 6, cut off at ±3. That is
// nearly a standard normal variable (mean 0, variance 1), needs no logarithm, and so is the same to
// the bit on every machine. The z of a delay or link depends on the seed and its position alone, not
// on how many others there are. A straggler's delays are multiplied by its factor on top.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program.h"

namespace rehearse {

struct Straggler {
  uint32_t processor = 0;  // position in Program::processors; its delays have it as their owner
  double factor = 1;       // more than 0; 2: its compute takes twice as long
};

struct Perturbation {
  uint64_t seed = 0;
  double delay_jitter = 0;  // standard deviation, 0 to 0.3
  double link_jitter = 0;   // standard deviation, 0 to 0.3
  std::vector<Straggler> stragglers = {};
};

// CHECKs the ranges.
Program Perturb(Program program, const Perturbation& perturbation);

}  // namespace rehearse
