#include "workloads/networks/vgg_network.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "workloads/networks/image_builder.h"

namespace rehearse {
namespace {

constexpr double kVggDropout = 0.5;

// Hands out roles, which alternate between first and second products.
class Roles {
 public:
  MatrixRole Next() {
    is_second_ = !is_second_;
    return is_second_ ? MatrixRole::kSecond : MatrixRole::kFirst;
  }

 private:
  bool is_second_ = true;
};

}  // namespace

double VggModel::Parameters() const {
  double sum = 0;
  uint64_t channels = image_channels;
  for (const std::vector<uint64_t>& stage : stages) {
    for (const uint64_t next : stage) {
      sum += static_cast<double>((9 * channels + 1) * next);
      channels = next;
    }
  }
  const uint64_t side = image >> stages.size();
  for (const auto& [k, n] :
       {std::pair(channels * side * side, hidden), {hidden, hidden}, {hidden, classes}}) {
    sum += static_cast<double>((k + 1) * n);
  }
  return sum;
}

Network MakeVgg(const VggModel& model, const Training& training) {
  Network network = EmptyImageNetwork(model.name, training);

  ImageBuilder images(&network);
  NetworkBuilder& builder = images.builder();
  Roles roles;
  const auto next_layer = [&] { builder.set_layer(network.layers++); };
  ImageNode x =
      images.Input(training.batch / training.micro_batches, model.image, model.image_channels);
  for (size_t stage = 0; stage < model.stages.size(); ++stage) {
    for (size_t i = 0; i < model.stages[stage].size(); ++i) {
      next_layer();
      const std::string number = fmt::format("{}.{}", stage + 1, i + 1);
      const bool is_first = stage == 0 && i == 0;
      x = images.Convolution(x, "conv " + number, model.stages[stage][i], 3, 1,
                             is_first ? MatrixRole::kStem : roles.Next());
      x = images.Relu(x, "relu " + number);
    }
    x = images.MaxPool(x, fmt::format("pool {}", stage + 1), 2);
  }
  uint32_t y = images.Flatten(x, "flat");
  for (const int number : {1, 2}) {
    next_layer();
    y = images.Dense(y, fmt::format("fc {}", number), model.hidden, roles.Next());
    y = builder.Map(NodeKind::kRelu, {y}, fmt::format("fc relu {}", number));
    y = builder.Map(NodeKind::kDropout, {y}, fmt::format("fc dropout {}", number));
    network.nodes.back().attributes = {kVggDropout};
  }
  builder.set_layer(-1);
  y = images.Dense(y, "fc 3", model.classes, roles.Next());
  builder.Map(NodeKind::kCrossEntropy, {y}, "loss");

  network.model_flops = 3 * ForwardFlops(network);
  return network;
}

const std::vector<VggModel>& KnownVggs() {
  const char* source = "Simonyan and Zisserman 2014 (VGG), arXiv 1409.1556, Table 1";
  static const std::vector<VggModel> models = {
      {"vgg-11", {{64}, {128}, {256, 256}, {512, 512}, {512, 512}}, 224, 3, 4096, 1000, source},
      {"vgg-13",
       {{64, 64}, {128, 128}, {256, 256}, {512, 512}, {512, 512}},
       224,
       3,
       4096,
       1000,
       source},
      {"vgg-16",
       {{64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}},
       224,
       3,
       4096,
       1000,
       source},
      {"vgg-19",
       {{64, 64}, {128, 128}, {256, 256, 256, 256}, {512, 512, 512, 512}, {512, 512, 512, 512}},
       224,
       3,
       4096,
       1000,
       source},
  };
  return models;
}

}  // namespace rehearse
