// VGG (Simonyan and Zisserman 2014, arXiv 1409.1556): stages of 3×3 convolutions that end in a
// 2×2 max-pool, then three dense layers with dropout, and cross entropy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"

namespace rehearse {

struct VggModel {
  std::string name;
  std::vector<std::vector<uint64_t>> stages;  // channels of each convolution
  uint64_t image = 224;                       // pixels per side: a multiple of 2 for each stage
  uint64_t image_channels = 3;
  uint64_t hidden = 4096;
  uint64_t classes = 1000;
  std::string source;  // of a preset

  double Parameters() const;
};

// Rows are pixels of training.batch images, then images. Flops are three times those of the forward
// products. Convolutions and dense layers alternate between first and second products, so that the
// strategies' layouts meet; the first convolution's image has too few channels to split.
Network MakeVgg(const VggModel& model, const Training& training);

const std::vector<VggModel>& KnownVggs();

}  // namespace rehearse
