// Networks of images, node by node: a value's rows are pixels (image by image, line by line), its
// columns channels.
//
// A convolution is a product of the windows of X, (images·pixels)×(channels·kernel²), and W,
// (channels·kernel²)×n: Algorithm 1 of the AxoNN paper with k and n the numbers of channels. W is
// split by rows as X is by channels, so every strategy for products also works for convolutions;
// rows are split image by image.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"

namespace rehearse {

// A value that is an image.
struct ImageNode {
  uint32_t node = 0;
  uint64_t height = 0;
  uint64_t width = 0;

  uint64_t Pixels() const { return height * width; }
};

class ImageBuilder {
 public:
  explicit ImageBuilder(Network* network) : network_(*network), builder_(network) {}

  NetworkBuilder& builder() { return builder_; }
  uint64_t Channels(const ImageNode& image) const { return builder_.Node(image.node).columns; }

  ImageNode Input(uint64_t images, uint64_t size, uint64_t channels);
  // A convolution of kernel × kernel with a bias. Images are padded so that only the stride shrinks
  // them.
  ImageNode Convolution(const ImageNode& x, const std::string& name, uint64_t channels,
                        uint64_t kernel, uint64_t stride, MatrixRole role);
  ImageNode Relu(const ImageNode& x, const std::string& name);
  ImageNode Add(const ImageNode& x, const ImageNode& z, const std::string& name);
  ImageNode MaxPool(const ImageNode& x, const std::string& name, uint64_t window);
  ImageNode Upsample(const ImageNode& x, const std::string& name);  // twice in each direction
  // Joins the channels of both in so many alternating blocks (kConcatenate in
  // sim/schedule/kernel.h).
  ImageNode Concatenate(const ImageNode& x, const ImageNode& z, const std::string& name,
                        uint64_t blocks);
  ImageNode GroupNorm(const ImageNode& x, const std::string& name, uint64_t groups);
  // Scales and shifts channels by what a row of `e` says for its image.
  ImageNode Modulate(uint32_t e, const ImageNode& x, const std::string& name);
  // Attention of every pixel to every other pixel of its image, with two 1×1 convolutions.
  ImageNode Attention(const ImageNode& x, const std::string& name, uint64_t head_size);
  // An image becomes a row.
  uint32_t Flatten(const ImageNode& x, const std::string& name);
  // A product with a bias, of rows that are not images.
  uint32_t Dense(uint32_t x, const std::string& name, uint64_t columns, MatrixRole role);

 private:
  NetworkNode& Last() { return network_.nodes.back(); }
  uint32_t Bias(uint32_t x, const std::string& weight);
  ImageNode Mapped(NodeKind kind, const ImageNode& x, const std::string& name);

  Network& network_;
  NetworkBuilder builder_;
};

// A network that counts images, and has no nodes yet.
Network EmptyImageNetwork(const std::string& name, const Training& training);

}  // namespace rehearse
