#include "workloads/networks/mlp_network.h"

#include "sim/base/error.h"

namespace rehearse {

double MlpModel::Parameters() const {
  double sum = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    sum += static_cast<double>(sizes[i] + 1) * static_cast<double>(sizes[i + 1]);
  }
  return sum;
}

Network MakeMlp(const MlpModel& model, const Training& training) {
  CHECK_GE(model.sizes.size(), 2u);
  Network network;
  network.name = model.name;
  network.layers = static_cast<int32_t>(model.sizes.size()) - 1;
  network.samples = training.batch;
  network.micro_batches = training.micro_batches;
  network.tokens = static_cast<double>(training.batch);
  network.token_name = "samples";

  NetworkBuilder builder(&network);
  NetworkNode input;
  input.name = "input";
  input.rows = training.batch / training.micro_batches;
  input.columns = model.sizes.front();
  uint32_t x = builder.Add(std::move(input));
  double multiplications = 0;
  for (size_t i = 0; i + 1 < model.sizes.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    const uint64_t columns = model.sizes[i + 1];
    multiplications += static_cast<double>(model.sizes[i]) * static_cast<double>(columns);
    builder.set_layer(static_cast<int32_t>(i));
    x = builder.Product(x, "fc " + number, columns, "y " + number,
                        i % 2 == 0 ? MatrixRole::kFirst : MatrixRole::kSecond);
    x = builder.Map(NodeKind::kBias, {x}, "y " + number, "bias " + number);
    network.nodes.back().vectors = {builder.AddVector("bias " + number, columns)};
    if (i + 2 < model.sizes.size()) x = builder.Map(NodeKind::kRelu, {x}, "relu " + number);
  }
  builder.set_layer(-1);
  builder.Map(NodeKind::kSquaredError, {x}, "loss");

  network.model_flops = Flops(3 * 2 * multiplications * static_cast<double>(training.batch));
  return network;
}

const std::vector<MlpModel>& KnownMlps() {
  static const std::vector<MlpModel> models = {
      {"autoddl-mlp", {32768, 16384, 4096, 2048, 512}, "AutoDDL, arXiv 2301.06813, section 4.6"}};
  return models;
}

}  // namespace rehearse
