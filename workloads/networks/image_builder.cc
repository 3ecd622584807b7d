#include "workloads/networks/image_builder.h"

#include <utility>

#include "sim/base/error.h"

namespace rehearse {

ImageNode ImageBuilder::Input(uint64_t images, uint64_t size, uint64_t channels) {
  NetworkNode input;
  input.name = "images";
  input.rows = images * size * size;
  input.columns = channels;
  input.whole_samples = true;
  return {builder_.Add(std::move(input)), size, size};
}

uint32_t ImageBuilder::Bias(uint32_t x, const std::string& weight) {
  const uint32_t y = builder_.Map(NodeKind::kBias, {x}, builder_.Node(x).name, "bias " + weight);
  Last().vectors = {builder_.AddVector(weight + " bias", Last().columns)};
  return y;
}

ImageNode ImageBuilder::Convolution(const ImageNode& x, const std::string& name, uint64_t channels,
                                    uint64_t kernel, uint64_t stride, MatrixRole role) {
  const Window window{x.height, x.width, kernel, stride, kernel / 2};
  const ImageNode y{builder_.Product(x.node, name, channels, name + " image", role),
                    window.OutHeight(), window.OutWidth()};
  NetworkNode& node = Last();
  node.rows = node.rows / x.Pixels() * y.Pixels();
  node.whole_samples = true;
  if (kernel > 1 || stride > 1) {
    node.window = window;
    network_.matrices.back().k *= kernel * kernel;
  }
  return {Bias(y.node, name), y.height, y.width};
}

ImageNode ImageBuilder::Mapped(NodeKind kind, const ImageNode& x, const std::string& name) {
  return {builder_.Map(kind, {x.node}, name), x.height, x.width};
}

ImageNode ImageBuilder::Relu(const ImageNode& x, const std::string& name) {
  return Mapped(NodeKind::kRelu, x, name);
}

ImageNode ImageBuilder::Add(const ImageNode& x, const ImageNode& z, const std::string& name) {
  return {builder_.Map(NodeKind::kAdd, {x.node, z.node}, name), z.height, z.width};
}

ImageNode ImageBuilder::MaxPool(const ImageNode& x, const std::string& name, uint64_t window) {
  ImageNode y = Mapped(NodeKind::kMaxPool, x, name);
  Last().attributes = {static_cast<double>(x.height), static_cast<double>(x.width),
                       static_cast<double>(window)};
  Last().rows /= window * window;
  Last().whole_samples = true;
  y.height /= window;
  y.width /= window;
  return y;
}

ImageNode ImageBuilder::Upsample(const ImageNode& x, const std::string& name) {
  ImageNode y = Mapped(NodeKind::kUpsample, x, name);
  Last().attributes = {static_cast<double>(x.height), static_cast<double>(x.width)};
  Last().rows *= 4;
  Last().whole_samples = true;
  y.height *= 2;
  y.width *= 2;
  return y;
}

ImageNode ImageBuilder::Concatenate(const ImageNode& x, const ImageNode& z, const std::string& name,
                                    uint64_t blocks) {
  const ImageNode y{builder_.Map(NodeKind::kConcatenate, {x.node, z.node}, name), z.height,
                    z.width};
  Last().columns = Channels(x) + Channels(z);
  Last().attributes = {static_cast<double>(blocks)};
  Last().units = blocks;
  Last().unit_name = "blocks of joined channels";
  return y;
}

ImageNode ImageBuilder::GroupNorm(const ImageNode& x, const std::string& name, uint64_t groups) {
  const ImageNode y = Mapped(NodeKind::kGroupNorm, x, name);
  const uint64_t channels = Channels(x);
  Last().attributes = {static_cast<double>(x.Pixels()), static_cast<double>(groups)};
  Last().vectors = {builder_.AddVector(name + " gain", channels),
                    builder_.AddVector(name + " bias", channels)};
  Last().units = groups;
  Last().unit_name = "groups of channels";
  Last().whole_samples = true;
  return y;
}

ImageNode ImageBuilder::Modulate(uint32_t e, const ImageNode& x, const std::string& name) {
  CHECK_EQ(builder_.Node(e).columns, 2 * Channels(x));
  const ImageNode y{builder_.Map(NodeKind::kModulate, {e, x.node}, name), x.height, x.width};
  Last().rows = builder_.Node(x.node).rows;
  Last().columns = Channels(x);
  Last().attributes = {static_cast<double>(x.Pixels())};
  Last().whole_samples = true;
  return y;
}

ImageNode ImageBuilder::Attention(const ImageNode& x, const std::string& name, uint64_t head_size) {
  const uint64_t channels = Channels(x);
  const uint64_t heads = channels / head_size;
  const auto set_heads = [&] {
    Last().units = heads;
    Last().unit_name = "attention heads";
  };
  uint32_t y = builder_.Product(x.node, name + " qkv", 3 * channels, "q, k, v", MatrixRole::kQkv);
  set_heads();
  y = Bias(y, name + " qkv");
  y = builder_.Map(NodeKind::kAttention, {y}, name);
  Last().columns = channels;
  Last().attributes = {static_cast<double>(x.Pixels()), static_cast<double>(heads), 1,
                       static_cast<double>(head_size), 0};
  Last().whole_samples = true;
  set_heads();
  return Convolution({y, x.height, x.width}, name + " projection", channels, 1, 1,
                     MatrixRole::kSecond);
}

uint32_t ImageBuilder::Flatten(const ImageNode& x, const std::string& name) {
  const uint32_t y = builder_.Map(NodeKind::kFlatten, {x.node}, name);
  Last().attributes = {static_cast<double>(x.Pixels())};
  Last().rows /= x.Pixels();
  Last().columns *= x.Pixels();
  Last().units = Channels(x);
  Last().unit_name = "channels";
  return y;
}

uint32_t ImageBuilder::Dense(uint32_t x, const std::string& name, uint64_t columns,
                             MatrixRole role) {
  return Bias(builder_.Product(x, name, columns, name + " row", role), name);
}

Network EmptyImageNetwork(const std::string& name, const Training& training) {
  Network network;
  network.name = name;
  network.samples = training.batch;
  network.sample_name = "images";
  network.micro_batches = training.micro_batches;
  network.tokens = static_cast<double>(training.batch);
  network.token_name = "images";
  return network;
}

}  // namespace rehearse
