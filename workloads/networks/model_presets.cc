// Models by name, each as its paper states it. GPTs whose vocabulary is GPT-2's 50,257 have 51,200,
// to which Megatron-LM's tokenizer pads it (Narayanan et al. 2021).
#include <algorithm>
#include <string_view>
#include <utility>

#include "workloads/networks/model.h"

namespace rehearse {
namespace {

constexpr uint64_t kGpt2 = 51200;

GptModel Llama(const char* name, uint32_t layers, uint64_t hidden, uint32_t heads, uint32_t groups,
               uint64_t feed_forward, uint64_t vocabulary, const char* source) {
  GptModel model{name, layers, hidden, heads, vocabulary, source};
  model.llama = true;
  model.groups = groups;
  model.feed_forward = feed_forward;
  model.tied = false;
  return model;
}

GptModel WithWindow(GptModel model, uint64_t window) {
  model.window = window;
  return model;
}

GptModel WithExperts(GptModel model, uint64_t head_size, const ExpertModel& experts) {
  model.head_size = head_size;
  model.experts = experts;
  return model;
}

// The model with windows in all layers except every `every`-th.
GptModel WithWindows(GptModel model, uint64_t window, uint32_t every) {
  model.window = window;
  model.global_every = every;
  return model;
}

GptModel WithScaledRotary(GptModel model) {
  model.scaled_rotary = true;
  return model;
}

GptModel WithHeadNorms(GptModel model) {
  model.head_norms = true;
  return model;
}

GptModel Tied(GptModel model) {
  model.tied = true;
  return model;
}

// The model with latent attention (DeepSeek-V2, -V3): 128 columns per head and value, 64 of them
// with the position.
GptModel WithLatent(GptModel model, uint64_t query_rank) {
  model.groups = 0;
  model.latent = LatentAttention{query_rank, 512, 64, 128, 128};
  return model;
}

// DeepSeek's first layers have an MLP. The two shared experts of V2 are one with twice the columns.
std::vector<GptModel> DeepSeeks() {
  const char* v2 =
      "DeepSeek-AI 2024 (DeepSeek-V2), arXiv 2405.04434, section 3.1.2; deepseek-ai/DeepSeek-V2, "
      "config.json";
  const char* lite =
      "DeepSeek-AI 2024 (DeepSeek-V2), arXiv 2405.04434, appendix B; deepseek-ai/DeepSeek-V2-Lite, "
      "config.json";
  const char* v3 = "DeepSeek-AI 2024 (DeepSeek-V3), arXiv 2412.19437, section 4.2";
  const auto with = [](GptModel model, uint64_t query_rank, const ExpertModel& experts) {
    model = WithLatent(std::move(model), query_rank);
    model.experts = experts;
    return model;
  };
  std::vector<GptModel> models = {
      with(Llama("deepseek-v2-lite", 27, 2048, 16, 0, 10944, 102400, lite), 0,
           {.count = 64, .per_token = 6, .hidden = 1408, .shared = 2816, .first_dense = 1}),
      with(Llama("deepseek-v2", 60, 5120, 128, 0, 12288, 102400, v2), 1536,
           {.count = 160,
            .per_token = 6,
            .hidden = 1536,
            .shared = 3072,
            .first_dense = 1,
            .groups = 8,
            .limited_groups = 3,
            .auxiliary = 0.003}),
      with(Llama("deepseek-v3", 61, 7168, 128, 0, 18432, 129280, v3), 1536,
           {.count = 256,
            .per_token = 8,
            .hidden = 2048,
            .shared = 2048,
            .first_dense = 3,
            .groups = 8,
            .limited_groups = 4,
            .sigmoid = true,
            .auxiliary = 0.0001})};
  models.back().predict_ahead = 1;
  return models;
}

// Biases of attention (gpt-oss) and norms of results (Grok) are left out; Llama 4's chunks of
// attention are windows here.
std::vector<GptModel> WithExpertsOnly() {
  const char* mixtral = "Jiang et al. 2024 (Mixtral of Experts), arXiv 2401.04088, Table 1";
  const char* mixtral_22b = "mistralai/Mixtral-8x22B-v0.1, config.json";
  const char* qwen3 = "Yang et al. 2025 (Qwen3), arXiv 2505.09388, Table 2; config.json of Qwen";
  const char* gpt_oss = "OpenAI 2025 (gpt-oss), arXiv 2508.10925; openai/gpt-oss-*, config.json";
  const char* grok = "xai-org/grok-1, run.py";
  const char* llama4 = "meta-llama/Llama-4-*, config.json (the text model)";
  return {
      WithExperts(Llama("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, mixtral), 128,
                  {.count = 8, .per_token = 2, .hidden = 14336}),
      WithExperts(Llama("mixtral-8x22b", 56, 6144, 48, 8, 16384, 32000, mixtral_22b), 128,
                  {.count = 8, .per_token = 2, .hidden = 16384}),
      WithHeadNorms(WithExperts(Llama("qwen3-30b-a3b", 48, 2048, 32, 4, 6144, 151936, qwen3), 128,
                                {.count = 128, .per_token = 8, .hidden = 768})),
      WithHeadNorms(WithExperts(Llama("qwen3-235b-a22b", 94, 4096, 64, 4, 12288, 151936, qwen3),
                                128, {.count = 128, .per_token = 8, .hidden = 1536})),
      WithWindows(WithScaledRotary(
                      WithExperts(Llama("gpt-oss-20b", 24, 2880, 64, 8, 2880, 201088, gpt_oss), 64,
                                  {.count = 32, .per_token = 4, .hidden = 2880, .biased = true})),
                  128, 2),
      WithWindows(WithScaledRotary(
                      WithExperts(Llama("gpt-oss-120b", 36, 2880, 64, 8, 2880, 201088, gpt_oss), 64,
                                  {.count = 128, .per_token = 4, .hidden = 2880, .biased = true})),
                  128, 2),
      // MLPs have eight times 6,144 columns, of which a gated one keeps two thirds.
      Tied(WithExperts(Llama("grok-1", 64, 6144, 48, 8, 32768, 131072, grok), 128,
                       {.count = 8, .per_token = 2, .hidden = 32768})),
      WithWindows(
          WithExperts(
              Llama("llama-4-scout", 48, 5120, 40, 8, 16384, 202048, llama4), 128,
              {.count = 16, .per_token = 1, .hidden = 8192, .shared = 8192, .sigmoid = true}),
          8192, 4),
      WithWindows(
          WithExperts(Llama("llama-4-maverick", 48, 5120, 40, 8, 16384, 202048, llama4), 128,
                      {.count = 128,
                       .per_token = 1,
                       .hidden = 8192,
                       .shared = 8192,
                       .every = 2,
                       .sigmoid = true}),
          8192, 4),
  };
}

// Models whose layers are each one of Mamba-2, attention and an MLP with a squared ReLU, without
// rotary embeddings; heads of attention have 128 columns.
GptModel Hybrid(const char* name, const char* pattern, uint64_t hidden, uint32_t heads,
                uint64_t feed_forward, const StateSpaceModel& state_space, const char* source) {
  const auto layers = static_cast<uint32_t>(std::string_view(pattern).size());
  GptModel model = Llama(name, layers, hidden, heads, 8, feed_forward, 131072, source);
  model.head_size = 128;
  model.squared_relu = true;
  model.rotary = false;
  model.layer_pattern = pattern;
  model.mamba = state_space;
  return model;
}

// Nemotron 3: two groups of heads, and shared layers that predict further ahead.
GptModel WithRoutedExperts(GptModel model, ExpertModel experts, uint32_t ahead) {
  experts.sigmoid = true;
  experts.auxiliary = 0.0001;
  model.experts = experts;
  model.groups = 2;
  model.predict_ahead = ahead;
  if (ahead > 0) model.ahead_pattern = "*E";
  model.shares_ahead = ahead > 0;
  return model;
}

std::vector<GptModel> Hybrids() {
  const char* nemotron_h =
      "NVIDIA 2025 (Nemotron-H), arXiv 2504.03624, Table 1; NVIDIA/NeMo, "
      "nemo/collections/llm/gpt/model/ssm.py (NemotronHConfig*)";
  const char* nano =
      "NVIDIA 2025 (Nemotron Nano 2), arXiv 2508.14444; NVIDIA/NeMo, "
      "nemo/collections/llm/gpt/model/ssm.py (NemotronNano*v2)";
  const char* nemotron_3_nano =
      "NVIDIA 2025 (Nemotron 3 Nano), arXiv 2512.20848; NVIDIA-NeMo/Megatron-Bridge, "
      "recipes/nemotronh/h100/nemotron_3_nano.py";
  const char* nemotron_3_super =
      "NVIDIA 2026 (Nemotron 3 Super); nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16, config.json; "
      "NVIDIA-NeMo/Megatron-Bridge, recipes/nemotronh/h100/nemotron_3_super.py";
  const char* mamba2 =
      "Dao and Gu 2024 (Mamba-2), arXiv 2405.21060; state-spaces/mamba2-2.7b, config.json; "
      "NVIDIA/NeMo, ssm.py (BaseMambaConfig2_7B)";
  std::vector<GptModel> models = {
      Hybrid("nemotron-h-8b", "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", 4096, 32,
             21504, {.state = 128}, nemotron_h),
      Hybrid(
          "nemotron-h-47b",
          "M-M-M-M-M-M-M-M-M*-M-M-M-M-M-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-M-M---MM---M-M*-"
          "M-M-M-M-M-",
          8192, 64, 30720, {.state = 256}, nemotron_h),
      Hybrid(
          "nemotron-h-56b",
          "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-"
          "M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
          8192, 64, 32768, {.state = 256}, nemotron_h),
      Hybrid("nemotron-nano-9b-v2", "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
             4480, 40, 15680, {.head = 80, .heads = 128}, nano),
      Hybrid("nemotron-nano-12b-v2",
             "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-", 5120, 40, 20480,
             {.head = 80, .heads = 128}, nano),
      WithRoutedExperts(
          Hybrid("nemotron-3-nano-30b", "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
                 2688, 32, 1856, {.heads = 64}, nemotron_3_nano),
          {.count = 128, .per_token = 6, .hidden = 1856, .shared = 3712}, 0),
      WithRoutedExperts(
          Hybrid("nemotron-3-super-120b",
                 "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*"
                 "EMEMEMEME",
                 4096, 32, 2688, {}, nemotron_3_super),
          {.count = 512, .per_token = 22, .hidden = 2688, .shared = 5376, .latent = 1024}, 2),
      Hybrid("mamba2-2.7b", "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM",
             2560, 1, 0, {.groups = 1, .chunk = 256}, mamba2)};
  GptModel& mamba = models.back();
  mamba.groups = 0;
  mamba.head_size = 0;
  mamba.vocabulary = 50288;  // 50,277, padded to a multiple of 16
  mamba.tied = true;
  return models;
}

std::vector<GptModel> Presets() {
  // In print, the 13B has 5,140 columns, which 40 heads of 128 do not make, and the 1.3B has 24
  // heads of 128.
  const char* gpt3 = "Brown et al. 2020 (GPT-3), arXiv 2005.14165, Table 2.1";
  const char* gpt3_1b = "Brown et al. 2020, Table 2.1, with 16 heads: 24 of 128 are not its 2,048";
  const char* megatron = "Narayanan et al. 2021, arXiv 2104.04473, Table 1";
  const char* axonn = "AxoNN, arXiv 2305.13525, Table III; vocabulary assumed";
  const char* script = "axonn-ai/Megatron-AxoNN 885d2e75, examples/launch_per_comm_model.py";
  const char* atp =
      "ATP, arXiv 2301.08658, Table 2; 4 layers and no vocabulary to speak of, assumed";
  const char* korthikanti = "Korthikanti et al. 2022, arXiv 2205.05198, Table 3";
  const char* autoddl = "AutoDDL, arXiv 2301.06813, section 5; vocabulary assumed";
  const char* llama2 = "Touvron et al. 2023 (Llama 2), arXiv 2307.09288";
  const char* llama3 = "Grattafiori et al. 2024 (Llama 3), arXiv 2407.21783, Table 3";
  const char* mistral = "Jiang et al. 2023 (Mistral 7B), arXiv 2310.06825, Table 1";
  // Their MLP is a squared ReLU, which costs what a GELU does; biases, which they lack, are 0.01 %
  // of their parameters.
  const char* nemotron_15b = "Parmar et al. 2024 (Nemotron-4 15B), arXiv 2402.16819, Table 1";
  const char* nemotron_340b = "NVIDIA 2024 (Nemotron-4 340B), arXiv 2406.11704, Table 1";
  return {
      {"gpt-125m", 12, 768, 12, kGpt2, gpt3},
      {"gpt-350m", 24, 1024, 16, kGpt2, gpt3},
      {"gpt-1.3b", 24, 2048, 16, kGpt2, gpt3_1b},
      {"gpt-1.7b", 24, 2304, 24, kGpt2, megatron},
      {"gpt-2.7b", 32, 2560, 32, kGpt2, gpt3},
      {"gpt-3.6b", 30, 3072, 32, kGpt2, megatron},
      {"gpt-6.7b", 32, 4096, 32, kGpt2, gpt3},
      {"gpt-7.5b", 36, 4096, 32, kGpt2, megatron},
      {"gpt-13b", 40, 5120, 40, kGpt2, gpt3},
      {"gpt-18b", 40, 6144, 48, kGpt2, megatron},
      {"gpt-39b", 48, 8192, 64, kGpt2, megatron},
      {"gpt-76b", 60, 10240, 80, kGpt2, megatron},
      {"gpt-145b", 80, 12288, 96, kGpt2, megatron},
      {"gpt-175b", 96, 12288, 96, kGpt2, gpt3},
      {"gpt-310b", 96, 16384, 128, kGpt2, megatron},
      {"gpt-530b", 105, 20480, 128, kGpt2, megatron},
      {"gpt-1t", 128, 25600, 160, kGpt2, megatron},
      {"gpt-5b", 24, 4096, 32, kGpt2, axonn},
      {"gpt-10b", 32, 5120, 40, kGpt2, axonn},
      {"gpt-20b", 32, 7168, 56, kGpt2, axonn},
      {"gpt-40b", 38, 9216, 72, kGpt2, axonn},
      {"gpt-80b", 42, 12288, 96, kGpt2, axonn},
      {"gpt-50b", 48, 9216, 72, kGpt2, script},
      {"gpt-60b", 56, 9216, 72, kGpt2, script},
      {"gpt-100b", 53, 12288, 96, kGpt2, script},
      {"gpt-160b", 84, 12288, 96, kGpt2, script},
      {"atp-m1", 4, 2048, 16, 256, atp},
      {"atp-m2", 4, 4096, 32, 256, atp},
      {"atp-m3", 4, 8192, 64, 256, atp},
      {"atp-m4", 4, 12288, 96, 256, atp},
      {"gpt-22b", 48, 6144, 64, kGpt2, korthikanti},
      {"autoddl-wide", 20, 8192, 64, kGpt2, autoddl},
      {"autoddl-deep", 36, 4096, 32, kGpt2, autoddl},
      {"autoddl-small", 24, 1024, 16, kGpt2, autoddl},
      {"autoddl-large", 28, 4096, 32, kGpt2, autoddl},
      Llama("llama-2-7b", 32, 4096, 32, 32, 11008, 32000, llama2),
      Llama("llama-2-13b", 40, 5120, 40, 40, 13824, 32000, llama2),
      Llama("llama-2-70b", 80, 8192, 64, 8, 28672, 32000, llama2),
      Llama("llama-3-8b", 32, 4096, 32, 8, 14336, 128256, llama3),
      Llama("llama-3-70b", 80, 8192, 64, 8, 28672, 128256, llama3),
      Llama("llama-3-405b", 126, 16384, 128, 8, 53248, 128256, llama3),
      {"nemotron-4-15b", 32, 6144, 48, 256000, nemotron_15b, false, 8, 24576, /*tied=*/false},
      {"nemotron-4-340b", 96, 18432, 96, 256000, nemotron_340b, false, 8, 73728, /*tied=*/false},
      WithWindow(Llama("mistral-7b", 32, 4096, 32, 8, 14336, 32000, mistral), 4096),
  };
}

}  // namespace

const std::vector<GptModel>& KnownModels() {
  static const std::vector<GptModel> models = [] {
    std::vector<GptModel> sorted = Presets();
    for (GptModel& model : WithExpertsOnly()) sorted.push_back(std::move(model));
    for (GptModel& model : Hybrids()) sorted.push_back(std::move(model));
    for (GptModel& model : DeepSeeks()) sorted.push_back(std::move(model));
    std::stable_sort(sorted.begin(), sorted.end(), [](const GptModel& a, const GptModel& b) {
      return a.Parameters() < b.Parameters();
    });
    return sorted;
  }();
  return models;
}

}  // namespace rehearse
