// A schedule of one op for every kernel of sim/schedule/kernel.h, with shapes that fit no tile.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct KernelCase {
  std::string name;
  Schedule schedule;  // of one rank
};
std::vector<KernelCase> EveryKernel(DType dtype);

}  // namespace rehearse
