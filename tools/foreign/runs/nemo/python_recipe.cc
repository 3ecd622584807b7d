#include "tools/foreign/runs/nemo/python_recipe.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "tools/foreign/runs/model_names.h"
#include "tools/foreign/runs/python_text.h"

namespace rehearse {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargestModule = size_t{4} << 20;
constexpr int kDeepestRecipe = 12;                   // functions that call each other
constexpr size_t kMostModules = 64;                  // files
constexpr size_t kMostPythonWork = size_t{8} << 20;  // bytes of statements and expressions

// Ends of what stands between commas at the outermost level, or before another sign.
size_t EndOfPart(std::string_view text, size_t at, std::string_view signs) {
  while (at < text.size() && signs.find(text[at]) == std::string_view::npos) {
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') {
      at = EndOfPythonCall(text, at + 1);
    } else if (c == '"' || c == '\'') {
      at = std::min(text.find(c, at + 1), text.size() - 1) + 1;
    } else {
      ++at;
    }
  }
  return std::min(at, text.size());
}

std::vector<std::string_view> PartsOf(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = EndOfPart(text, at, ",");
    const std::string_view part = StrippedPython(text.substr(at, end - at));
    if (!part.empty()) parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

// Where "name=value" has its sign; not "==", "<=" and the like.
size_t SignOfAssignment(std::string_view text) {
  for (size_t at = EndOfPart(text, 0, "="); at < text.size(); at = EndOfPart(text, at + 1, "=")) {
    const bool is_doubled = at + 1 < text.size() && text[at + 1] == '=';
    const bool is_compared =
        at > 0 && std::string_view("=!<>+-*/|").find(text[at - 1]) != std::string_view::npos;
    if (!is_doubled && !is_compared) return at;
    if (is_doubled) ++at;
  }
  return std::string_view::npos;
}

bool IsPythonName(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), IsPartOfPythonName);
}
bool IsDottedName(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsPartOfPythonName(c) || c == '.'; });
}
std::string LastPart(std::string_view name) {
  return std::string(name.substr(name.rfind('.') + 1));
}

// What stands in quotes: one text, or several behind each other, which Python joins.
std::optional<std::string> QuotedText(std::string_view text) {
  std::string joined;
  while (!text.empty()) {
    const char quote = text[0];
    if (quote != '"' && quote != '\'') return std::nullopt;
    const size_t end = text.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    joined += text.substr(1, end - 1);
    text = StrippedPython(text.substr(end + 1));
  }
  return joined;
}

// Two words round one of Python's, such as " is " or " if ", at the outermost level.
size_t FindWord(std::string_view text, std::string_view word) {
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (text.substr(at).starts_with(word)) return at;
    if (c == '(' || c == '[' || c == '{') {
      at = EndOfPythonCall(text, at + 1);
    } else if (c == '"' || c == '\'') {
      at = std::min(text.find(c, at + 1), text.size() - 1) + 1;
    } else {
      ++at;
    }
  }
  return std::string_view::npos;
}

struct PythonLine {
  std::string_view text;  // a logical one: brackets hold physical ones together
  size_t indent = 0;
  size_t at = 0;  // in the module
};

std::vector<PythonLine> LinesOf(std::string_view code, size_t begin, size_t end) {
  std::vector<PythonLine> lines;
  for (size_t at = begin; at < end;) {
    const size_t first = std::min(code.find_first_not_of(" \t", at), end);
    const size_t stop = std::min(EndOfPart(code.substr(0, end), first, "\n"), end);
    const std::string_view text = StrippedPython(code.substr(first, stop - first));
    if (!text.empty()) lines.push_back({text, first - at, first});
    at = stop + 1;
  }
  return lines;
}

struct PythonModule {
  std::string code;
  bool is_main = false;
  std::vector<size_t> ends;  // behind each line
  std::vector<PythonFunction> functions;
  std::map<std::string, std::pair<std::string, std::string>, std::less<>> imports;  // file, name
  std::map<std::string, std::string, std::less<>> constants;
};

class RecipeInterpreter {
 public:
  RecipeInterpreter(std::string name, const PythonModules& modules)
      : name_(std::move(name)), files_(modules) {}

  PythonRecipe Read(std::string_view text, const RunSettings& settings) {
    PythonModule* const main = Load("", std::string(text));
    main->is_main = true;
    std::string wanted;
    Scope given;
    for (const RunSetting& setting : settings) {
      if (setting.name == "config")
        wanted = setting.value;
      else
        given[setting.name] = ValueOf(setting.value);
    }
    const PythonFunction& function = FindRecipe(*main, wanted);
    recipe_.function = function.name;
    Run(main, function, given, 0);
    for (const RunSetting& setting : settings)
      if (setting.name != "config")
        recipe_.keys[setting.name] = {ValueOf(setting.value), PythonKey::kGiven};
    for (const RunSetting& setting : settings) skipped_.erase(setting.name);
    if (recipe_.model.empty()) recipe_.model = unknown_model_;
    recipe_.skipped = std::move(skipped_);
    return std::move(recipe_);
  }

 private:
  using Scope = std::map<std::string, Json, std::less<>>;

  // Of a table's key, whatever bytes are in it.
  static std::string NameOf(const Json& key) {
    return key.is_string() ? key.get<std::string>()
                           : key.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static Json ValueOf(const std::string& text) {
    if (text == "True" || text == "False") return text == "True";
    if (text == "None") return nullptr;
    return Json::accept(text) ? Json::parse(text) : Json(text);
  }

  PythonModule* Load(const std::string& path, const std::string& text) {
    auto module = std::make_unique<PythonModule>();
    module->code = WithoutPythonComments(text);
    for (size_t i = 0; i < module->code.size(); ++i)
      if (module->code[i] == '\n') module->ends.push_back(i + 1);
    module->functions = PythonFunctionsOf(module->code);
    for (const PythonLine& line : LinesOf(module->code, 0, module->code.size())) {
      if (line.indent > 0) continue;
      ReadImport(line.text, module.get());
      const size_t sign = SignOfAssignment(line.text);
      if (sign == std::string_view::npos) continue;
      std::string_view name = StrippedPython(line.text.substr(0, sign));
      name = StrippedPython(name.substr(0, name.find(':')));
      if (IsPythonName(name))
        module->constants[std::string(name)] = std::string(line.text.substr(sign + 1));
    }
    PythonModule* const loaded = module.get();
    loaded_[path] = std::move(module);
    return loaded;
  }

  // "from a.b import c as d, e".
  static void ReadImport(std::string_view line, PythonModule* module) {
    constexpr std::string_view kFrom = "from ";
    constexpr std::string_view kImport = " import ";
    const size_t import = line.find(kImport);
    if (!line.starts_with(kFrom) || import == std::string_view::npos) return;
    std::string path(StrippedPython(line.substr(kFrom.size(), import - kFrom.size())));
    if (path.empty() || path[0] == '.') return;
    std::replace(path.begin(), path.end(), '.', '/');
    std::string_view names = StrippedPython(line.substr(import + kImport.size()));
    if (names.size() > 1 && names[0] == '(') names = names.substr(1, names.size() - 2);
    for (const std::string_view name : PartsOf(names)) {
      const size_t as = name.find(" as ");
      const std::string_view here =
          as == std::string_view::npos ? name : StrippedPython(name.substr(as + 4));
      const std::string there(StrippedPython(name.substr(0, as)));
      module->imports[std::string(here)] = {path + ".py", there};
    }
  }

  const PythonFunction& FindRecipe(const PythonModule& main, const std::string& wanted) const {
    std::vector<std::string> names;
    const PythonFunction* usual = nullptr;
    for (const PythonFunction& one : main.functions) {
      if (one.name == wanted) return one;
      if (one.name.starts_with("_")) continue;
      const bool is_recipe = one.name.find("recipe") != std::string::npos ||
                             one.name.find("config") != std::string::npos ||
                             one.name.find("pretrain") != std::string::npos;
      if (!is_recipe) continue;
      names.push_back(one.name);
      if (one.name == "pretrain_recipe" || one.name == "pretrain_config") usual = &one;
    }
    if (wanted.empty() && usual != nullptr) return *usual;
    if (wanted.empty() && names.size() == 1) {
      return *std::find_if(main.functions.begin(), main.functions.end(),
                           [&](const PythonFunction& one) { return one.name == names[0]; });
    }
    if (names.empty()) throw Error({name_, 0, ""}, "no function here makes a recipe");
    throw Error({name_, 0, ""},
                wanted.empty()
                    ? fmt::format("found {} recipes, expected --set config=NAME{}", names.size(),
                                  KnownNames("", names))
                    : fmt::format("found no recipe \"{}\"{}", wanted, KnownNames(wanted, names)));
  }

  int LineAt(const PythonModule& module, size_t at) const {
    if (!module.is_main) return 0;
    const auto behind = std::upper_bound(module.ends.begin(), module.ends.end(), at);
    return 1 + static_cast<int>(behind - module.ends.begin());
  }

  // A function of this name, in the module or where it imports it from.
  std::optional<std::pair<PythonModule*, const PythonFunction*>> FindFunction(PythonModule* module,
                                                                              std::string name) {
    constexpr int kMostAliases = 8;
    for (int i = 0; module != nullptr && i < kMostAliases; ++i) {
      for (const PythonFunction& one : module->functions)
        if (one.name == name) return std::pair{module, &one};
      const auto import = module->imports.find(name);
      if (import == module->imports.end()) return std::nullopt;
      name = import->second.second;
      module = ModuleAt(import->second.first);
    }
    return std::nullopt;
  }

  // A constant of this name: what it is, and in which module. Only what is written as one is looked
  // for elsewhere.
  std::optional<std::pair<PythonModule*, const std::string*>> FindConstant(PythonModule* module,
                                                                           std::string name) {
    const bool is_constant =
        std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    constexpr int kMostAliases = 8;
    for (int i = 0; module != nullptr && i < kMostAliases; ++i) {
      if (const auto found = module->constants.find(name); found != module->constants.end())
        return std::pair{module, &found->second};
      const auto import = module->imports.find(name);
      if (!is_constant || import == module->imports.end()) return std::nullopt;
      name = import->second.second;
      module = ModuleAt(import->second.first);
    }
    return std::nullopt;
  }

  // "llama3_8b.model", where llama3_8b is a module that is imported.
  std::optional<std::pair<PythonModule*, const PythonFunction*>> FunctionOfModule(
      PythonModule* module, const std::string& name) {
    const size_t dot = name.find('.');
    const auto import = module->imports.find(name.substr(0, dot));
    if (import == module->imports.end() || name.find('.', dot + 1) != std::string::npos)
      return std::nullopt;
    const auto& [file, inside] = import->second;
    constexpr size_t kEnding = 3;  // ".py"
    PythonModule* const found =
        ModuleAt(file.substr(0, file.size() - kEnding) + "/" + inside + ".py");
    return found == nullptr ? std::nullopt : FindFunction(found, name.substr(dot + 1));
  }

  PythonModule* ModuleAt(const std::string& path) {
    const auto known = loaded_.find(path);
    if (known != loaded_.end()) return known->second.get();
    if (!files_ || loaded_.size() >= kMostModules) return nullptr;
    std::optional<std::string> text = files_(path);
    if (text && text->size() > kLargestModule) text.reset();
    if (text) return Load(path, *text);
    loaded_[path] = nullptr;
    return nullptr;
  }

  void Step(std::string_view text) {
    constexpr size_t kOfOne = 64;
    work_ += text.size() + kOfOne;
    if (work_ > kMostPythonWork)
      throw Error({name_, 0, ""}, "the recipe has too many steps to be followed");
  }

  // Copies cost what they hold.
  const Json& Charged(const Json& value) {
    if (!value.is_structured()) return value;
    constexpr size_t kOfElement = 64;
    for (const Json& element : value)
      work_ += kOfElement * (element.is_structured() ? element.size() + 1 : 1);
    Step("");
    return value;
  }

  // ---- statements -------------------------------------------------------------------------------

  Json Run(PythonModule* module, const PythonFunction& function, const Scope& given, int depth) {
    if (depth > kDeepestRecipe) return nullptr;
    const std::string_view code = module->code;
    const size_t open = code.find('(', function.begin);
    if (open == std::string_view::npos || open >= function.end) return nullptr;
    const size_t close = EndOfPythonCall(code, open + 1);
    Scope scope;
    std::string rest;
    std::set<std::string, std::less<>> bound;
    for (std::string_view part : PartsOf(code.substr(open + 1, close - open - 2))) {
      const size_t sign = SignOfAssignment(part);
      std::string_view name = StrippedPython(part.substr(0, std::min(sign, part.find(':'))));
      if (name.starts_with("**")) {
        rest = std::string(name.substr(2));
        passes_on_ = passes_on_ || depth == 0;
        continue;
      }
      if (!IsPythonName(name)) continue;
      const auto found = given.find(name);
      bound.insert(std::string(name));
      if (depth == 0 || passes_on_) recipe_.arguments.insert(std::string(name));
      if (found != given.end())
        scope[std::string(name)] = found->second;
      else if (sign != std::string_view::npos)
        scope[std::string(name)] = Evaluate(part.substr(sign + 1), module, scope, open, depth);
    }
    if (!rest.empty()) {
      Json others = Json::object();
      for (const auto& [name, value] : given)
        if (!bound.contains(name)) others[name] = value;
      scope[rest] = std::move(others);
    }
    const size_t colon = code.find(':', close - 1);
    if (colon == std::string_view::npos || colon >= function.end) return nullptr;
    const std::vector<PythonLine> lines = LinesOf(code, colon + 1, function.end);
    Json result;
    const bool returns = RunLines(lines, 0, lines.size(), module, &scope, depth, &result);
    return returns ? result : Json("what " + function.name + " makes");
  }

  static size_t EndOfBlock(const std::vector<PythonLine>& lines, size_t header, size_t end) {
    size_t at = header + 1;
    while (at < end && lines[at].indent > lines[header].indent) ++at;
    return at;
  }

  // Whether it returned.
  bool RunLines(const std::vector<PythonLine>& lines, size_t begin, size_t end,
                PythonModule* module, Scope* scope, int depth, Json* result) {
    bool is_decided = false;  // one of the branches before was taken, or might have been
    for (size_t i = begin; i < end;) {
      const PythonLine& line = lines[i];
      Step(line.text);
      const size_t block = EndOfBlock(lines, i, end);
      const bool is_if = line.text.starts_with("if ");
      const bool is_elif = line.text.starts_with("elif ");
      const bool is_else = line.text.starts_with("else:");
      if (is_if || is_elif || is_else) {
        if (is_if) is_decided = false;
        const std::optional<bool> holds =
            is_else ? std::optional(true)
                    : Holds(line.text.substr(is_if ? 3 : 5, line.text.rfind(':') - (is_if ? 3 : 5)),
                            module, *scope, line.at, depth);
        if (!is_decided && !holds) RemarkOnSkipped(lines, i, block, *module);
        if (!is_decided && holds == true &&
            RunLines(lines, i + 1, block, module, scope, depth, result))
          return true;
        is_decided = is_decided || holds != false;
      } else if (line.text.starts_with("try:") || line.text.starts_with("with ")) {
        if (RunLines(lines, i + 1, block, module, scope, depth, result)) return true;
      } else if (block > i + 1) {
        RemarkOnSkipped(lines, i, block, *module);  // a loop, or something else with a block
      } else if (line.text.starts_with("return")) {
        *result = Evaluate(line.text.substr(6), module, *scope, line.at, depth);
        return true;
      } else {
        RunStatement(line.text, module, scope, line.at, depth);
      }
      i = block;
    }
    return false;
  }

  // Only where a configuration is changed.
  void RemarkOnSkipped(const std::vector<PythonLine>& lines, size_t begin, size_t end,
                       const PythonModule& module) {
    for (size_t i = begin + 1; i < end; ++i) {
      const size_t sign = SignOfAssignment(lines[i].text);
      if (sign == std::string_view::npos) continue;
      const std::string_view target = StrippedPython(lines[i].text.substr(0, sign));
      if (!IsDottedName(target) || target.find('.') == std::string_view::npos) continue;
      if (skipped_.size() < 1000) skipped_[LastPart(target)] = LineAt(module, lines[begin].at);
    }
  }

  void RunStatement(std::string_view text, PythonModule* module, Scope* scope, size_t at,
                    int depth) {
    const size_t sign = SignOfAssignment(text);
    if (sign == std::string_view::npos) {
      Evaluate(text, module, *scope, at, depth);
      return;
    }
    std::string_view target = StrippedPython(text.substr(0, sign));
    std::string_view value = text.substr(sign + 1);
    std::vector<std::string_view> targets = {target};
    for (size_t next = SignOfAssignment(value); next != std::string_view::npos;
         next = SignOfAssignment(value)) {
      targets.push_back(StrippedPython(value.substr(0, next)));
      value = value.substr(next + 1);
    }
    const Json evaluated = Evaluate(value, module, *scope, at, depth);
    for (std::string_view one : targets) {
      if (one.find('.') == std::string_view::npos)
        one = StrippedPython(one.substr(0, one.find(':')));
      if (IsPythonName(one))
        (*scope)[std::string(one)] = evaluated;
      else if (IsDottedName(one))
        SetKey(LastPart(one), evaluated, LineAt(*module, at), one.substr(0, one.rfind('.')));
    }
  }

  void SetKey(const std::string& name, const Json& value, int line, std::string_view owner = "") {
    skipped_.erase(name);
    recipe_.keys[name] = {value, line, std::string(owner)};
  }

  // Where a function would be that cannot be found: the module that "trainer", or
  // "llama3_8b.trainer", is imported from. "" if it is not imported.
  static std::string ModuleOf(std::string_view name, const PythonModule& module) {
    const size_t dot = name.find('.');
    const auto import = module.imports.find(name.substr(0, dot));
    if (import == module.imports.end()) return "";
    const auto& [file, inside] = import->second;
    if (dot == std::string_view::npos) return file;
    constexpr size_t kEnding = 3;  // ".py"
    return file.substr(0, file.size() - kEnding) + "/" + inside + ".py";
  }

  void NoteLostCall(std::string_view name, const Scope& given, const PythonModule& module,
                    size_t at) {
    constexpr size_t kMostLost = 100;
    LostCall lost{std::string(name), ModuleOf(name, module), LineAt(module, at), {}};
    if (lost.module.empty() || given.empty() || recipe_.lost.size() >= kMostLost) return;
    for (const auto& [key, value] : given)
      if (!value.is_structured() && !value.is_null())
        lost.arguments[key] = NameOf(value).substr(0, 60);
    recipe_.lost.push_back(std::move(lost));
  }

  // "MegatronStrategy" of run.Config(nl.MegatronStrategy, ...) and of MegatronStrategy(...).
  static std::string ClassOf(const std::string& called, const std::vector<Json>& values) {
    const bool is_wrapped = called == "Config" || called == "Partial";
    if (!is_wrapped || values.empty() || !values[0].is_string()) return called;
    const auto& name = values[0].get_ref<const std::string&>();
    return IsDottedName(name) ? LastPart(name) : called;
  }

  // ---- expressions ------------------------------------------------------------------------------

  static bool IsTruth(const Json& value) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_null()) return false;
    if (value.is_number()) return value != 0;
    return !value.empty();
  }

  // What was read of it; nothing if it is a text that only stands for something.
  std::optional<Json> Known(std::string_view text, PythonModule* module, const Scope& scope,
                            size_t at, int depth) {
    text = StrippedPython(text);
    const bool is_literal = !text.empty() && (text[0] == '"' || text[0] == '\'' || text[0] == '[' ||
                                              (text[0] >= '0' && text[0] <= '9'));
    if (text == "None" || text == "True" || text == "False" || is_literal)
      return Evaluate(text, module, scope, at, depth);
    if (IsPythonName(text)) {
      const auto found = scope.find(text);
      if (found != scope.end()) return found->second;
      if (module->constants.contains(std::string(text)))
        return Evaluate(text, module, scope, at, depth);
      return std::nullopt;
    }
    if (IsDottedName(text)) {
      const auto found = recipe_.keys.find(LastPart(text));
      if (found != recipe_.keys.end()) return found->second.value;
    }
    if (text.starts_with("hasattr(") || text.starts_with("getattr("))
      return Evaluate(text, module, scope, at, depth);
    return std::nullopt;
  }

  std::optional<bool> Holds(std::string_view text, PythonModule* module, const Scope& scope,
                            size_t at, int depth) {
    Step(text);
    text = StrippedPython(text);
    for (const std::string_view word : {std::string_view(" or "), std::string_view(" and ")}) {
      const size_t found = FindWord(text, word);
      if (found == std::string_view::npos) continue;
      const std::optional<bool> a = Holds(text.substr(0, found), module, scope, at, depth);
      const std::optional<bool> b =
          Holds(text.substr(found + word.size()), module, scope, at, depth);
      const bool is_or = word == " or ";
      if (a == is_or || b == is_or) return is_or;
      return a && b ? std::optional(!is_or) : std::nullopt;
    }
    if (text.starts_with("not ")) {
      const std::optional<bool> other = Holds(text.substr(4), module, scope, at, depth);
      return other ? std::optional(!*other) : std::nullopt;
    }
    struct Comparison {
      std::string_view word;
      bool is_equal;
    };
    constexpr Comparison kComparisons[] = {
        {" is not ", false}, {" is ", true}, {" != ", false}, {" == ", true}};
    for (const Comparison& comparison : kComparisons) {
      const size_t found = FindWord(text, comparison.word);
      if (found == std::string_view::npos) continue;
      const std::optional<Json> a = Known(text.substr(0, found), module, scope, at, depth);
      const std::optional<Json> b =
          Known(text.substr(found + comparison.word.size()), module, scope, at, depth);
      if (!a || !b) return std::nullopt;
      return (*a == *b) == comparison.is_equal;
    }
    if (const std::optional<Json> value = Known(text, module, scope, at, depth))
      return IsTruth(*value);
    return std::nullopt;
  }

  Json Evaluate(std::string_view text, PythonModule* module, const Scope& scope, size_t at,
                int depth) {
    Step(text);
    text = StrippedPython(text);
    if (text.empty() || text == "None") return nullptr;
    if (text == "True" || text == "False") return text == "True";
    if (depth > kDeepestRecipe) return std::string(text);
    const char first = text[0];
    if (const std::optional<std::string> quoted = QuotedText(text)) return *quoted;
    if (const size_t condition = FindWord(text, " if "); condition != std::string_view::npos) {
      const size_t other = FindWord(text, " else ");
      if (other == std::string_view::npos || other < condition) return std::string(text);
      const std::optional<bool> holds =
          Holds(text.substr(condition + 4, other - condition - 4), module, scope, at, depth);
      if (!holds) return std::string(text);
      return Evaluate(*holds ? text.substr(0, condition) : text.substr(other + 6), module, scope,
                      at, depth + 1);
    }
    if (const size_t other = FindWord(text, " or "); other != std::string_view::npos) {
      Json value = Evaluate(text.substr(0, other), module, scope, at, depth + 1);
      return IsTruth(value) ? value
                            : Evaluate(text.substr(other + 4), module, scope, at, depth + 1);
    }
    if (const size_t plus = FindWord(text, " + "); plus != std::string_view::npos)
      return Sum(text, plus, module, scope, at, depth);
    const bool is_bracketed =
        (first == '(' || first == '[' || first == '{') && EndOfPythonCall(text, 1) == text.size();
    if (is_bracketed) {
      const std::string_view inside = text.substr(1, text.size() - 2);
      if (first == '{') return Table(inside, module, scope, at, depth + 1);
      // A copy, element by element.
      if (const size_t of = FindWord(inside, " in ");
          of != std::string_view::npos && FindWord(inside, " for ") < of)
        return Evaluate(inside.substr(of + 4), module, scope, at, depth + 1);
      const std::vector<std::string_view> parts = PartsOf(inside);
      if (first == '(' && parts.size() == 1) return Evaluate(inside, module, scope, at, depth + 1);
      Json list = Json::array();
      for (const std::string_view part : parts)
        list.push_back(Evaluate(part, module, scope, at, depth + 1));
      return list;
    }
    if (IsPythonName(text)) {
      if (const auto found = scope.find(text); found != scope.end()) return Charged(found->second);
      if (const auto constant = FindConstant(module, std::string(text)))
        return Evaluate(*constant->second, constant->first, {}, at, depth + 1);
      NoteModelClass(text, *module, at);
      return std::string(text);
    }
    if (const std::optional<int64_t> number = Product(text, module, scope, at, depth))
      return *number;
    if (IsDottedName(text)) {
      const auto found = recipe_.keys.find(LastPart(text));
      if (found != recipe_.keys.end()) return found->second.value;
      NoteModelClass(text, *module, at);
      return std::string(text);
    }
    if (first == '[') return Repeated(text, module, scope, at, depth);
    if (const size_t index = text.find('['); index != std::string_view::npos &&
                                             IsPythonName(text.substr(0, index)) &&
                                             text.back() == ']') {
      const Json table = Evaluate(text.substr(0, index), module, scope, at, depth + 1);
      const Json key =
          Evaluate(text.substr(index + 1, text.size() - index - 2), module, scope, at, depth + 1);
      const std::string name = NameOf(key);
      return table.is_object() && table.contains(name) ? table[name] : Json(std::string(text));
    }
    const size_t bracket = text.find('(');
    if (bracket != std::string_view::npos && IsDottedName(text.substr(0, bracket)))
      return Call(text, bracket, module, scope, at, depth);
    return std::string(text);
  }

  static constexpr size_t kMostElements = 10000;

  // Of lists or whole numbers.
  Json Sum(std::string_view text, size_t plus, PythonModule* module, const Scope& scope, size_t at,
           int depth) {
    Json sum = Evaluate(text.substr(0, plus), module, scope, at, depth + 1);
    const Json other = Evaluate(text.substr(plus + 3), module, scope, at, depth);
    if (sum.is_array() && other.is_array() && sum.size() + other.size() <= kMostElements) {
      sum.insert(sum.end(), other.begin(), other.end());
      return Charged(sum);
    }
    int64_t number = 0;
    if (sum.is_number_integer() && other.is_number_integer() &&
        !__builtin_add_overflow(sum.get<int64_t>(), other.get<int64_t>(), &number))
      return number;
    return std::string(text);
  }

  // ["decoder"] * 8.
  Json Repeated(std::string_view text, PythonModule* module, const Scope& scope, size_t at,
                int depth) {
    const size_t close = EndOfPythonCall(text, 1);
    const std::string_view behind = StrippedPython(text.substr(close));
    if (!behind.starts_with("*")) return std::string(text);
    const Json list = Evaluate(text.substr(0, close), module, scope, at, depth + 1);
    const Json times = Evaluate(behind.substr(1), module, scope, at, depth + 1);
    const bool is_whole = times.is_number_integer() && times >= 0 && times <= kMostElements;
    if (!list.is_array() || !is_whole || list.size() * times.get<size_t>() > kMostElements)
      return std::string(text);
    Json repeated = Json::array();
    for (size_t i = 0; i < times.get<size_t>(); ++i)
      repeated.insert(repeated.end(), list.begin(), list.end());
    return Charged(repeated);
  }

  // "8 * 2048", of whole numbers and names of such.
  std::optional<int64_t> Product(std::string_view text, PythonModule* module, const Scope& scope,
                                 size_t at, int depth) {
    int64_t product = 1;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t star = EndOfPart(text, begin, "*");
      std::string factor(StrippedPython(text.substr(begin, star - begin)));
      begin = star + 1;
      int64_t number = 0;
      if (IsPythonName(factor)) {
        const std::optional<Json> known = Known(factor, module, scope, at, depth + 1);
        if (!known || !known->is_number_integer()) return std::nullopt;
        number = known->get<int64_t>();
      } else {
        std::erase(factor, '_');
        const auto [end, fault] =
            std::from_chars(factor.data(), factor.data() + factor.size(), number);
        if (factor.empty() || fault != std::errc() || end != factor.data() + factor.size())
          return std::nullopt;
      }
      if (__builtin_mul_overflow(product, number, &product)) return std::nullopt;
    }
    return product;
  }

  // {"a": 1, **others}.
  Json Table(std::string_view inside, PythonModule* module, const Scope& scope, size_t at,
             int depth) {
    Json table = Json::object();
    for (const std::string_view part : PartsOf(inside)) {
      if (part.starts_with("**")) {
        const Json other = Evaluate(part.substr(2), module, scope, at, depth);
        if (other.is_object()) table.update(other);
        continue;
      }
      const size_t colon = EndOfPart(part, 0, ":");
      if (colon >= part.size()) continue;
      const Json key = Evaluate(part.substr(0, colon), module, scope, at, depth);
      if (!key.is_null())
        table[NameOf(key)] = Evaluate(part.substr(colon + 1), module, scope, at, depth);
    }
    return table;
  }

  // hasattr(cfg.model, "a"), getattr(cfg.model, "a", 1): what nobody has set is not there.
  Json Attribute(bool is_value, const std::vector<std::string_view>& parts, PythonModule* module,
                 const Scope& scope, size_t at, int depth) {
    const Json name = Evaluate(parts[1], module, scope, at, depth + 1);
    const auto found =
        name.is_string() ? recipe_.keys.find(name.get<std::string>()) : recipe_.keys.end();
    if (!is_value) return found != recipe_.keys.end();
    if (found != recipe_.keys.end()) return found->second.value;
    return parts.size() > 2 ? Evaluate(parts[2], module, scope, at, depth + 1) : Json();
  }

  Json Call(std::string_view text, size_t open, PythonModule* module, const Scope& scope, size_t at,
            int depth) {
    const std::string_view name = text.substr(0, open);
    const size_t close = EndOfPythonCall(text, open + 1);
    const std::vector<std::string_view> parts =
        PartsOf(text.substr(open + 1, std::max(close, open + 2) - open - 2));
    const std::string last = LastPart(name);
    const bool is_plain = name.find('.') == std::string_view::npos;
    if (is_plain && (last == "list" || last == "deepcopy") && parts.size() == 1)
      return Evaluate(parts[0], module, scope, at, depth + 1);
    if (is_plain && (last == "hasattr" || last == "getattr") && parts.size() > 1)
      return Attribute(last == "getattr", parts, module, scope, at, depth);
    // What a precision is follows from its name.
    if (is_plain && last.ends_with("_mixed")) return NewPrecision(last);
    if (is_plain && last == "get_mixed_precision_config" && parts.size() == 1)
      return NewPrecision(Evaluate(parts[0], module, scope, at, depth + 1));
    const auto function =
        is_plain ? FindFunction(module, last) : FunctionOfModule(module, std::string(name));
    Scope given;
    std::vector<Json> values;
    for (const std::string_view part : parts) {
      if (part.starts_with("**")) {
        const Json others = Evaluate(part.substr(2), module, scope, at, depth + 1);
        if (others.is_object())
          for (const auto& [key, value] : others.items()) given[key] = value;
        continue;
      }
      const size_t sign = SignOfAssignment(part);
      if (sign == std::string_view::npos) {
        values.push_back(Evaluate(part, module, scope, at, depth + 1));
        continue;
      }
      const std::string key(StrippedPython(part.substr(0, sign)));
      Json value = Evaluate(part.substr(sign + 1), module, scope, at, depth + 1);
      if (!function) SetKey(key, value, LineAt(*module, at), ClassOf(last, values));
      given[key] = std::move(value);
    }
    if (!function && IsPythonName(last)) {
      SetKey("()" + last, true, LineAt(*module, at));
      SetKey("()" + ClassOf(last, values), true, LineAt(*module, at));
      NoteLostCall(name, given, *module, at);
    }
    if (last == "from_hf_pretrained" && !values.empty() && values[0].is_string()) {
      recipe_.model = values[0].get<std::string>();
      recipe_.model_line = LineAt(*module, at);
    }
    if (!function) {
      NoteModelClass(name, *module, at);
      if (last == "_perf_precision" && !values.empty()) return NewPrecision(values[0]);
      return std::string(text.substr(0, 200));
    }
    const auto& [where, body] = *function;
    const std::string_view code = where->code;
    const size_t begin = code.find('(', body->begin);
    if (begin == std::string_view::npos || begin >= body->end) return nullptr;
    size_t position = 0;
    for (const std::string_view part :
         PartsOf(code.substr(begin + 1, EndOfPythonCall(code, begin + 1) - begin - 2))) {
      const std::string parameter(
          StrippedPython(part.substr(0, std::min(part.find(':'), part.find('=')))));
      if (!IsPythonName(parameter) || position >= values.size()) break;
      given[parameter] = values[position++];
    }
    return Run(where, *body, given, depth + 1);
  }

  // Forgets what belonged to the one before.
  Json NewPrecision(Json name) {
    for (const char* key :
         {"fp8", "fp8_recipe", "fp8_param", "fp8_param_gather", "first_last_layers_bf16",
          "num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"})
      recipe_.keys.erase(key);
    SetKey("grad_reduce_in_fp32", true, 0);
    return name;
  }

  // "Llama3Config8B": NeMo has a class for each model.
  void NoteModelClass(std::string_view text, const PythonModule& module, size_t at) {
    const std::string name = LastPart(text);
    const bool has_digit =
        std::any_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    const bool is_class = name.find("Config") != std::string::npos ||
                          name.find("Provider") != std::string::npos ||
                          name.starts_with("NemotronNano");
    const bool is_other = name.find("Mamba") != std::string::npos ||
                          name.find("Hyena") != std::string::npos ||
                          name.find("NemotronH") != std::string::npos;
    if (!is_class) return;
    if (FindModelByName(name)) {
      recipe_.model = name;
      recipe_.model_line = LineAt(module, at);
    } else if (unknown_model_.empty() && (has_digit || is_other)) {
      unknown_model_ = name;
    }
  }

  std::string name_;
  PythonModules files_;
  PythonRecipe recipe_;
  std::string unknown_model_;
  std::map<std::string, int, std::less<>> skipped_;
  std::map<std::string, std::unique_ptr<PythonModule>, std::less<>> loaded_;
  size_t work_ = 0;
  bool passes_on_ = false;  // the recipe gives what it does not know to functions that it calls
};

}  // namespace

PythonRecipe ReadPythonRecipe(std::string_view text, const std::string& name,
                              const RunSettings& settings, const PythonModules& modules) {
  if (text.size() > kLargestModule)
    throw Error({name, 0, ""}, "found more than 4 MiB, expected a recipe of at most that size");
  return RecipeInterpreter(name, modules).Read(text, settings);
}

}  // namespace rehearse
