#include "workloads/networks/unet_network.h"

#include "sim/base/error.h"
#include "workloads/networks/image_builder.h"

namespace rehearse {
namespace {

class Unet {
 public:
  Unet(const UnetModel& model, Network* network)
      : model_(model), network_(*network), images_(network) {}

  void Build(uint64_t batch) {
    Time(batch);
    ImageNode x = images_.Input(batch, model_.image, model_.image_channels);
    x = images_.Convolution(x, "stem", model_.channels, 3, 1, MatrixRole::kStem);
    saved_ = {x};
    x = Up(Middle(Down(x)));
    images_.builder().set_layer(-1);
    x = images_.Relu(images_.GroupNorm(x, "final norm", model_.groups), "final act");
    x = images_.Convolution(x, "tail", model_.image_channels, 3, 1, MatrixRole::kTail);
    images_.builder().Map(NodeKind::kSquaredError, {x.node}, "loss");
  }

 private:
  uint64_t ChannelsOf(size_t level) const { return model_.channels * model_.multipliers[level]; }

  void NextLayer() { images_.builder().set_layer(network_.layers++); }

  // The time's embedding has one row for each image.
  void Time(uint64_t batch) {
    NetworkBuilder& builder = images_.builder();
    NetworkNode input;
    input.name = "times";
    input.rows = batch;
    input.columns = model_.channels;
    time_ = builder.Add(std::move(input));
    time_ = images_.Dense(time_, "time 1", 4 * model_.channels, MatrixRole::kFirst);
    time_ = builder.Map(NodeKind::kRelu, {time_}, "time act 1");
    time_ = images_.Dense(time_, "time 2", 4 * model_.channels, MatrixRole::kSecond);
    time_ = builder.Map(NodeKind::kRelu, {time_}, "time act 2");
  }

  ImageNode Block(const ImageNode& x, uint64_t channels) {
    ImageNode y = images_.Relu(images_.GroupNorm(x, "norm 1", model_.groups), "act 1");
    y = images_.Convolution(y, "conv 1", channels, 3, 1, MatrixRole::kFirst);
    const uint32_t e = images_.Dense(time_, "time", 2 * channels, MatrixRole::kFirst);
    y = images_.GroupNorm(y, "norm 2", model_.groups);
    y = images_.Relu(images_.Modulate(e, y, "modulate"), "act 2");
    y = images_.Convolution(y, "conv 2", channels, 3, 1, MatrixRole::kSecond);
    if (images_.Channels(x) == channels) return images_.Add(y, x, "sum");
    return images_.Add(images_.Convolution(x, "shortcut", channels, 1, 1, MatrixRole::kFirst), y,
                       "sum");
  }

  ImageNode Attention(const ImageNode& x) {
    const ImageNode y = images_.GroupNorm(x, "norm 3", model_.groups);
    return images_.Add(images_.Attention(y, "attention", model_.head_size), x, "attention sum");
  }

  ImageNode BlockOfLevel(const ImageNode& x, size_t level) {
    const ImageNode y = Block(x, ChannelsOf(level));
    return model_.Attends(y.height) ? Attention(y) : y;
  }

  ImageNode Down(ImageNode x) {
    for (size_t level = 0; level < model_.multipliers.size(); ++level) {
      for (uint64_t i = 0; i < model_.blocks; ++i) {
        NextLayer();
        saved_.push_back(x = BlockOfLevel(x, level));
      }
      if (level + 1 == model_.multipliers.size()) break;
      x = images_.Convolution(x, "down", images_.Channels(x), 3, 2, MatrixRole::kSecond);
      saved_.push_back(x);
    }
    return x;
  }

  ImageNode Middle(const ImageNode& x) {
    NextLayer();
    const ImageNode y = Attention(Block(x, images_.Channels(x)));
    NextLayer();
    return Block(y, images_.Channels(x));
  }

  ImageNode Up(ImageNode x) {
    for (size_t level = model_.multipliers.size(); level-- > 0;) {
      for (uint64_t i = 0; i <= model_.blocks; ++i) {
        NextLayer();
        x = images_.Concatenate(x, saved_.back(), "joined", model_.groups);
        saved_.pop_back();
        x = BlockOfLevel(x, level);
      }
      if (level == 0) break;
      x = images_.Upsample(x, "upsampled");
      x = images_.Convolution(x, "up", images_.Channels(x), 3, 1, MatrixRole::kSecond);
    }
    return x;
  }

  const UnetModel& model_;
  Network& network_;
  ImageBuilder images_;
  uint32_t time_ = 0;
  std::vector<ImageNode> saved_;  // on the way down
};

}  // namespace

Network MakeUnet(const UnetModel& model, const Training& training) {
  Network network = EmptyImageNetwork(model.name, training);
  Unet(model, &network).Build(training.batch / training.micro_batches);
  network.model_flops = 3 * ForwardFlops(network);
  return network;
}

const std::vector<UnetModel>& KnownUnets() {
  const auto axonn = [](const char* name, uint64_t channels, uint64_t head_size = 64) {
    UnetModel model;
    model.name = name;
    model.channels = channels;
    model.head_size = head_size;
    model.source = "AxoNN, arXiv 2305.13525, Table II; the rest assumed (unet_network.h)";
    return model;
  };
  static const std::vector<UnetModel> models = {
      axonn("u-net-50m", 128), axonn("u-net-250m", 256), axonn("u-net-500m", 416, 52),
      axonn("u-net-1b", 512),  axonn("u-net-2b", 768),   axonn("u-net-4b", 1024)};
  return models;
}

}  // namespace rehearse
