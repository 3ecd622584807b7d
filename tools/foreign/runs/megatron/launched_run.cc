#include "tools/foreign/runs/megatron/launched_run.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
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

// Also the words of words that are command lines: of sh -c "...", eval, and variables in quotes.
std::vector<ShellWord> WithInnerWords(const std::vector<ShellWord>& words,
                                      const std::string& name) {
  std::vector<ShellWord> all;
  for (const ShellWord& word : words) {
    const bool is_line = word.text.find(" --") != std::string::npos && !IsLeftOpen(word.text);
    if (!is_line) {
      all.push_back(word);
      continue;
    }
    for (const ShellCommand& command : ReadShellScript(word.text, name).commands) {
      for (const ShellWord& inner : command.words)
        all.push_back({inner.text, word.line + inner.line - 1});
    }
  }
  return all;
}

bool HasLayers(const std::vector<ShellWord>& words) {
  return std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
    const std::string name = NameOf(word.text.substr(0, word.text.find('=')));
    return IsArgument(word.text) && (name == "num-layers" || name == "encoder-num-layers");
  });
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
};

void TakeCount(std::string_view name, std::string_view value, int line, LaunchCounts* counts) {
  constexpr std::string_view kNodes[] = {"--nnodes", "--nodes", "-N", "--num_nodes", "--num-nodes"};
  constexpr std::string_view kOfNode[] = {"--nproc_per_node",  "--nproc-per-node",
                                          "--num_gpus",        "--num-gpus",
                                          "--ntasks-per-node", "--gpus-per-node"};
  constexpr std::string_view kAll[] = {"-np", "--ntasks"};
  const auto is_one_of = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  // "--gpus-per-node=h100:8".
  if (name == "--gpus-per-node") value.remove_prefix(value.rfind(':') + 1);
  const std::optional<uint64_t> count = CountIn(value);
  if (!count) return;
  const WrittenCount written{*count, {std::string(name), line}};
  if (is_one_of(kNodes)) counts->nodes = written;
  if (is_one_of(kOfNode)) counts->of_node = written;
  if (is_one_of(kAll)) counts->all = written;
}

LaunchCounts CountsOfWords(const std::vector<ShellWord>& words) {
  LaunchCounts counts;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i].text;
    const size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
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
  if (!counts.nodes) counts.nodes = batch.nodes;
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

struct Launch {
  std::vector<ShellWord> words;
  bool is_conditional = false;
};

Launch FindLaunch(const ShellScript& script, const std::string& name,
                  std::vector<std::string>* remarks) {
  std::vector<Launch> found;
  for (const ShellCommand& command : script.commands) {
    std::vector<ShellWord> words = WithInnerWords(command.words, name);
    if (HasLayers(words)) found.push_back({std::move(words), command.is_conditional});
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

LaunchedRun ReadScript(std::string_view text, const std::string& name) {
  const ShellScript script = ReadShellScript(text, name);
  LaunchedRun run;
  if (IsList(script)) {
    std::vector<ShellWord> words;
    for (const ShellCommand& command : script.commands)
      words.insert(words.end(), command.words.begin(), command.words.end());
    run.arguments = ArgumentsOf(words, &run.remarks);
    FindRanks(script, {}, &run);
    return run;
  }
  const Launch launch = FindLaunch(script, name, &run.remarks);
  const auto program =
      std::find_if(launch.words.begin(), launch.words.end(),
                   [](const ShellWord& word) { return word.text.ends_with(".py"); });
  const bool has_program = program != launch.words.end();
  const std::vector<ShellWord> launcher(launch.words.begin(),
                                        has_program ? program : launch.words.begin());
  auto first = has_program ? std::next(program) : launch.words.begin();
  if (!has_program) {
    first = std::find_if(first, launch.words.end(),
                         [](const ShellWord& word) { return IsArgument(word.text); });
  }
  run.arguments = ArgumentsOf({first, launch.words.end()}, &run.remarks);
  FindRanks(script, launcher, &run);
  if (!script.left_open.empty()) {
    run.remarks.push_back(
        fmt::format("left out, as it is set in loops or under unknown conditions: {}",
                    fmt::join(script.left_open, ", ")));
  }
  return run;
}

}  // namespace

LaunchedRun ReadLaunchedRun(std::string_view text, const std::string& name) {
  return text.find(kBegin) != std::string_view::npos ? ReadLog(text, name) : ReadScript(text, name);
}

}  // namespace rehearse
