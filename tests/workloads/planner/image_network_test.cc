// VGG and U-Net: parameters and flops against published ones, convolutions as products on the mesh.
#include <map>

#include <gtest/gtest.h>

#include "sim/schedule/schedule_check.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/unet_network.h"
#include "workloads/networks/vgg_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"

namespace rehearse {
namespace image_network_test {

Training Images(uint64_t batch) {
  Training training;
  training.batch = batch;
  training.recomputation = Recomputation::kNone;
  return training;
}

const VggModel& Vgg(const std::string& name) {
  for (const VggModel& model : KnownVggs()) {
    if (model.name == name) return model;
  }
  throw std::runtime_error("there is no model " + name);
}

double UnetParameters(uint64_t channels) {
  UnetModel model;
  model.channels = channels;
  return MakeUnet(model, Images(1)).Parameters();
}

TEST(VggTest, HasTorchvisionsParameters) {
  // The table of torchvision.models, to the parameter.
  for (const auto& [name, parameters] : std::map<std::string, double>{{"vgg-11", 132863336},
                                                                      {"vgg-13", 133047848},
                                                                      {"vgg-16", 138357544},
                                                                      {"vgg-19", 143667240}}) {
    EXPECT_EQ(Vgg(name).Parameters(), parameters) << name;
    EXPECT_EQ(MakeVgg(Vgg(name), Images(1)).Parameters(), parameters) << name;
  }
}

TEST(VggTest, HasTorchvisionsFlops) {
  // 11.31 billion multiplications per forward pass of one image (the same table); two flops each,
  // three passes.
  EXPECT_NEAR(MakeVgg(Vgg("vgg-13"), Images(4)).model_flops.value(), 4 * 3 * 2 * 11.31e9,
              4 * 3 * 2 * 0.005e9);
}

TEST(UnetTest, OfACifarImageHasTheParametersOfNicholAndDhariwal) {
  // arXiv 2102.09672: 52.5 million with 128 channels; the AxoNN paper trains "50M".
  EXPECT_NEAR(UnetParameters(128), 52.5e6, 0.1e6);
}

TEST(UnetTest, AxonnsNamesRoundTheParametersUpToASixth) {
  // 210, 554, 840 million, 1.89 and 3.36 billion: the paper's own numbers of blocks, levels and
  // channels do not give its names more closely. Table II does not say what else is in its network.
  for (const auto& [channels, name] : std::map<uint64_t, double>{
           {256, 250e6}, {416, 500e6}, {512, 1e9}, {768, 2e9}, {1024, 4e9}}) {
    EXPECT_NEAR(UnetParameters(channels) / name, 1, 0.17) << channels;
  }
}

TEST(UnetTest, ParametersGrowWithTheSquareOfItsChannels) {
  // Products match exactly; stem, tail, biases and norms are 0.2 %.
  EXPECT_NEAR(UnetParameters(1024) / UnetParameters(512), 4, 0.01);
}

// A convolution of 8 → 16 channels in the middle of a VGG.
Schedule PlanSmallVgg(const FourDOptions& options, uint64_t batch) {
  VggModel model;
  model.name = "small";
  model.stages = {{8, 16, 8}};
  model.image = 4;
  model.hidden = 16;
  model.classes = 16;
  const Training training = Images(batch);
  const Network network = MakeVgg(model, training);
  return PlanStep(network, training, MakeFourD(options, network));
}

double BytesOfCollective(const Schedule& schedule, const std::string& name, Phase phase,
                         int32_t layer) {
  double bytes = 0;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || op.name != name || op.tag.phase != phase) continue;
    if (op.tag.layer == layer) bytes += collective->bytes.value();
  }
  return bytes;
}

TEST(ConvolutionTest, FourDimensionsMoveAxonnsBytesWithChannelsForColumns) {
  FourDOptions options;
  options.column = 2;
  options.row = 4;
  options.depth = 2;
  options.overlap_all_gather = false;
  const uint64_t batch = 4;
  const Schedule schedule = PlanSmallVgg(options, batch);
  CheckSchedule(schedule);
  // m = 4 images of 16 pixels, k = 8 and n = 16 channels, windows of 9; 2 bytes per element.
  const double m = 4 * 16;
  const double k = 8;
  const double n = 16;
  EXPECT_EQ(BytesOfCollective(schedule, "all-reduce conv 1.2 image", Phase::kForward, 1),
            2 * m * n / (2 * 2));  // mn/(G_d G_c)
  EXPECT_EQ(BytesOfCollective(schedule, "all-reduce d relu 1.1", Phase::kBackward, 1),
            2 * m * k / (2 * 4));  // mk/(G_d G_r): the image's gradient, not that of its windows
  EXPECT_EQ(BytesOfCollective(schedule, "all-gather conv 1.2", Phase::kForward, 1),
            2 * 9 * k * n / (2 * 4));  // kn/(G_c G_r)
  EXPECT_EQ(BytesOfCollective(schedule, "reduce-scatter conv 1.2", Phase::kBackward, 1),
            2 * 9 * k * n / (2 * 4));
}

TEST(ConvolutionTest, ReadsWindowsWhereTheyAreUnlessToldOtherwise) {
  VggModel model;
  model.name = "small";
  model.stages = {{8}};
  model.image = 4;
  model.hidden = 16;
  model.classes = 16;
  Training training = Images(1);
  for (const bool implicit : {true, false}) {
    training.implicit_convolution = implicit;
    const Network network = MakeVgg(model, training);
    const Schedule schedule =
        PlanStep(network, training, MakeDataParallel(1, /*overlap_all_reduce=*/false, network));
    for (const Op& op : schedule.roles[0].ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr) continue;
      // The image has 16 pixels of 3 channels, its windows 27 numbers per pixel.
      if (op.name == "im2col conv 1.1") {
        EXPECT_EQ(compute->bytes.value(), implicit ? 0 : 2 * 16 * (3 + 27));
        EXPECT_EQ(compute->kernels, implicit ? 0u : 1u);
      }
      if (op.name == "conv 1.1") {
        EXPECT_EQ(compute->flops.value(), 2 * 16 * 8 * 27);
        EXPECT_EQ(compute->bytes.value(), 2 * ((implicit ? 16 * 3 : 16 * 27) + 27 * 8 + 16 * 8));
      }
    }
  }
}

TEST(ConvolutionTest, ImagesAreNotCut) {
  FourDOptions options;
  options.depth = 8;
  EXPECT_THROW(PlanSmallVgg(options, 4), Error);
}

}  // namespace image_network_test
}  // namespace rehearse
