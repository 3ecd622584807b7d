// U-Nets of diffusion models: levels of residual blocks down and up again, with connections across.
//
// The AxoNN paper (arXiv 2305.13525, Table II) states channels, four levels, three residual blocks
// per level, images of 32×32 and "consistent with Nichol et al." The rest is assumed, after Nichol
// and Dhariwal's network for CIFAR-10 (arXiv 2102.09672: channels × 1, 2, 2, 2, attention at 16×16
// and 8×8, which gives the 50M that AxoNN trains with 128 channels) and Dhariwal and Nichol (arXiv
// 2105.05233: 64 channels per head; 52 of 832, which makes 16 heads rather than 13):
//
//   block:     norm, act, conv 3×3, norm, scale and shift by the time's embedding, act, conv 3×3,
//              plus the input (by a 1×1 convolution where channels change); group norms of 32
//   down:      `blocks` of them per level, attention after each where the image is that small,
//              a convolution of stride 2 between levels
//   middle:    block, attention, block
//   up:        blocks + 1 of them per level, each on what came and what was saved on the way down;
//              nearest up-sampling and a convolution between levels
//   time:      an embedding of `channels`, two products to 4·channels, one to each block's channels
//
// ReLU stands in for SiLU (the same traffic), dropout is left out, the loss is the squared error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"

namespace rehearse {

struct UnetModel {
  std::string name;
  uint64_t channels = 0;
  std::vector<uint64_t> multipliers = {1, 2, 2, 2};  // of the channels, by level
  uint64_t blocks = 3;                               // per level
  uint64_t image = 32;                               // pixels per side
  uint64_t image_channels = 3;
  std::vector<uint64_t> attention = {16, 8};  // sides of the images that it works on
  uint64_t head_size = 64;
  uint64_t groups = 32;  // of a norm
  std::string source;    // of a preset

  bool Attends(uint64_t side) const {
    return std::find(attention.begin(), attention.end(), side) != attention.end();
  }
};

// Rows are pixels of training.batch images, and each block (with its attention) is a layer.
Network MakeUnet(const UnetModel& model, const Training& training);

const std::vector<UnetModel>& KnownUnets();

}  // namespace rehearse
