// Figures from pytorch/torchtitan (2024 to 2026): the tables of flavors in each __init__.py of
// models/llama3, llama4, deepseek_v3 and qwen3; columns of Llama's MLP as its rule rounds up 8/3 of
// the hidden size (llama3: 1.3 times that for 8B and 70B, 1.2 times for 405B). Presets have their
// own sources (workloads/networks/model_presets.cc).
#include "tools/foreign/runs/torchtitan/torchtitan_flavors.h"

namespace rehearse {
namespace {

constexpr const char* kQwenNorms = "norms of queries and keys only take time";
constexpr const char* kChunks = "chunks of attention are played as windows";

constexpr TorchtitanFlavor kFlavors[] = {
    {"llama2", "7B", R"({"preset": "llama-2-7b"})", ""},
    {"llama2", "13B", R"({"preset": "llama-2-13b"})", ""},
    {"llama2", "70B", R"({"preset": "llama-2-70b"})", ""},
    {"llama3", "debugmodel",
     R"({"style": "llama", "layers": 6, "hidden": 256, "heads": 16, "feed_forward": 768,
         "vocabulary": 2048, "tied": false})",
     ""},
    {"llama3", "8B", R"({"preset": "llama-3-8b"})", ""},
    {"llama3", "70B", R"({"preset": "llama-3-70b"})", ""},
    {"llama3", "405B",
     R"({"style": "llama", "layers": 126, "hidden": 16384, "heads": 128, "groups": 8,
         "feed_forward": 53248, "vocabulary": 128256, "tied": false})",
     ""},
    {"llama4", "17bx16e", R"({"preset": "llama-4-scout"})", kChunks},
    {"llama4", "17bx128e", R"({"preset": "llama-4-maverick"})", kChunks},
    {"deepseek_v3", "debugmodel",
     R"({"style": "llama", "layers": 6, "hidden": 256, "heads": 16, "feed_forward": 1024,
         "vocabulary": 2048, "tied": false,
         "latent": {"query_rank": 0, "kv_rank": 512, "rope_head": 64, "head": 128,
                    "value_head": 128},
         "experts": {"count": 8, "per_token": 3, "hidden": 256, "shared": 512, "first_dense": 1}})",
     ""},
    {"deepseek_v3", "16B", R"({"preset": "deepseek-v2-lite"})", ""},
    {"deepseek_v3", "236B", R"({"preset": "deepseek-v2"})", ""},
    {"deepseek_v3", "671B", R"({"preset": "deepseek-v3", "predict_ahead": 0})", ""},
    {"gpt_oss", "20b", R"({"preset": "gpt-oss-20b"})", ""},
    {"gpt_oss", "120b", R"({"preset": "gpt-oss-120b"})", ""},
    {"qwen3", "debugmodel",
     R"({"style": "llama", "head_norms": true,
         "layers": 8, "hidden": 256, "heads": 16, "groups": 8, "head_size": 128,
         "feed_forward": 3072, "vocabulary": 2048, "tied": true})",
     kQwenNorms},
    {"qwen3", "debugmodel_moe",
     R"({"style": "llama", "head_norms": true,
         "layers": 8, "hidden": 256, "heads": 16, "groups": 8, "head_size": 128,
         "vocabulary": 2048, "tied": false,
         "experts": {"count": 64, "per_token": 8, "hidden": 768}})",
     kQwenNorms},
    {"qwen3", "0.6B",
     R"({"style": "llama", "head_norms": true,
         "layers": 28, "hidden": 1024, "heads": 16, "groups": 8,
         "head_size": 128, "feed_forward": 3072, "vocabulary": 151936, "tied": true})",
     kQwenNorms},
    {"qwen3", "1.7B",
     R"({"style": "llama", "head_norms": true,
         "layers": 28, "hidden": 2048, "heads": 16, "groups": 8,
         "feed_forward": 6144, "vocabulary": 151936, "tied": true})",
     kQwenNorms},
    {"qwen3", "4B",
     R"({"style": "llama", "head_norms": true,
         "layers": 36, "hidden": 2560, "heads": 32, "groups": 8,
         "head_size": 128, "feed_forward": 9728, "vocabulary": 151936, "tied": true})",
     kQwenNorms},
    {"qwen3", "8B",
     R"({"style": "llama", "head_norms": true,
         "layers": 36, "hidden": 4096, "heads": 32, "groups": 8,
         "feed_forward": 12288, "vocabulary": 151936, "tied": false})",
     kQwenNorms},
    {"qwen3", "14B",
     R"({"style": "llama", "head_norms": true,
         "layers": 40, "hidden": 5120, "heads": 40, "groups": 8,
         "feed_forward": 17408, "vocabulary": 151936, "tied": false})",
     kQwenNorms},
    {"qwen3", "32B",
     R"({"style": "llama", "head_norms": true,
         "layers": 64, "hidden": 5120, "heads": 64, "groups": 8,
         "head_size": 128, "feed_forward": 25600, "vocabulary": 151936, "tied": false})",
     kQwenNorms},
    {"qwen3", "30B-A3B", R"({"preset": "qwen3-30b-a3b"})", kQwenNorms},
    {"qwen3", "235B-A22B", R"({"preset": "qwen3-235b-a22b"})", kQwenNorms}};

}  // namespace

const std::vector<TorchtitanFlavor>& TorchtitanFlavors() {
  static const std::vector<TorchtitanFlavor> flavors(std::begin(kFlavors), std::end(kFlavors));
  return flavors;
}

}  // namespace rehearse
