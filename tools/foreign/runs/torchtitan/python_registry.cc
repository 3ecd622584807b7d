#include "tools/foreign/runs/torchtitan/python_registry.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "tools/foreign/runs/python_text.h"
#include "tools/foreign/runs/torchtitan/torchtitan_flavors.h"

namespace rehearse {
namespace {

constexpr size_t kLargestRegistry = size_t{4} << 20;
constexpr int kDeepestCalls = 16;

class RegistryReader {
 public:
  RegistryReader(std::string_view text, std::string name)
      : name_(std::move(name)),
        code_(WithoutPythonComments(text)),
        functions_(PythonFunctionsOf(code_)) {}

  const PythonFunction& Find(const std::string& function) const {
    std::vector<std::string> jobs;
    const PythonFunction* found = nullptr;
    for (const PythonFunction& one : functions_) {
      if (one.name == function) return one;
      if (one.name.starts_with("_") || BodyOf(one).find("Config") == std::string_view::npos)
        continue;
      jobs.push_back(one.name);
      found = &one;
    }
    if (function.empty() && jobs.size() == 1) return *found;
    if (jobs.empty()) throw Error({name_, 0, ""}, "no function here makes a job");
    throw Error({name_, 0, ""},
                function.empty()
                    ? fmt::format("found {} jobs, expected --set config=NAME; known are {}",
                                  jobs.size(), fmt::join(jobs, ", "))
                    : fmt::format("found no job \"{}\"{}", function, KnownNames(function, jobs)));
  }

  void Read(const PythonFunction& function, int depth = 0) {
    if (depth > kDeepestCalls)
      throw Error({name_, LineOf(function.begin), ""}, "functions begin with each other, too deep");
    const std::string_view body = BodyOf(function);
    for (const PythonFunction& other : functions_) {
      if (other.name != function.name &&
          FindPythonName(body, other.name + "()") != std::string::npos) {
        Read(other, depth + 1);
        break;
      }
    }
    ReadCalls(function);
    ReadAssignments(function);
  }

  void Set(const std::string& key, nlohmann::json value, int line) {
    keys_[key] = {std::move(value), line};
  }
  bool Has(const std::string& key) const { return keys_.contains(key); }

  // New jobs give tokens of a micro-batch where older ones give sequences.
  void CountSequences() {
    const auto sequence = keys_.find("training.max_context_length");
    if (sequence == keys_.end()) return;
    const Value tokens = keys_.contains("training.num_tokens_per_microbatch_per_dp_rank")
                             ? keys_["training.num_tokens_per_microbatch_per_dp_rank"]
                             : Value{16384, 0};
    const Value length = sequence->second;
    keys_["training.seq_len"] = length;
    if (!length.value.is_number_integer() || !tokens.value.is_number_integer()) return;
    const auto of_one = length.value.get<int64_t>();
    if (of_one > 0) {
      keys_["training.local_batch_size"] = {
          std::max<int64_t>(tokens.value.get<int64_t>() / of_one, 1), tokens.line};
      const auto step = keys_.find("training.num_tokens_per_train_step");
      if (step != keys_.end() && step->second.value.is_number_integer() &&
          step->second.value.get<int64_t>() > 0) {
        keys_["training.global_batch_size"] = {step->second.value.get<int64_t>() / of_one,
                                               step->second.line};
      }
    }
    for (const char* key :
         {"training.max_context_length", "training.num_tokens_per_microbatch_per_dp_rank",
          "training.num_tokens_per_train_step"})
      keys_.erase(key);
  }

  // One key in a line of its own, the line that it has in the file.
  std::string Json() const {
    std::vector<std::pair<int, std::string>> rows;
    for (const auto& [key, value] : keys_) {
      rows.emplace_back(
          value.line,
          fmt::format(
              "{}: {}",
              nlohmann::json(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
              value.value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text = "{";
    int line = 1;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0) text += ",";
      for (; line < rows[i].first; ++line) text += "\n";
      text += rows[i].second;
    }
    return text + "}";
  }

 private:
  struct Value {
    nlohmann::json value;
    int line = 0;
  };

  std::string_view BodyOf(const PythonFunction& function) const {
    return std::string_view(code_).substr(function.begin, function.end - function.begin);
  }
  int LineOf(size_t at) const {
    return 1 + static_cast<int>(
                   std::count(code_.begin(), code_.begin() + static_cast<ptrdiff_t>(at), '\n'));
  }

  // "8 * 2048", "\"float8\"", True, ["a", "b"]; what is something else stays a text.
  static nlohmann::json ValueOf(std::string_view text) {
    text = StrippedPython(text);
    if (text == "True") return true;
    if (text == "False") return false;
    if (text == "None") return nullptr;
    const bool is_quoted = text.size() > 1 && (text[0] == '"' || text[0] == '\'') &&
                           text.back() == text[0] && text.find(text[0], 1) == text.size() - 1;
    if (is_quoted) return std::string(text.substr(1, text.size() - 2));
    if (text.size() > 1 && text[0] == '[' && text.back() == ']') {
      nlohmann::json list = nlohmann::json::array();
      std::string_view rest = text.substr(1, text.size() - 2);
      while (!StrippedPython(rest).empty()) {
        const size_t comma = std::min(rest.find(','), rest.size());
        if (!StrippedPython(rest.substr(0, comma)).starts_with("["))
          list.push_back(ValueOf(rest.substr(0, comma)));
        rest = rest.substr(std::min(comma + 1, rest.size()));
      }
      return list;
    }
    int64_t product = 1;
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t star = std::min(rest.find('*'), rest.size());
      std::string factor(StrippedPython(rest.substr(0, star)));
      std::erase(factor, '_');
      int64_t number = 0;
      const auto [end, error] =
          std::from_chars(factor.data(), factor.data() + factor.size(), number);
      if (error != std::errc() || end != factor.data() + factor.size() ||
          __builtin_mul_overflow(product, number, &product))
        return std::string(text);
      rest = rest.substr(std::min(star + 1, rest.size()));
    }
    return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(product);
  }

  // name=value, at the outermost level of a call.
  void ReadKeywords(std::string_view call, size_t offset, const std::string& table) {
    for (size_t at = 0; at < call.size();) {
      size_t comma = at;
      while (comma < call.size() && call[comma] != ',') {
        const char c = call[comma];
        if (c == '(' || c == '[' || c == '{') {
          comma = EndOfPythonCall(call, comma + 1);
        } else if (c == '"' || c == '\'') {
          comma = std::min(call.find(c, comma + 1), call.size() - 1) + 1;
        } else {
          ++comma;
        }
      }
      const std::string_view argument = call.substr(at, comma - at);
      const size_t equals = argument.find('=');
      if (equals != std::string_view::npos) {
        std::string key = table + ".";
        key += StrippedPython(argument.substr(0, equals));
        SetKey(key, ValueOf(argument.substr(equals + 1)), offset + at + equals);
      }
      at = comma + 1;
    }
  }

  void SetKey(std::string key, nlohmann::json value, size_t at) {
    if (value.is_null()) return;
    if (key == "compile.enable_async_tensor_parallel")
      key = "parallelism.enable_async_tensor_parallel";
    Set(key, std::move(value), LineOf(at));
  }

  // What a job is made of, as far as it matters here: a call, and the table that its arguments are.
  void ReadCalls(const PythonFunction& function) {
    struct Part {
      std::string_view call;
      const char* table;
    };
    constexpr Part kParts[] = {{"TrainingConfig(", "training"},
                               {"ParallelismConfig(", "parallelism"},
                               {"CompileConfig(", "compile"}};
    const std::string_view body = BodyOf(function);
    for (const Part& part : kParts) {
      const size_t at = FindPythonName(body, part.call);
      if (at == std::string_view::npos) continue;
      const size_t begin = at + part.call.size();
      const size_t end = EndOfPythonCall(body, begin);
      // The whole table is new.
      std::erase_if(keys_, [&](const auto& key) {
        return key.first.starts_with(std::string(part.table) + ".");
      });
      ReadKeywords(body.substr(begin, end - begin - 1), function.begin + begin, part.table);
    }
    ReadModel(function);
    ReadKept(function);
  }

  void ReadModel(const PythonFunction& function) {
    constexpr std::string_view kCall = "model_registry(";
    const std::string_view body = BodyOf(function);
    const size_t at = FindPythonName(body, kCall);
    if (at == std::string_view::npos) return;
    const size_t begin = at + kCall.size();
    const std::string_view call = body.substr(begin, EndOfPythonCall(body, begin) - begin - 1);
    const size_t where = function.begin + begin;
    const std::string_view flavor = call.substr(0, call.find(','));
    if (flavor.find('=') == std::string_view::npos) SetKey("model.flavor", ValueOf(flavor), where);
    nlohmann::json converters = nlohmann::json::array();
    struct Converter {
      std::string_view part;
      const char* name;
    };
    constexpr Converter kConverters[] = {{"Float8LinearConverter", "float8"},
                                         {"MXFP8LinearConverter", "mx"},
                                         {"NVFP4LinearConverter", "nvfp4"},
                                         {"Float8GroupedExpertsConverter", "float8 of experts"},
                                         {"MXFP8GroupedExpertsConverter", "mx of experts"},
                                         {"LoRAConverter", "lora"}};
    for (const Converter& converter : kConverters) {
      if (call.find(converter.part) != std::string_view::npos) converters.push_back(converter.name);
    }
    std::erase_if(keys_, [](const auto& key) { return key.first == "model.converters"; });
    if (!converters.empty()) Set("model.converters", converters, LineOf(where));
    for (const char* argument : {"moe_comm_backend", "tp_gemm_backend", "num_mtp_layers"}) {
      const size_t found = FindPythonName(call, std::string(argument) + "=");
      if (found == std::string_view::npos) continue;
      const size_t value = found + std::string_view(argument).size() + 1;
      SetKey(fmt::format("model.{}", argument),
             ValueOf(call.substr(value, std::min(call.find(',', value), call.size()) - value)),
             where + found);
    }
  }

  // Which activations are kept.
  void ReadKept(const PythonFunction& function) {
    const std::string_view body = BodyOf(function);
    struct Kept {
      std::string_view call;
      const char* mode;
    };
    constexpr Kept kKept[] = {{"FullAC", "full"},
                              {"SelectiveAC", "selective"},
                              {"MemoryBudgetAC", "memory_budget"},
                              {"activation_checkpoint=None", "none"},
                              {"activation_checkpoint = None", "none"}};
    for (const Kept& kept : kKept) {
      size_t at = body.find(kept.call);
      if (at == std::string_view::npos) continue;
      at += function.begin;
      Set("activation_checkpoint.mode", kept.mode, LineOf(at));
      if (std::string_view(kept.mode) == "selective")
        Set("activation_checkpoint.selective_ac_option", "op", LineOf(at));
    }
  }

  // "config.training.seq_len = 4096".
  void ReadAssignments(const PythonFunction& function) {
    const std::string_view body = BodyOf(function);
    constexpr std::string_view kConfig = "config.";
    for (size_t at = FindPythonName(body, kConfig); at != std::string_view::npos;
         at = FindPythonName(body, kConfig, at + 1)) {
      const size_t begin = at + kConfig.size();
      size_t end = begin;
      while (end < body.size() && (IsPartOfPythonName(body[end]) || body[end] == '.')) ++end;
      const std::string key(body.substr(begin, end - begin));
      const size_t equals = body.find_first_not_of(' ', end);
      const bool is_assignment = equals != std::string_view::npos && body[equals] == '=' &&
                                 equals + 1 < body.size() && body[equals + 1] != '=';
      const bool is_known = key.starts_with("training.") || key.starts_with("parallelism.") ||
                            key.starts_with("compile.");
      if (!is_assignment || !is_known) continue;
      const size_t line_end = std::min(body.find('\n', equals), body.size());
      SetKey(key, ValueOf(body.substr(equals + 1, line_end - equals - 1)), function.begin + at);
    }
  }

  std::string name_;
  std::string code_;
  std::vector<PythonFunction> functions_;
  std::map<std::string, Value> keys_;
};

// The longest of our models' names that the function's begins with.
std::string ModuleOf(const std::string& function) {
  std::string longest;
  for (const TorchtitanFlavor& known : TorchtitanFlavors()) {
    const std::string model = known.model;
    if (function.starts_with(model + "_") && model.size() > longest.size()) longest = model;
  }
  return longest;
}

}  // namespace

bool IsPythonRegistry(std::string_view text) {
  const bool has_function =
      text.starts_with("def ") || text.find("\ndef ") != std::string_view::npos;
  return has_function && text.find("model_registry(") != std::string_view::npos;
}

JsonDocument ReadPythonRegistry(std::string_view text, const std::string& name,
                                const std::string& function, const std::string& module) {
  if (text.size() > kLargestRegistry)
    throw Error({name, 0, ""}, "found more than 4 MiB, expected a registry of at most that size");
  RegistryReader reader(text, name);
  const PythonFunction& job = reader.Find(function);
  reader.Read(job);
  reader.CountSequences();
  const std::string model = module.empty() ? ModuleOf(job.name) : module;
  if (model.empty()) {
    throw Error(
        {name, 0, ""},
        fmt::format("{} does not say which model it is of; expected --set module=NAME, such "
                    "as llama3",
                    job.name));
  }
  reader.Set("model.name", model, 1);
  return JsonDocument::FromText(reader.Json(), name);
}

}  // namespace rehearse
