#include "scenarios/model_reader.h"

#include "workloads/decoder_network.h"
#include "workloads/mlp_network.h"

namespace rehearse {
namespace {

Training ReadTraining(const JsonReader& reader, bool has_sequences) {
  std::vector<std::string> keys = {"batch", "micro_batches", "recomputation", "precision",
                                   "tuned_kernels"};
  if (has_sequences) keys.insert(keys.end(), {"sequence", "attention"});
  reader.AllowKeys(keys);
  Training training;
  training.batch = static_cast<uint64_t>(reader.At("batch").Integer(1, int64_t{1} << 32));
  training.sequence = 1;
  if (has_sequences) {
    training.sequence = static_cast<uint64_t>(reader.At("sequence").Integer(1, int64_t{1} << 24));
    if (reader.Has("attention")) {
      training.fused_attention = reader.At("attention").Choice({"fused", "unfused"}) == 0;
    }
  }
  if (reader.Has("micro_batches")) {
    training.micro_batches = static_cast<uint32_t>(reader.At("micro_batches").Integer(1, 1 << 16));
  }
  constexpr Recomputation kModes[] = {Recomputation::kNone, Recomputation::kSelective,
                                      Recomputation::kFull};
  training.recomputation = kModes[reader.At("recomputation").Choice({"none", "selective", "full"})];
  if (reader.Has("precision")) {
    constexpr DType kPrecisions[] = {DType::kBf16, DType::kFp32};
    training.precision = kPrecisions[reader.At("precision").Choice({"bf16", "fp32"})];
  }
  if (reader.Has("tuned_kernels")) training.tuned_kernels = reader.At("tuned_kernels").Bool();
  return training;
}

MlpModel ReadMlp(const JsonReader& reader) {
  reader.AllowKeys({"kind", "name", "sizes"});
  MlpModel model;
  model.name = reader.Has("name") ? reader.At("name").String() : "mlp";
  const JsonReader sizes = reader.At("sizes");
  for (const JsonReader& size : sizes.Elements()) {
    model.sizes.push_back(static_cast<uint64_t>(size.Integer(1, 1 << 24)));
  }
  if (model.sizes.size() < 2) sizes.Expected("two sizes or more");
  return model;
}

}  // namespace

ModelAndTraining ReadModelAndTraining(const JsonReader& model, const JsonReader& training) {
  const bool is_mlp =
      model.IsObject() && model.Has("kind") && model.At("kind").Choice({"decoder", "mlp"}) == 1;
  const Training numbers = ReadTraining(training, !is_mlp);
  if (is_mlp) return {MakeMlp(ReadMlp(model), numbers), numbers};
  return {MakeDecoder(ReadModel(model), numbers), numbers};
}

}  // namespace rehearse
