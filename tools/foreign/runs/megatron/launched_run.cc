#include "tools/foreign/runs/megatron/launched_run.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/megatron/recipe_arguments.h"
#include "tools/foreign/runs/megatron/shell_script.h"

namespace rehearse {
namespace {

constexpr std::string_view kBegin = "- arguments -";
constexpr std::string_view kEnd = "- end of arguments -";
constexpr uint64_t kMostRanks = uint64_t{1} << 24;

// ---- a log --------------------------------------------------------------------------------------

struct Line {
  std::string_view text;
  int number = 0;
};

// From a place on; nothing at the end.
std::optional<Line> NextLine(std::string_view text, size_t* at, int* number) {
  if (*at >= text.size()) return std::nullopt;
  const size_t end = std::min(text.find('\n', *at), text.size());
  const Line line{text.substr(*at, end - *at), ++*number};
  *at = end + 1;
  return line;
}

// The elements of Python's list of texts, "['core_attn', 'mlp']".
std::vector<std::string> ElementsOf(const std::string& list) {
  std::vector<std::string> elements;
  size_t at = 0;
  while ((at = list.find('\'', at)) != std::string::npos) {
    const size_t end = list.find('\'', at + 1);
    if (end == std::string::npos) break;
    elements.push_back(list.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return elements;
}

// From "[rank0]:  num_layers .... 24", which need not begin with a rank.
std::optional<WrittenArgument> LoggedArgument(const Line& line) {
  const size_t dots = line.text.find(" ..");
  if (dots == std::string_view::npos) return std::nullopt;
  const size_t begin = line.text.find_last_of(" \t:", dots - (dots > 0 ? 1 : 0));
  WrittenArgument argument;
  argument.name = line.text.substr(begin == std::string_view::npos || begin > dots ? 0 : begin + 1);
  argument.name.resize(std::min(argument.name.size(), argument.name.find(' ')));
  std::replace(argument.name.begin(), argument.name.end(), '_', '-');
  size_t value = line.text.find_first_not_of('.', dots + 1);
  value = value == std::string_view::npos ? value : line.text.find_first_not_of(" \t", value);
  std::string text;
  if (value != std::string_view::npos) text = line.text.substr(value);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.pop_back();
  if (text.starts_with("AttnBackend.")) text.erase(0, text.find('.') + 1);
  if (text.starts_with("['")) {
    for (std::string& element : ElementsOf(text)) argument.values.push_back(std::move(element));
  } else if (text.starts_with("[") && text.ends_with("]") && text.size() > 2 &&
             text.find(',') == std::string::npos) {
    argument.values.push_back(text.substr(1, text.size() - 2));  // a list of one number
  } else if (!text.empty()) {
    argument.values.push_back(std::move(text));
  }
  argument.line = line.number;
  return argument;
}

LaunchedRun ReadLog(std::string_view text, const std::string& name) {
  LaunchedRun run;
  run.is_log = true;
  size_t at = 0;
  int number = 0;
  int begin = 0;
  while (const std::optional<Line> line = NextLine(text, &at, &number)) {
    if (begin == 0) {
      if (line->text.find(kBegin) != std::string_view::npos) begin = line->number;
      continue;
    }
    if (line->text.find(kEnd) != std::string_view::npos) return run;
    std::optional<WrittenArgument> argument = LoggedArgument(*line);
    if (!argument || argument->values.empty()) continue;
    if (argument->values.front() == "None") continue;
    if (argument->name == "world-size") {
      uint64_t ranks = 0;
      const std::string& value = argument->values.front();
      std::from_chars(value.data(), value.data() + value.size(), ranks);
      if (ranks > 0 && ranks <= kMostRanks)
        run.ranks = WrittenCount{ranks, {"world_size", argument->line}};
      continue;
    }
    run.arguments.push_back(std::move(*argument));
  }
  throw Error({name, begin, ""},
              "the arguments that begin here have no end: the log is cut off; expected a line "
              "\"end of arguments\"");
}

// ---- a script -----------------------------------------------------------------------------------

bool IsArgument(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") && word[2] != '=';
}

// "--nnodes" and "nnodes" are the same: '-' for '_', no leading dashes.
std::string NameOf(std::string_view word) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool HasLayers(const std::vector<ShellWord>& words) {
  return std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
    const std::string name = NameOf(word.text.substr(0, word.text.find('=')));
    return IsArgument(word.text) &&
           (name == "num-layers" || name == "encoder-num-layers" ||
            name == "hybrid-layer-pattern" || name == "hybrid-override-pattern");
  });
}

// Whether it may have arguments that say what the layers are.
bool MaySayLayers(const std::string& text) {
  return text.find("--num-layers") != std::string::npos ||
         text.find("--hybrid-layer-pattern") != std::string::npos;
}

constexpr int kDeepestShells = 4;

bool IsShell(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return name == "bash" || name == "sh" || name == "zsh";
}

// Variables for a shell inside of a script; their lines are marked as the script's by a minus.
ShellStart InnerStart(const ShellScript& script) {
  ShellStart start;
  for (const auto& [variable, value] : script.variables)
    start.variables[variable] = {value.text, -std::abs(value.line)};
  return start;
}

// Also the words of words that are command lines: of sh -c "...", eval, and variables in quotes.
// Of several commands in a line, only that with --num-layers, where there is one.
std::vector<ShellWord> WithInnerWords(const std::vector<ShellWord>& words, const std::string& name,
                                      const ShellScript& script, int depth = 0) {
  std::vector<ShellWord> all;
  for (size_t i = 0; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    const bool is_blank = word.text.find_first_of(" \t\n") == std::string::npos;
    const bool is_of_shell =
        i > 0 && !is_blank &&
        ((words[i - 1].text.starts_with("-") && words[i - 1].text.ends_with("c") &&
          !IsArgument(words[i - 1].text) && i > 1 && IsShell(words[i - 2].text)) ||
         words[i - 1].text == "eval");
    const bool is_line =
        is_of_shell || (word.text.find(" --") != std::string::npos && !IsLeftOpen(word.text));
    if (!is_line || depth == kDeepestShells) {
      all.push_back(word);
      continue;
    }
    const ShellScript inner = ReadShellScript(word.text, name, InnerStart(script));
    std::vector<ShellWord> of_line;
    for (const ShellCommand& command : inner.commands) {
      std::vector<ShellWord> of_command = WithInnerWords(command.words, name, inner, depth + 1);
      for (ShellWord& one : of_command)
        one.line = one.line < 0 ? -one.line : word.line + one.line - 1;
      if (HasLayers(of_command)) {
        of_line = std::move(of_command);
        break;
      }
      of_line.insert(of_line.end(), of_command.begin(), of_command.end());
    }
    all.insert(all.end(), of_line.begin(), of_line.end());
  }
  return all;
}

std::vector<WrittenArgument> ArgumentsOf(const std::vector<ShellWord>& words,
                                         std::vector<std::string>* remarks) {
  std::vector<WrittenArgument> arguments;
  for (const ShellWord& word : words) {
    if (IsArgument(word.text)) {
      const size_t equals = word.text.find('=');
      arguments.push_back({NameOf(word.text.substr(0, equals)), {}, word.line});
      if (equals != std::string::npos)
        arguments.back().values.push_back(word.text.substr(equals + 1));
    } else if (arguments.empty()) {
      remarks->push_back(fmt::format("line {}: not understood: {}", word.line, word.text));
    } else {
      arguments.back().values.push_back(word.text);
    }
  }
  return arguments;
}

std::optional<uint64_t> CountIn(std::string_view text) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return count > 0 && count <= kMostRanks ? std::optional<uint64_t>(count) : std::nullopt;
}

// How a launcher says how many ranks there are.
struct LaunchCounts {
  std::optional<WrittenCount> nodes;
  std::optional<WrittenCount> of_node;
  std::optional<WrittenCount> all;
  std::optional<WrittenCount> devices;  // of a node, as Slurm's --gres says
};

void TakeCount(std::string_view name, std::string_view value, int line, LaunchCounts* counts) {
  constexpr std::string_view kNodes[] = {"--nnodes", "--nodes", "-N", "--num_nodes", "--num-nodes"};
  constexpr std::string_view kOfNode[] = {"--nproc_per_node",  "--nproc-per-node",
                                          "--num_gpus",        "--num-gpus",
                                          "--ntasks-per-node", "--gpus-per-node"};
  constexpr std::string_view kAll[] = {"-np", "--ntasks", "-n"};
  const auto is_one_of = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  // "--gpus-per-node=h100:8".
  const bool is_resource = name == "--gres" && value.find("gpu") != std::string_view::npos;
  if (name == "--gpus-per-node" || is_resource) value.remove_prefix(value.rfind(':') + 1);
  const std::optional<uint64_t> count = CountIn(value);
  if (!count) return;
  const WrittenCount written{*count, {std::string(name), line}};
  if (is_one_of(kNodes)) counts->nodes = written;
  if (is_one_of(kOfNode)) counts->of_node = written;
  if (is_one_of(kAll)) counts->all = written;
  if (is_resource) counts->devices = written;
}

LaunchCounts CountsOfWords(const std::vector<ShellWord>& words) {
  LaunchCounts counts;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i].text;
    const size_t equals = word.find('=');
    const bool is_joined = word.size() > 2 && (word.starts_with("-N") || word.starts_with("-n")) &&
                           CountIn(word.substr(2)).has_value();
    if (is_joined) {
      TakeCount(word.substr(0, 2), word.substr(2), words[i].line, &counts);
    } else if (equals != std::string_view::npos) {
      TakeCount(word.substr(0, equals), word.substr(equals + 1), words[i].line, &counts);
    } else if (i + 1 < words.size()) {
      TakeCount(word, words[i + 1].text, words[i].line, &counts);
    }
  }
  return counts;
}

std::optional<WrittenCount> CountOfVariable(const ShellScript& script,
                                            std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = script.variables.find(name);
    if (found == script.variables.end()) continue;
    if (const std::optional<uint64_t> count = CountIn(found->second.text))
      return WrittenCount{*count, {name, found->second.line}};
  }
  return std::nullopt;
}

// The launcher's words come before those of the batch system, and these before variables.
void FindRanks(const ShellScript& script, const std::vector<ShellWord>& launcher,
               LaunchedRun* run) {
  const LaunchCounts batch = CountsOfWords(script.batch_options);
  LaunchCounts counts = CountsOfWords(launcher);
  // A launcher of PyTorch's starts a rank for each device, however many tasks Slurm starts.
  const bool spawns = std::any_of(launcher.begin(), launcher.end(), [](const ShellWord& word) {
    return word.text.find("torchrun") != std::string::npos ||
           word.text.find("torch.distributed") != std::string::npos ||
           word.text.ends_with("deepspeed");
  });
  if (!counts.nodes) counts.nodes = batch.nodes;
  const bool counts_tasks = !counts.of_node || counts.of_node->from.name == "--ntasks-per-node";
  if (counts_tasks && spawns) {
    const std::optional<WrittenCount> of_variable =
        CountOfVariable(script, {"GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS_PER_NODE"});
    const std::optional<WrittenCount>& devices = counts.devices ? counts.devices : batch.devices;
    counts.of_node = devices ? devices : of_variable ? of_variable : counts.of_node;
    counts.all = std::nullopt;
  }
  if (!counts.of_node) counts.of_node = batch.of_node;
  if (!counts.nodes) counts.nodes = CountOfVariable(script, {"NNODES", "NUM_NODES", "N_NODES"});
  if (!counts.of_node) {
    counts.of_node =
        CountOfVariable(script, {"GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS_PER_NODE"});
  }
  run->of_node = counts.of_node;
  run->ranks = counts.all ? counts.all : CountOfVariable(script, {"WORLD_SIZE", "NUM_GPUS"});
  if (counts.of_node && (counts.nodes || !run->ranks)) {
    const uint64_t nodes = counts.nodes ? counts.nodes->value : 1;
    run->ranks = WrittenCount{std::min(nodes * counts.of_node->value, kMostRanks),
                              counts.nodes ? counts.nodes->from : counts.of_node->from};
    run->ranks->from.name =
        counts.nodes ? fmt::format("{} x {}", counts.nodes->from.name, counts.of_node->from.name)
                     : counts.of_node->from.name;
  }
  if (!run->ranks) run->ranks = batch.all;
}

// Whether the text is a list of arguments and not a script.
bool IsList(const ShellScript& script) {
  return !script.commands.empty() && IsArgument(script.commands.front().words.front().text);
}

// ---- what is no training of a decoder -----------------------------------------------------------

struct OtherProgram {
  std::string_view part;  // of the name of a Python file
  const char* why;
};
constexpr const char* kNoTraining = "it does not train";
constexpr const char* kNoDecoder = "what it trains is no decoder";
constexpr OtherProgram kOtherPrograms[] = {
    {"generate", kNoTraining},
    {"text_gen", kNoTraining},
    {"inference", kNoTraining},
    {"server", kNoTraining},
    {"preprocess", kNoTraining},
    {"convert", kNoTraining},
    {"evaluate", kNoTraining},
    {"merge_", kNoTraining},
    {"quantize", kNoTraining},
    {"ptq", kNoTraining},
    {"beam_search", kNoTraining},
    {"pretrain_bert", kNoDecoder},
    {"pretrain_t5", kNoDecoder},
    {"pretrain_ict", kNoDecoder},
    {"pretrain_realm", kNoDecoder},
    {"pretrain_retro", kNoDecoder},
    {"pretrain_vision", kNoDecoder},
    {"train_rl", "steps of reinforcement learning are not supported"}};

void RefuseOtherProgram(const ShellWord& program, const std::string& name) {
  const std::string file = program.text.substr(program.text.rfind('/') + 1);
  if (program.text.find("tasks/") != std::string::npos) {
    throw Error({name, program.line, ""},
                fmt::format("{}: it evaluates or tunes for a task; expected a run that pretrains a "
                            "decoder, such as pretrain_gpt.py",
                            program.text));
  }
  for (const OtherProgram& other : kOtherPrograms) {
    if (file.find(other.part) != std::string::npos)
      throw Error({name, program.line, ""},
                  fmt::format("{}: {}; expected a run that pretrains a decoder, such as "
                              "pretrain_gpt.py",
                              file, other.why));
  }
}

// What only runs that do not train a decoder are given.
void RefuseOtherRuns(const std::vector<WrittenArgument>& arguments, const std::string& name,
                     bool is_log, bool is_gpt = false) {
  struct OtherArgument {
    std::string_view argument;
    const char* why;
  };
  constexpr OtherArgument kOthers[] = {
      {"num-tokens-to-generate", "this run generates text, it does not train"},
      {"skip-train", "this run does not train"},
      {"perform-rl-step", "steps of reinforcement learning are not supported"},
      {"encoder-num-layers", "there is an encoder, which is not supported"},
      {"decoder-num-layers", "there is an encoder, which is not supported"},
      {"bert-no-binary-head", "there is an encoder, which is not supported"},
      {"bert-load", "there is an encoder, which is not supported"},
      {"img-h", "what images pass is not supported"},
      {"model-provider", "what images pass before the decoder is not supported"},
      {"language-model-type", "what images pass before the decoder is not supported"}};
  // A log has all of them, with their defaults.
  if (is_log) return;
  const auto is_given = [&](std::string_view wanted) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const WrittenArgument& one) {
      return one.name == wanted && !(one.values.size() == 1 && one.values.front() == "False");
    });
  };
  for (const WrittenArgument& argument : arguments) {
    for (const OtherArgument& other : kOthers) {
      // Megatron-LM once had the decoder's layers under both names.
      if (other.argument == "encoder-num-layers" && !is_given("decoder-num-layers")) continue;
      if (argument.name == other.argument && is_given(other.argument))
        throw Error({name, argument.line, ""}, fmt::format("--{}: {}", argument.name, other.why));
    }
  }
  for (const WrittenArgument& argument : arguments) {
    const bool has_pieces =
        !argument.values.empty() && argument.values.front().starts_with("BertWordPiece");
    if (argument.name == "tokenizer-type" && has_pieces && !is_gpt)
      throw Error({name, argument.line, ""},
                  fmt::format("--tokenizer-type: {} is BERT's, and nothing says pretrain_gpt.py: "
                              "there is an encoder, which is not supported",
                              argument.values.front()));
  }
  // pretrain_gpt.py takes GPT-2's tokenizer unless it is told another, and that has merges.
  if (is_given("merge-file") || is_given("tokenizer-type") || is_given("tokenizer-model")) return;
  for (const WrittenArgument& argument : arguments) {
    // Word pieces are lines of a text; forks of Megatron-LM take SentencePiece models by this name.
    const bool is_text = !argument.values.empty() && argument.values.front().ends_with(".txt");
    if (argument.name == "vocab-file" && is_text)
      throw Error({name, argument.line, ""},
                  "--vocab-file: without --merge-file it is BERT's, and there is an encoder, which "
                  "is not supported");
  }
}

// ---- what is given beside -----------------------------------------------------------------------

bool IsForPrograms(std::string_view variable) {
  constexpr std::string_view kBegins[] = {"NCCL_",   "NVTE_",       "CUDA_DEVICE_MAX_CONNECTIONS",
                                          "CUBLAS_", "TORCH_NCCL_", "UB_"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return variable.starts_with(begin); });
}

ShellStart StartOf(const RunSettings& settings, const ShellFiles& files) {
  ShellStart start;
  start.files = files;
  start.is_fixed = true;
  for (const RunSetting& setting : settings) start.variables[setting.name] = {setting.value, 0};
  return start;
}

void AddSettings(const RunSettings& settings, LaunchedRun* run) {
  for (const RunSetting& setting : settings) {
    const bool is_variable = std::any_of(setting.name.begin(), setting.name.end(),
                                         [](char c) { return c >= 'A' && c <= 'Z'; }) ||
                             (setting.name[0] >= '0' && setting.name[0] <= '9');
    if (is_variable) {
      if (IsForPrograms(setting.name)) run->environment.push_back({setting.name, setting.value, 0});
      continue;
    }
    std::vector<std::string> values;
    if (setting.value != "true" && setting.value != "True") {
      const ShellScript words = ReadShellScript(setting.value, "--set");
      for (const ShellCommand& command : words.commands) {
        for (const ShellWord& word : command.words) values.push_back(word.text);
      }
    }
    run->arguments.push_back({NameOf(setting.name), std::move(values), 0});
  }
}

void AddEnvironment(const ShellScript& script, LaunchedRun* run) {
  for (const auto& [variable, value] : script.variables) {
    if (IsForPrograms(variable)) run->environment.push_back({variable, value.text, value.line});
  }
}

struct Launch {
  std::vector<ShellWord> words;
  bool is_conditional = false;
};

// The command with --num-layers in a here-document, which another shell or Slurm is given.
std::vector<ShellWord> WordsOfDocuments(const ShellScript& script, const std::string& name) {
  for (const ShellWord& document : script.documents) {
    if (!MaySayLayers(document.text) && document.text.find('$') == std::string::npos) continue;
    const ShellScript inner = ReadShellScript(document.text, name, InnerStart(script));
    for (const ShellCommand& command : inner.commands) {
      std::vector<ShellWord> words = WithInnerWords(command.words, name, inner);
      if (!HasLayers(words)) continue;
      for (ShellWord& word : words)
        word.line = word.line < 0 ? -word.line : document.line + word.line - 1;
      return words;
    }
  }
  return {};
}

// Some scripts only set variables, for others that start the run.
std::vector<ShellWord> WordsOfVariables(const ShellScript& script, const std::string& name,
                                        std::vector<std::string>* remarks) {
  for (const auto& [variable, value] : script.variables) {
    if (!MaySayLayers(value.text)) continue;
    const ShellScript inner = ReadShellScript(value.text, name, InnerStart(script));
    std::vector<ShellWord> words;
    for (const ShellCommand& command : inner.commands)
      words.insert(words.end(), command.words.begin(), command.words.end());
    if (!HasLayers(words)) continue;
    for (ShellWord& word : words) word.line = std::abs(value.line) + std::abs(word.line) - 1;
    remarks->push_back(fmt::format("nothing is started: the arguments are those in {}", variable));
    return words;
  }
  return {};
}

Launch FindLaunch(const ShellScript& script, const std::string& name,
                  std::vector<std::string>* remarks) {
  std::vector<Launch> found;
  const auto only_prints = [](const ShellCommand& command) {
    constexpr std::string_view kPrinters[] = {"echo", "printf", "cat", "tee", "logger", "print"};
    return std::find(std::begin(kPrinters), std::end(kPrinters), command.words.front().text) !=
           std::end(kPrinters);
  };
  for (const ShellCommand& command : script.commands) {
    if (only_prints(command)) continue;
    std::vector<ShellWord> words = WithInnerWords(command.words, name, script);
    if (HasLayers(words)) found.push_back({std::move(words), command.is_conditional});
  }
  if (found.empty()) {
    std::vector<ShellWord> words = WordsOfDocuments(script, name);
    if (words.empty()) words = WordsOfVariables(script, name, remarks);
    if (!words.empty()) found.push_back({std::move(words), false});
  }
  if (found.empty())
    throw Error({name, 0, ""},
                "no command with --num-layers found; expected a script that starts Megatron-LM, a "
                "list of its arguments, or its log");
  // What is certain to run comes before what may run.
  auto chosen = std::find_if(found.begin(), found.end(),
                             [](const Launch& launch) { return !launch.is_conditional; });
  if (chosen == found.end()) chosen = found.begin();
  if (chosen->is_conditional) {
    remarks->push_back(
        fmt::format("line {}: the command stands in a loop or under an unknown condition",
                    chosen->words.front().line));
  }
  for (auto other = found.begin(); other != found.end(); ++other) {
    if (other != chosen)
      remarks->push_back(
          fmt::format("line {}: another command with --num-layers, which is left out",
                      other->words.front().line));
  }
  return std::move(*chosen);
}

// Whether the word is the Python file that is run, and not the launcher's own.
bool IsProgram(const ShellWord& word) {
  const std::string_view text = word.text;
  return text.ends_with(".py") && !text.ends_with("distributed/run.py") &&
         !text.ends_with("distributed/launch.py");
}

// A list of arguments was never read by a shell: |, ( and the like are parts of its words.
std::string AsShellReadsIt(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_list = first != std::string_view::npos && IsArgument(text.substr(first));
  if (!is_list || text.find("$(") != std::string_view::npos) return std::string(text);
  std::string escaped;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '\\' && i + 1 < text.size()) {
      escaped += c;
      escaped += text[++i];
      continue;
    } else if (std::string_view("|&;()<>").find(c) != std::string_view::npos) {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

LaunchedRun ReadScript(std::string_view text, const std::string& name, const RunSettings& settings,
                       const ShellFiles& files) {
  const ShellScript script = ReadShellScript(AsShellReadsIt(text), name, StartOf(settings, files));
  LaunchedRun run;
  for (const ShellWord& file : script.read_in)
    run.remarks.push_back(fmt::format("line {}: reads {} in its place", file.line, file.text));
  AddEnvironment(script, &run);
  if (IsList(script)) {
    std::vector<ShellWord> words;
    for (const ShellCommand& command : script.commands)
      words.insert(words.end(), command.words.begin(), command.words.end());
    run.arguments = ArgumentsOf(words, &run.remarks);
    FindRanks(script, {}, &run);
    RefuseOtherRuns(run.arguments, name, /*is_log=*/false);
    return run;
  }
  const Launch launch = FindLaunch(script, name, &run.remarks);
  const auto program = std::find_if(launch.words.begin(), launch.words.end(),
                                    [](const ShellWord& word) { return IsProgram(word); });
  const bool has_program = program != launch.words.end();
  if (has_program) RefuseOtherProgram(*program, name);
  for (size_t i = 1; !has_program && i < launch.words.size(); ++i) {
    const std::string& module = launch.words[i].text;
    if (launch.words[i - 1].text == "-m" && !module.starts_with("torch."))
      RefuseOtherProgram(launch.words[i], name);
  }
  const std::vector<ShellWord> launcher(launch.words.begin(),
                                        has_program ? program : launch.words.begin());
  auto first = has_program ? std::next(program) : launch.words.begin();
  if (!has_program) {
    first = std::find_if(first, launch.words.end(),
                         [](const ShellWord& word) { return IsArgument(word.text); });
  }
  run.arguments = ArgumentsOf({first, launch.words.end()}, &run.remarks);
  const bool is_gpt = has_program && program->text.find("gpt") != std::string::npos;
  RefuseOtherRuns(run.arguments, name, /*is_log=*/false, is_gpt);
  FindRanks(script, launcher, &run);
  if (!script.left_open.empty()) {
    run.remarks.push_back(
        fmt::format("left out, as it is set in loops or under unknown conditions: {}",
                    fmt::join(script.left_open, ", ")));
  }
  return run;
}

// ---- Megatron-LM's own tests --------------------------------------------------------------------

// Whether a line begins with this key of theirs.
bool IsTestConfig(std::string_view text) {
  constexpr std::string_view kKey = "MODEL_ARGS:";
  for (size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return true;
  }
  return false;
}

std::string ScalarText(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.dump();
}

// "[a b]" are two values there, and so is a list.
WrittenArgument TestArgument(const std::string& key, const JsonReader& value) {
  WrittenArgument argument{NameOf(key), {}, value.place().line};
  const nlohmann::json& json = value.value();
  if (json.is_array()) {
    for (const nlohmann::json& element : json) argument.values.push_back(ScalarText(element));
  } else if (json.is_string() && json.get_ref<const std::string&>().starts_with("[") &&
             json.get_ref<const std::string&>().find_first_of("[*,", 1) == std::string::npos) {
    std::string text = json.get<std::string>();
    std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      if (end > at) argument.values.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  } else if (json != true) {
    argument.values.push_back(ScalarText(json));
  }
  return argument;
}

// Of an argument that is given twice, the last counts, as where these tests are run; YAML has keys
// once. The others become empty lines.
std::string WithLastOfEach(std::string_view text) {
  struct Row {
    std::string key;  // "" for lines that are no argument
    std::string_view line;
  };
  std::vector<Row> rows;
  bool is_inside = false;
  size_t at = 0;
  int number = 0;
  while (const std::optional<Line> line = NextLine(text, &at, &number)) {
    const size_t begin = line->text.find_first_not_of(' ');
    const bool is_blank = begin == std::string_view::npos;
    const bool is_argument = !is_blank && begin > 0 && line->text.substr(begin).starts_with("--");
    if (!is_blank && begin == 0) is_inside = line->text.starts_with("MODEL_ARGS:");
    const size_t colon = is_argument ? line->text.find(':') : std::string_view::npos;
    const bool has_key = is_inside && colon != std::string_view::npos;
    rows.push_back(
        {has_key ? std::string(line->text.substr(begin, colon - begin)) : "", line->text});
  }
  std::set<std::string, std::less<>> later;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (!row->key.empty() && !later.insert(row->key).second) row->line = {};
  }
  std::string result;
  for (const Row& row : rows) result += std::string(row.line) + "\n";
  return result;
}

LaunchedRun ReadTestConfig(std::string_view text, const std::string& name) {
  const JsonDocument document = ReadYaml(WithLastOfEach(text), name);
  const JsonReader root = document.Root();
  LaunchedRun run;
  run.is_test = true;
  const JsonReader arguments = root.At("MODEL_ARGS");
  if (arguments.IsObject() && arguments.Has("<<") && arguments.At("<<").IsObject()) {
    for (const auto& [key, value] : arguments.At("<<").Members())
      if (key.starts_with("-") && !value.value().is_null())
        run.arguments.push_back(TestArgument(key, value));
  }
  if (root.Has("MODE") && root.At("MODE").value() != "pretraining")
    root.At("MODE").Fail("this test does not pretrain a model; expected one that does");
  if (!arguments.IsObject()) arguments.Expected("arguments, such as --num-layers: 24");
  for (const auto& [key, value] : arguments.Members()) {
    if (key == "<<") continue;
    if (!key.starts_with("-"))
      value.Fail("no argument of Megatron-LM; expected names that begin with --");
    if (!value.value().is_null()) run.arguments.push_back(TestArgument(key, value));
  }
  if (root.Has("ENV_VARS") && root.At("ENV_VARS").IsObject()) {
    for (const auto& [variable, value] : root.At("ENV_VARS").Members()) {
      if (IsForPrograms(variable))
        run.environment.push_back({variable, ScalarText(value.value()), value.place().line});
    }
  }
  RefuseOtherRuns(run.arguments, name, /*is_log=*/false);
  return run;
}

}  // namespace

LaunchedRun ReadLaunchedRun(std::string_view text, const std::string& name,
                            const RunSettings& settings, const ShellFiles& files) {
  LaunchedRun run = text.find(kBegin) != std::string_view::npos ? ReadLog(text, name)
                    : IsTestConfig(text)                        ? ReadTestConfig(text, name)
                    : IsRecipe(text)                            ? ReadRecipe(text, name)
                                     : ReadScript(text, name, settings, files);
  AddSettings(settings, &run);
  return run;
}

}  // namespace rehearse
