// Jobs like those that torchtitan publishes, beside scenarios written by hand.
#include "tools/foreign/runs/torchtitan/torchtitan_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/foreign/runs/same_run.h"
#include "tools/foreign/runs/torchtitan/toml_text.h"
#include "tools/foreign/runs/torchtitan/torchtitan_flavors.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace torchtitan_import_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TorchtitanImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasToml()) GTEST_SKIP() << "built without toml++";
  }
};

std::string MistakeIn(const std::string& job, const std::string& cluster = "dgx-h100") {
  try {
    ImportTorchtitan(job, "job.toml", cluster);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

constexpr const char* kLlama70 = R"(# for 256 H100
[job]
dump_folder = "./outputs"
[model]
name = "llama3"
flavor = "70B"
[optimizer]
name = "AdamW"
lr = 1.5e-4
implementation = "foreach"
[lr_scheduler]
warmup_steps = 200
[training]
local_batch_size = 16
seq_len = 8192
max_norm = 1.0
steps = 1000
dataset = "c4"
[compile]
enable = true
components = ["model", "loss"]
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
enable_async_tensor_parallel = true
novelty = 3
[activation_checkpoint]
mode = "full"
)";

TEST_F(TorchtitanImportTest, Llama70BOnThirtyTwoBoxesIsTheScenarioByHand) {
  const ImportedScenario imported =
      ImportTorchtitan(kLlama70, "llama3_70b.toml", "dgx-h100:nodes=32");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "torchtitan", "cluster": "dgx-h100:nodes=32",
    "model": {"preset": "llama-3-70b"},
    "training": {"batch": 512, "sequence": 8192, "recomputation": "full", "kernels": "compiled",
                 "cross_entropy": "fused"},
    "strategy": {"kind": "combined", "tensor": 8, "shard": 32, "split_products": "async-tp"}})"));
  EXPECT_EQ(imported.ranks, 256u);
  EXPECT_NEAR(imported.parameters, 70.55e9, 0.01e9);
  EXPECT_THAT(imported.remarks, ElementsAre("not understood: parallelism.novelty"));
}

TEST_F(TorchtitanImportTest, WeightsOf16BitsAreUpdatedInPlace) {
  std::string text = kLlama70;
  const std::string training = "[training]\n";
  ASSERT_NE(text.find(training), std::string::npos);
  EXPECT_THAT(ImportTorchtitan(text, "a.toml", "dgx-h100:nodes=32").text,
              Not(HasSubstr("masters")));
  text.insert(text.find(training) + training.size(), "dtype = \"bfloat16\"\n");
  const std::string narrow = ImportTorchtitan(text, "a.toml", "dgx-h100:nodes=32").text;
  EXPECT_THAT(narrow, HasSubstr("\"masters\": \"none\""));
  EXPECT_THAT(narrow, HasSubstr("\"moments\": \"bf16\""));
}

TEST_F(TorchtitanImportTest, Llama405BInFp8WithStagesAndReplicas) {
  const ImportedScenario imported = ImportTorchtitan(R"(
[model]
name = "llama3"
flavor = "405B"
converters = "float8"
[training]
local_batch_size = 8
global_batch_size = 1024
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 8
tensor_parallel_degree = 8
pipeline_parallel_degree = 8
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 1
[activation_checkpoint]
mode = "none"
[float8]
enable_fsdp_float8_all_gather = true
filter_fqns = "output"
)",
                                                     "405b.toml", "");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "torchtitan", "cluster": "dgx-h100:nodes=128",
    "model": {"style": "llama", "layers": 126, "hidden": 16384, "heads": 128, "groups": 8,
              "feed_forward": 53248, "vocabulary": 128256, "tied": false},
    "training": {"batch": 1024, "sequence": 8192, "micro_batches": 64, "recomputation": "none",
                 "products": "fp8-current", "narrow_parameters": true, "optimizer": "fused"},
    "strategy": {"kind": "combined", "tensor": 8, "shard": 8, "replicas": 2,
                 "reshard_after_forward": false},
    "pipeline": {"stages": 8, "schedule": "interleaved", "virtual": 2,
                 "split": "layers-and-ends"}})"));
  EXPECT_NEAR(imported.parameters, 405.9e9, 0.1e9);
}

TEST_F(TorchtitanImportTest, ExpertsAreSpreadAsTorchtitanSpreadsThem) {
  const ImportedScenario imported = ImportTorchtitan(R"(
[model]
name = "deepseek_v3"
flavor = "16B"
[training]
local_batch_size = 4
seq_len = 4096
[parallelism]
expert_parallel_degree = 8
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
)",
                                                     "16b.toml", "dgx-h100");
  EXPECT_THAT(imported.text, AllOf(HasSubstr("\"preset\": \"deepseek-v2-lite\""),
                                   HasSubstr("\"expert\": 8"), HasSubstr("\"norms\"")));
  EXPECT_NEAR(imported.parameters, 15.7e9, 0.05e9);
}

TEST_F(TorchtitanImportTest, OlderSpellingsAreKnown) {
  const ImportedScenario imported = ImportTorchtitan(R"(
[model]
name = "llama3"
flavor = "8B"
[training]
batch_size = 4
seq_len = 8192
data_parallel_degree = 8
tensor_parallel_degree = 2
[experimental]
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1f1b"
pipeline_parallel_split_points = "layers.20"
[activation_checkpoint]
mode = 'selective'
selective_ac_option = '2'
)",
                                                     "old.toml", "");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "torchtitan", "cluster": "dgx-h100:nodes=4",
    "model": {"preset": "llama-3-8b"},
    "training": {"batch": 32, "sequence": 8192, "micro_batches": 2, "recomputation": "full",
                 "recomputed_layers": [8]},
    "strategy": {"kind": "combined", "tensor": 2, "shard": 8, "reshard_after_forward": false},
    "pipeline": {"stages": 2, "schedule": "1f1b", "layers": [20, 12]}})"));
}

TEST_F(TorchtitanImportTest, EveryFlavorIsAModel) {
  for (const TorchtitanFlavor& flavor : TorchtitanFlavors()) {
    const JsonDocument keys = JsonDocument::FromText(flavor.keys, flavor.flavor);
    EXPECT_GT(ReadModel(keys.Root()).Parameters(), 1e6) << flavor.model << " " << flavor.flavor;
    const std::string job = std::string("[model]\nname = \"") + flavor.model + "\"\nflavor = \"" +
                            flavor.flavor + "\"\n";
    EXPECT_EQ(ImportTorchtitan(job, "job.toml", "dgx-h100").ranks, 8u) << job;
  }
}

TEST_F(TorchtitanImportTest, SettingsBesideOverrideKeys) {
  const RunSettings settings = {{"model.flavor", "8B"},
                                {"training.seq-len", "4096"},
                                {"compile.enable", "False"},
                                {"parallelism.tensor_parallel_degree", "2"}};
  const ImportedScenario imported =
      ImportTorchtitan(kLlama70, "llama3_70b.toml", "dgx-h100", settings);
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "torchtitan", "cluster": "dgx-h100",
    "model": {"preset": "llama-3-8b"},
    "training": {"batch": 64, "sequence": 4096, "recomputation": "full"},
    "strategy": {"kind": "combined", "tensor": 2, "shard": 4}})"));
  EXPECT_THROW(ImportTorchtitan(kLlama70, "a.toml", "dgx-h100", {{"training.seq_len", "many"}}),
               Error);
}

constexpr const char* kRegistry = R"(
from . import model_registry

def llama3_8b() -> Trainer.Config:
    """Eight billion: TrainingConfig(steps=1) in a text is none."""
    model_spec = model_registry("8B")
    return Trainer.Config(
        model_spec=model_spec,
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=2 * 8192,  # two sequences
            max_context_length=8192,
            steps=1000,
        ),
        activation_checkpoint=SelectiveAC.Config(),
    )


def llama3_8b_wide() -> Trainer.Config:
    config = llama3_8b()
    config.compile = CompileConfig(enable=True, components=["model", "loss"])
    config.model_spec = model_registry(
        "8B", converters=[Float8LinearConverter.Config(model_compile_enabled=True)]
    )
    config.parallelism = ParallelismConfig(tensor_parallel_degree=8)
    config.training.max_context_length = 4096
    config.activation_checkpoint = FullAC.Config()
    return config


def _helper(Config):
    return 1
)";

TEST(TorchtitanRegistryTest, AJobOfAPythonRegistryIsThatOfItsKeys) {
  const ImportedScenario plain =
      ImportTorchtitan(kRegistry, "config_registry.py", "dgx-h100", {{"config", "llama3_8b"}});
  EXPECT_EQ(DescribeRun(plain.text), DescribeRun(R"({
    "name": "hand", "software": "torchtitan", "cluster": "dgx-h100",
    "model": {"preset": "llama-3-8b"},
    "training": {"batch": 16, "sequence": 8192, "recomputation": "selective",
                 "recomputed_ops": ["activations", "norms"]},
    "strategy": {"kind": "combined", "tensor": 1, "shard": 8}})"));
  const ImportedScenario wide =
      ImportTorchtitan(kRegistry, "config_registry.py", "dgx-h100",
                       {{"config", "llama3_8b_wide"}, {"activation_checkpoint.mode", "none"}});
  EXPECT_EQ(DescribeRun(wide.text), DescribeRun(R"({
    "name": "hand", "software": "torchtitan", "cluster": "dgx-h100",
    "model": {"preset": "llama-3-8b"},
    "training": {"batch": 4, "sequence": 4096, "recomputation": "none", "kernels": "compiled",
                 "cross_entropy": "fused", "products": "fp8-current"},
    "strategy": {"kind": "combined", "tensor": 8, "shard": 1}})"));
}

TEST(TorchtitanRegistryTest, JobsThatAreNotThereAreNamed) {
  const auto mistake = [](const RunSettings& settings) {
    try {
      ImportTorchtitan(kRegistry, "config_registry.py", "dgx-h100", settings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(mistake({}), AllOf(HasSubstr("expected --set config=NAME"),
                                 HasSubstr("llama3_8b, llama3_8b_wide")));
  EXPECT_THAT(mistake({{"config", "llama3_9b"}}), HasSubstr("did you mean \"llama3_8b\""));
  EXPECT_THAT(mistake({{"config", "llama3_8b"}, {"module", "zebra"}}), HasSubstr("zebra"));
}

TEST_F(TorchtitanImportTest, KeysOfVeryManyPartsAreRefusedBeforeTheyAreParsed) {
  std::string parts = "a";
  for (int i = 0; i < 50000; ++i) parts += ".a";
  const char* expected = "job.toml:2: found a key of more than 64 parts, expected fewer";
  EXPECT_EQ(MistakeIn("[model]\n[" + parts + "]\n"), expected);
  EXPECT_EQ(MistakeIn("[model]\n" + parts + " = 1\n"), expected);
  EXPECT_EQ(MistakeIn("[model]\nx = {" + parts + " = 1}\n"), expected);
  EXPECT_THAT(MistakeIn("x = " + std::string(50000, '[') + "\n"), HasSubstr("brackets"));
  // The first of four quotes at the end of a text belongs to it.
  EXPECT_EQ(MistakeIn("[model]\nx = {a = \"\"\"b\"\"\"\", " + parts + " = 1}\n"), expected);
  // Points in texts are none of a key.
  EXPECT_EQ(MistakeIn("[job]\ndescription = \"" + parts + "\"\nnote = \"\"\"\n" + parts +
                      "\n\"\"\" # " + parts + "\n"),
            "none");
}

TEST_F(TorchtitanImportTest, MistakesNameTheKeyAndItsLine) {
  EXPECT_THAT(MistakeIn("[model]\nname = \"llama3\n"), StartsWith("job.toml:2: no TOML: "));
  EXPECT_THAT(MistakeIn("[model]\n[#]\n"), StartsWith("job.toml: no TOML: "));
  EXPECT_THAT(MistakeIn("[training]\nseq_len = 1\nseq_len = 2\n"), StartsWith("job.toml:3: "));
  EXPECT_EQ(MistakeIn("[model]\nname = \"llama3\"\nflavor = \"8C\"\n"),
            "job.toml:3: model.flavor: found \"8C\"; did you mean \"8B\"? Known are debugmodel, "
            "8B, 70B and 405B");
  EXPECT_THAT(MistakeIn("[model]\nname = \"lama3\"\n"), HasSubstr("did you mean \"llama3\""));
  EXPECT_EQ(MistakeIn("[parallelism]\n\ntensor_parallel_degree = \"two\"\n"),
            "job.toml:3: /parallelism.tensor_parallel_degree: found \"two\", expected a whole "
            "number from 1 to 131072");
  EXPECT_EQ(MistakeIn("[parallelism]\ntensor_parallel_degree = 3\n"),
            "job.toml:2: 8 ranks (--cluster) cannot be shared by "
            "parallelism.tensor_parallel_degree 3; expected a multiple of 3");
  EXPECT_THAT(MistakeIn("[parallelism]\ndata_parallel_shard_degree = 4\n"),
              HasSubstr("the degrees make 4 ranks, but --cluster has 8 devices"));
  EXPECT_THAT(MistakeIn("[parallelism]\nexpert_parallel_degree = 2\n"),
              HasSubstr("the model has no experts"));
  EXPECT_THAT(MistakeIn("[parallelism]\npipeline_parallel_degree = 2\n"
                        "pipeline_parallel_schedule = \"2F2B\"\n"),
              HasSubstr("job.toml:3: parallelism.pipeline_parallel_schedule: found \"2F2B\""));
  EXPECT_THAT(MistakeIn("[training]\nglobal_batch_size = 65\n"),
              HasSubstr("65 sequences are not a multiple of training.local_batch_size 8"));
  EXPECT_THAT(MistakeIn("", ""), HasSubstr("--cluster: data_parallel_shard_degree -1"));
}

}  // namespace torchtitan_import_test
}  // namespace rehearse
