#include "tools/foreign/runs/megatron/shell_script.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/runs/megatron/shell_arithmetic.h"

namespace rehearse {
namespace {

constexpr size_t kMostFiles = 32;  // that are read in
constexpr size_t kLargestScript = size_t{1} << 20;
constexpr size_t kMostExpanded = size_t{4} << 20;
constexpr int kDeepestExpansion = 32;

bool IsNameBegin(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNamePart(char c) { return IsNameBegin(c) || (c >= '0' && c <= '9'); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool EndsWord(char c) {
  return IsBlank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' ||
         c == '<' || c == '>';
}

// A text with the line of each of its characters.
struct LinedText {
  std::string text;
  std::vector<int> lines;

  void Add(char c, int line) {
    text += c;
    lines.push_back(line);
  }
  void Add(const LinedText& other, size_t begin, size_t end) {
    text.append(other.text, begin, end - begin);
    lines.insert(lines.end(), other.lines.begin() + static_cast<ptrdiff_t>(begin),
                 other.lines.begin() + static_cast<ptrdiff_t>(end));
  }
  void Add(const LinedText& other) { Add(other, 0, other.text.size()); }
  LinedText Part(size_t begin, size_t end) const {
    LinedText part;
    part.Add(*this, begin, end);
    return part;
  }
};

LinedText WithLines(std::string_view text) {
  LinedText lined{std::string(text), {}};
  lined.lines.reserve(text.size());
  int line = 1;
  for (const char c : text) {
    lined.lines.push_back(line);
    if (c == '\n') ++line;
  }
  return lined;
}

struct ShellValue {
  std::vector<LinedText> parts;  // a text has one
  bool is_array = false;
};

// Whether a statement is run.
enum class Runs : uint8_t { kYes, kNo, kOpen };

Runs Both(Runs outer, Runs inner) { return outer == Runs::kYes ? inner : outer; }

struct Block {
  bool is_if = false;
  Runs outer = Runs::kYes;
  Runs now = Runs::kYes;
  Runs taken = Runs::kNo;  // whether a branch before this one is run
  // Of a `case`: what is compared with the patterns, and whether patterns come next.
  std::string subject = {};
  bool is_case = false;
  bool awaits_pattern = false;
};

// A command of a condition, and what stands behind it: "&&", "||", "|" or "".
struct Condition {
  std::vector<ShellWord> words;
  std::string by;
};

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& name, const ShellStart& start)
      : name_(name), source_(WithLines(text)), files_(start.files) {
    for (const auto& [variable, value] : start.variables) {
      LinedText lined;
      for (const char c : value.text) lined.Add(c, value.line);
      variables_[variable].parts.push_back(std::move(lined));
      script_.variables[variable] = value;
      if (start.is_fixed) fixed_.insert(variable);
    }
  }

  ShellScript Read();

 private:
  // ---- words ----
  // Reads a text from a place on.
  struct Cursor {
    const LinedText* text = nullptr;
    size_t at = 0;

    bool AtEnd() const { return at >= text->text.size(); }
    char Now() const { return text->text[at]; }
    char Next(size_t by = 1) const {
      return at + by < text->text.size() ? text->text[at + by] : '\0';
    }
    int Line() const {
      if (text->lines.empty()) return 0;
      return text->lines[std::min(at, text->lines.size() - 1)];
    }
  };
  // The words that a word of the source becomes.
  struct Words {
    bool splits = true;  // variables' values, at blanks
    std::vector<LinedText> done = {};
    LinedText now = {};
    bool is_one = false;  // what is there counts as a word, even if it is empty

    void Close() {
      if (is_one) done.push_back(std::exchange(now, {}));
      is_one = false;
    }
  };

  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({name_, line, ""}, message);
  }
  [[noreturn]] void NeverClosed(int line, const char* what) const {
    Fail(line, fmt::format("{} that is opened here is never closed", what));
  }
  void Spend(size_t bytes, int line) {
    spent_ += bytes;
    if (spent_ > kMostExpanded) Fail(line, "variables grow to more than 4 MiB");
  }

  void ReadWord(Cursor& cursor, bool is_whole, Words* words);
  void ReadQuoted(Cursor& cursor, Words* words);
  void Expand(Cursor& cursor, bool is_quoted, Words* words);
  void ExpandBraces(Cursor& cursor, bool is_quoted, Words* words);
  bool ExpandCount(const LinedText& inner, Words* words, int line);
  std::optional<std::string> OutputOf(const LinedText& command);
  void Insert(const ShellValue& value, bool all, bool is_quoted, Words* words, int line);
  void InsertText(const LinedText& text, bool is_quoted, Words* words);
  std::optional<int64_t> NumberOf(std::string_view variable) const;
  const ShellValue* Find(std::string_view name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }
  // The place behind the bracket that closes the one at the cursor.
  size_t EndOf(const Cursor& cursor, char open, char close, const char* what) const;

  // ---- statements ----
  bool TakeKeyword(Cursor& cursor);
  bool TakeAssignment(Cursor& cursor);
  void TakeComment(Cursor& cursor);
  void TakeRedirection(Cursor& cursor);
  void SkipHereDocuments(Cursor& cursor);
  LinedText ReadText(Cursor& cursor);
  std::vector<LinedText> ReadArray(Cursor& cursor);
  void Assign(const std::string& variable, ShellValue value, bool appends, int line);
  void EndCommand(std::string_view by);
  void FindFile(const std::vector<ShellWord>& words);
  void ReadIn(Cursor& cursor);
  void EndCondition();
  std::optional<bool> TruthOf(const std::vector<ShellWord>& words);
  std::optional<bool> TruthOf(const std::vector<Condition>& conditions);
  std::optional<int64_t> Calculate(std::string_view text);
  void TakeArithmetic(Cursor& cursor);
  void BeginCase(Cursor& cursor);
  void TakePattern(Cursor& cursor);
  static ShellWord WordOf(const LinedText& text, int otherwise) {
    return {text.text, text.lines.empty() ? otherwise : text.lines.front()};
  }
  Runs Now() const { return Both(blocks_.empty() ? Runs::kYes : blocks_.back().now, guard_); }

  std::string name_;
  LinedText source_;
  ShellScript script_;
  std::map<std::string, ShellValue, std::less<>> variables_;
  std::vector<ShellWord> command_;
  bool starts_ = true;  // the command had nothing but assignments so far
  std::vector<Block> blocks_;
  Runs guard_ = Runs::kYes;            // of a command behind && or ||
  std::optional<bool> status_ = true;  // of the commands before these
  bool in_condition_ = false;
  std::vector<Condition> condition_;
  std::set<std::string, std::less<>> fixed_;  // variables that keep their values
  std::vector<std::string> here_documents_;   // whose text begins on the next line
  ShellFiles files_;
  std::optional<LinedText> file_;  // to be read before what follows
  size_t spent_ = 0;
  int depth_ = 0;
};

// ---- words --------------------------------------------------------------------------------------

size_t ShellReader::EndOf(const Cursor& cursor, char open, char close, const char* what) const {
  const std::string& text = cursor.text->text;
  int depth = 0;
  char quote = '\0';
  for (size_t at = cursor.at; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      return at + 1;
    }
  }
  NeverClosed(cursor.Line(), what);
}

std::optional<int64_t> ShellReader::NumberOf(std::string_view variable) const {
  const ShellValue* const value = Find(variable);
  if (value == nullptr || value->parts.empty()) return std::nullopt;
  const std::string& text = value->parts.front().text;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void ShellReader::InsertText(const LinedText& text, bool is_quoted, Words* words) {
  if (is_quoted || !words->splits) {
    words->now.Add(text);
    words->is_one = words->is_one || is_quoted || !text.text.empty();
    return;
  }
  for (size_t i = 0; i < text.text.size(); ++i) {
    const char c = text.text[i];
    if (IsBlank(c) || c == '\n') {
      words->Close();
    } else {
      words->now.Add(c, text.lines[i]);
      words->is_one = true;
    }
  }
}

void ShellReader::Insert(const ShellValue& value, bool all, bool is_quoted, Words* words,
                         int line) {
  for (size_t i = 0; i < value.parts.size() && (i == 0 || all); ++i) {
    Spend(value.parts[i].text.size() + 1, line);
    if (i > 0 && words->splits) words->Close();
    if (i > 0 && !words->splits) words->now.Add(' ', line);
    InsertText(value.parts[i], is_quoted, words);
  }
}

// At "${".
void ShellReader::ExpandBraces(Cursor& cursor, bool is_quoted, Words* words) {
  const int line = cursor.Line();
  const size_t begin = cursor.at;
  ++cursor.at;
  const size_t end = EndOf(cursor, '{', '}', "a brace");
  const LinedText inner = cursor.text->Part(cursor.at + 1, end - 1);
  cursor.at = end;
  if (ExpandCount(inner, words, line)) return;
  size_t at = 0;
  while (at < inner.text.size() && IsNamePart(inner.text[at])) ++at;
  const std::string variable = inner.text.substr(0, at);
  std::string rest = inner.text.substr(at);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) {
    rest = rest.substr(3);
    at += 3;
  }
  const size_t bracket = rest.find(']');
  if (rest.starts_with("[") && bracket + 1 == rest.size() && Find(variable) != nullptr) {
    const std::optional<int64_t> index = Calculate(std::string_view(rest).substr(1, bracket - 1));
    const ShellValue& array = *Find(variable);
    if (index && *index >= 0 && std::cmp_less(*index, array.parts.size())) {
      Spend(array.parts[static_cast<size_t>(*index)].text.size() + 1, line);
      InsertText(array.parts[static_cast<size_t>(*index)], is_quoted, words);
      return;
    }
  }
  if (rest.starts_with(":+") || rest.starts_with("+")) {
    const bool is_set = Find(variable) != nullptr && !Find(variable)->parts.empty() &&
                        (rest[0] == '+' || !Find(variable)->parts.front().text.empty());
    if (is_set) rest[rest.find('+')] = '-';
    // What is not set becomes nothing if it is known to be so.
    if (!is_set && Find(variable) != nullptr) return;
    if (is_set) {
      const LinedText instead = inner.Part(at + rest.find('-') + 1, inner.text.size());
      Cursor inside{&instead};
      Words text{.splits = false};
      ReadWord(inside, /*is_whole=*/true, &text);
      Spend(text.now.text.size(), line);
      InsertText(text.now, is_quoted, words);
      return;
    }
  }
  if (rest.starts_with(":?") || rest.starts_with("?")) rest.clear();
  const bool has_otherwise = rest.starts_with(":-") || rest.starts_with(":=") ||
                             rest.starts_with("-") || rest.starts_with("=");
  const ShellValue* const value = Find(variable);
  if (value != nullptr && (rest.empty() || has_otherwise)) {
    Insert(*value, all, is_quoted, words, line);
  } else if (has_otherwise && !variable.empty()) {
    const LinedText otherwise = inner.Part(at + (rest.starts_with(":") ? 2 : 1), inner.text.size());
    Cursor inside{&otherwise};
    Words text{.splits = false};
    ReadWord(inside, /*is_whole=*/true, &text);
    Spend(text.now.text.size(), line);
    InsertText(text.now, is_quoted, words);
  } else {
    words->now.Add(*cursor.text, begin, end);
    words->is_one = true;
  }
}

// "#NAME" and "#NAME[@]": how long a text is, how many an array has.
bool ShellReader::ExpandCount(const LinedText& inner, Words* words, int line) {
  if (!inner.text.starts_with("#") || inner.text.size() < 2) return false;
  std::string_view variable = std::string_view(inner.text).substr(1);
  const bool all = variable.ends_with("[@]") || variable.ends_with("[*]");
  if (all) variable.remove_suffix(3);
  const ShellValue* const value = Find(variable);
  if (value == nullptr) return false;
  const size_t length = value->parts.empty() ? 0 : value->parts.front().text.size();
  for (const char c : std::to_string(all ? value->parts.size() : length)) words->now.Add(c, line);
  words->is_one = true;
  return true;
}

// What $(expr 2 \* 3) and $(echo text) print; nothing for other commands.
std::optional<std::string> ShellReader::OutputOf(const LinedText& command) {
  const size_t begin = command.text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return std::nullopt;
  const std::string_view text = std::string_view(command.text).substr(begin);
  const bool is_expr = text.starts_with("expr ");
  if (!is_expr && !text.starts_with("echo ")) return std::nullopt;
  if (text.find_first_of("|;<>&") != std::string_view::npos) return std::nullopt;
  Cursor cursor{&command, begin + 5};
  Words words;
  while (!cursor.AtEnd()) {
    if (EndsWord(cursor.Now())) {
      ++cursor.at;
      continue;
    }
    ReadWord(cursor, /*is_whole=*/false, &words);
    words.Close();
  }
  std::string joined;
  for (const LinedText& word : words.done) joined += (joined.empty() ? "" : " ") + word.text;
  if (IsLeftOpen(joined)) return std::nullopt;
  if (!is_expr) return joined;
  const std::optional<int64_t> number = Calculate(joined);
  return number ? std::optional<std::string>(std::to_string(*number)) : std::nullopt;
}

std::optional<int64_t> ShellReader::Calculate(std::string_view text) {
  return ShellArithmetic(text, [this](std::string_view variable) { return NumberOf(variable); });
}

// At "$".
void ShellReader::Expand(Cursor& cursor, bool is_quoted, Words* words) {
  if (++depth_ > kDeepestExpansion) Fail(cursor.Line(), "variables within variables, too deep");
  const int line = cursor.Line();
  const size_t begin = cursor.at;
  const char next = cursor.Next();
  if (next == '{') {
    ExpandBraces(cursor, is_quoted, words);
  } else if (next == '(') {
    ++cursor.at;
    const bool is_arithmetic = cursor.Next() == '(';
    const size_t end = EndOf(cursor, '(', ')', "a parenthesis");
    std::optional<std::string> output;
    if (is_arithmetic && end - cursor.at >= 4) {
      const std::optional<int64_t> number =
          Calculate(std::string_view(cursor.text->text).substr(cursor.at + 2, end - cursor.at - 4));
      if (number) output = std::to_string(*number);
    } else if (end - cursor.at >= 2) {
      output = OutputOf(cursor.text->Part(cursor.at + 1, end - 1));
    }
    if (output) {
      LinedText lined;
      for (const char c : *output) lined.Add(c, line);
      Spend(output->size() + 1, line);
      InsertText(lined, is_quoted, words);
    } else {
      words->now.Add(*cursor.text, begin, end);
    }
    words->is_one = true;
    cursor.at = end;
  } else {
    size_t end = begin + 1;
    const std::string& text = cursor.text->text;
    if (IsNameBegin(next)) {
      while (end < text.size() && IsNamePart(text[end])) ++end;
    } else if (next != '\0' && (IsNamePart(next) ||
                                std::string_view("@*#?!$").find(next) != std::string_view::npos)) {
      ++end;
    }
    const ShellValue* const value = Find(std::string_view(text).substr(begin + 1, end - begin - 1));
    cursor.at = end;
    if (value != nullptr) {
      Insert(*value, /*all=*/false, is_quoted, words, line);
    } else {
      words->now.Add(*cursor.text, begin, end);
      words->is_one = true;
    }
  }
  --depth_;
}

// At a double quote.
void ShellReader::ReadQuoted(Cursor& cursor, Words* words) {
  const int line = cursor.Line();
  ++cursor.at;
  words->is_one = true;
  while (!cursor.AtEnd() && cursor.Now() != '"') {
    const char c = cursor.Now();
    const char next = cursor.Next();
    if (c == '\\' && next == '\n') {
      cursor.at += 2;
    } else if (c == '\\' && (next == '"' || next == '\\' || next == '$' || next == '`')) {
      words->now.Add(next, cursor.Line());
      cursor.at += 2;
    } else if (c == '$') {
      Expand(cursor, /*is_quoted=*/true, words);
    } else {
      words->now.Add(c, cursor.Line());
      ++cursor.at;
    }
  }
  if (cursor.AtEnd()) NeverClosed(line, "a quote (\")");
  ++cursor.at;
}

// `is_whole`: to the end of the text, blanks and all.
void ShellReader::ReadWord(Cursor& cursor, bool is_whole, Words* words) {
  while (!cursor.AtEnd() && (is_whole || !EndsWord(cursor.Now()))) {
    const char c = cursor.Now();
    const int line = cursor.Line();
    if (c == '\\') {
      if (cursor.Next() != '\n' && cursor.Next() != '\0') {
        words->now.Add(cursor.Next(), line);
        words->is_one = true;
      }
      cursor.at += 2;
    } else if (c == '\'' || c == '`') {
      const size_t end = cursor.text->text.find(c, cursor.at + 1);
      if (end == std::string::npos) NeverClosed(line, c == '`' ? "a quote (`)" : "a quote (')");
      words->now.Add(*cursor.text, c == '`' ? cursor.at : cursor.at + 1, c == '`' ? end + 1 : end);
      words->is_one = true;
      cursor.at = end + 1;
    } else if (c == '"') {
      ReadQuoted(cursor, words);
    } else if (c == '$') {
      Expand(cursor, /*is_quoted=*/false, words);
    } else {
      words->now.Add(c, line);
      words->is_one = true;
      ++cursor.at;
    }
  }
}

// ---- statements ---------------------------------------------------------------------------------

// Whether a text is what a pattern of * and ? says.
bool FitsPattern(std::string_view text, std::string_view pattern) {
  size_t at = 0;
  size_t in_pattern = 0;
  size_t star = std::string_view::npos;
  size_t behind_star = 0;
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      behind_star = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == text[at])) {
      ++at;
      ++in_pattern;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

std::optional<bool> Opposite(std::optional<bool> truth) {
  return truth ? std::optional<bool>(!*truth) : std::nullopt;
}
std::optional<bool> BothTrue(std::optional<bool> a, std::optional<bool> b) {
  if (a == false || b == false) return false;
  return a && b ? std::optional<bool>(true) : std::nullopt;
}
std::optional<bool> EitherTrue(std::optional<bool> a, std::optional<bool> b) {
  return Opposite(BothTrue(Opposite(a), Opposite(b)));
}

// The words between the brackets of a test: "a = b -a ( ! -z c )".
class ShellTest {
 public:
  ShellTest(std::vector<ShellWord> words, bool has_patterns,
            const std::vector<std::string>& left_open)
      : words_(std::move(words)), has_patterns_(has_patterns), left_open_(left_open) {}

  std::optional<bool> Truth() {
    if (words_.empty()) return false;
    const std::optional<bool> truth = Any(0);
    return at_ == words_.size() ? truth : std::nullopt;
  }

 private:
  static constexpr int kDeepest = 64;

  const std::string& Word(size_t by = 0) const {
    static const std::string none;
    return at_ + by < words_.size() ? words_[at_ + by].text : none;
  }
  bool Ends(size_t by) const {
    if (at_ + by >= words_.size()) return true;
    const std::string& word = Word(by);
    return word == "-a" || word == "-o" || word == "&&" || word == "||" || word == ")";
  }

  std::optional<bool> Any(int depth) {
    std::optional<bool> truth = All(depth);
    while (Word() == "-o" || Word() == "||") {
      ++at_;
      truth = EitherTrue(truth, All(depth));
    }
    return truth;
  }
  std::optional<bool> All(int depth) {
    std::optional<bool> truth = One(depth);
    while (Word() == "-a" || Word() == "&&") {
      ++at_;
      truth = BothTrue(truth, One(depth));
    }
    return truth;
  }
  std::optional<bool> One(int depth) {
    if (depth > kDeepest) {
      at_ = words_.size();
      return std::nullopt;
    }
    if (Word() == "!" && !Ends(1)) {
      ++at_;
      return Opposite(One(depth + 1));
    }
    if (Word() == "(") {
      ++at_;
      const std::optional<bool> truth = Any(depth + 1);
      if (Word() == ")") ++at_;
      return truth;
    }
    size_t count = 1;
    while (!Ends(count)) ++count;
    const std::optional<bool> truth = Comparison(count);
    at_ += count;
    return truth;
  }

  // "$NAME" or "${NAME}" of a variable that nothing sets, as ${NAME:-otherwise} also takes it.
  bool IsUnset(std::string_view word) const {
    constexpr std::string_view kGiven[] = {"SLURM",  "PMI",   "OMPI", "RANK", "WORLD",
                                           "MASTER", "LOCAL", "NODE", "HOST", "CUDA",
                                           "HOME",   "USER",  "PATH"};
    if (!word.starts_with("$")) return false;
    word.remove_prefix(1);
    if (word.starts_with("{") && word.ends_with("}")) word = word.substr(1, word.size() - 2);
    const bool is_name = !word.empty() && std::all_of(word.begin(), word.end(), IsNamePart);
    return is_name && std::find(left_open_.begin(), left_open_.end(), word) == left_open_.end() &&
           std::none_of(std::begin(kGiven), std::end(kGiven),
                        [&](std::string_view begin) { return word.starts_with(begin); });
  }

  std::optional<bool> Comparison(size_t count) const {
    if (count == 2 && (Word() == "-z" || Word() == "-n") && IsUnset(Word(1))) return Word() == "-z";
    const bool is_open = count > 3 || IsLeftOpen(Word()) || (count > 1 && IsLeftOpen(Word(1))) ||
                         (count > 2 && IsLeftOpen(Word(2)));
    if (is_open) return std::nullopt;
    if (count == 1) return !Word().empty();
    if (count == 2) {
      if (Word() == "-z") return Word(1).empty();
      if (Word() == "-n") return !Word(1).empty();
      return std::nullopt;  // of files
    }
    const std::string& a = Word();
    const std::string& op = Word(1);
    const std::string& b = Word(2);
    if (op == "=" || op == "==") return has_patterns_ ? FitsPattern(a, b) : a == b;
    if (op == "!=") return has_patterns_ ? !FitsPattern(a, b) : a != b;
    int64_t first = 0;
    int64_t second = 0;
    const auto is_number = [](const std::string& text, int64_t* number) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
      return error == std::errc() && end == text.data() + text.size();
    };
    if (!is_number(a, &first) || !is_number(b, &second)) return std::nullopt;
    if (op == "-eq") return first == second;
    if (op == "-ne") return first != second;
    if (op == "-lt") return first < second;
    if (op == "-le") return first <= second;
    if (op == "-gt") return first > second;
    if (op == "-ge") return first >= second;
    return std::nullopt;
  }

  std::vector<ShellWord> words_;
  bool has_patterns_ = false;
  const std::vector<std::string>& left_open_;
  size_t at_ = 0;
};

bool IsTest(const std::vector<ShellWord>& words) {
  return !words.empty() && (words[0].text == "[" || words[0].text == "[[" ||
                            words[0].text == "test" || words[0].text == "((");
}

// "[ a = b ]" and the like; nothing for commands that are not known.
std::optional<bool> ShellReader::TruthOf(const std::vector<ShellWord>& words) {
  if (words.empty()) return std::nullopt;
  const std::string& kind = words.front().text;
  if (kind == "!") return Opposite(TruthOf(std::vector<ShellWord>(words.begin() + 1, words.end())));
  if (kind == "true" || kind == ":") return true;
  if (kind == "false") return false;
  if (kind == "((" && words.size() == 2) {
    const std::string_view text = words[1].text;
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">"}) {
      const size_t at = text.find(op);
      if (at == std::string_view::npos) continue;
      const std::string_view sign = op;
      const std::optional<int64_t> a = Calculate(text.substr(0, at));
      const std::optional<int64_t> b = Calculate(text.substr(at + sign.size()));
      if (!a || !b) return std::nullopt;
      if (sign == "==") return *a == *b;
      if (sign == "!=") return *a != *b;
      if (sign == "<=") return *a <= *b;
      if (sign == ">=") return *a >= *b;
      return sign == "<" ? *a < *b : *a > *b;
    }
    const std::optional<int64_t> number = Calculate(text);
    return number ? std::optional<bool>(*number != 0) : std::nullopt;
  }
  const bool has_end = kind == "[" || kind == "[[";
  if (!has_end && kind != "test") return std::nullopt;
  if (has_end && words.back().text != (kind == "[" ? "]" : "]]")) return std::nullopt;
  return ShellTest({words.begin() + 1, words.end() - (has_end ? 1 : 0)}, kind == "[[",
                   script_.left_open)
      .Truth();
}

std::optional<bool> ShellReader::TruthOf(const std::vector<Condition>& conditions) {
  std::optional<bool> truth;
  std::string_view before;
  for (const Condition& condition : conditions) {
    const std::optional<bool> here = TruthOf(condition.words);
    truth = before == "&&"   ? BothTrue(truth, here)
            : before == "||" ? EitherTrue(truth, here)
            : before == "|"  ? std::nullopt
                             : here;
    before = condition.by;
  }
  return truth;
}

Runs RunsIf(std::optional<bool> truth) {
  return !truth ? Runs::kOpen : *truth ? Runs::kYes : Runs::kNo;
}

// `by` is what ends it: "&&", "||", or anything else.
void ShellReader::EndCommand(std::string_view by) {
  starts_ = true;
  std::vector<ShellWord> words = std::exchange(command_, {});
  if (in_condition_) {
    if (!words.empty()) {
      condition_.push_back({std::move(words), std::string(by)});
    } else if (!by.empty() && !condition_.empty()) {
      condition_.back().by = by;
    }
    return;
  }
  const Runs now = Now();
  if (by == "&&" || by == "||") {
    // What is not a test is taken to succeed. A command that is left out leaves what was before it.
    if (guard_ == Runs::kOpen) {
      status_ = std::nullopt;
    } else if (guard_ == Runs::kYes) {
      status_ = IsTest(words) || (words.size() == 1 && words.front().text == "false")
                    ? TruthOf(words)
                    : std::optional<bool>(true);
    }
    guard_ = RunsIf(by == "&&" ? status_ : Opposite(status_));
  } else {
    guard_ = Runs::kYes;
    status_ = true;
  }
  if (words.empty() || now == Runs::kNo) return;
  if (now == Runs::kYes) FindFile(words);
  script_.commands.push_back({std::move(words), now == Runs::kOpen});
}

// Of `source FILE`, `. FILE` and `sbatch ... FILE`. What comes before an unknown part of its path
// is the script's folder.
void ShellReader::FindFile(const std::vector<ShellWord>& words) {
  const std::string& command = words.front().text;
  const bool submits = command == "sbatch";
  if (!files_ || words.size() < 2 || !(submits || command == "." || command == "source")) return;
  const ShellWord* named = submits ? nullptr : &words[1];
  for (size_t i = 1; i < words.size() && submits && named == nullptr; ++i) {
    const std::string_view word = words[i].text;
    for (const char* ending : {".sh", ".slurm", ".sbatch"})
      if (word.ends_with(ending) && !word.starts_with("-")) named = &words[i];
  }
  if (submits) {
    for (size_t i = 1; i < words.size() && &words[i] != named; ++i)
      script_.batch_options.push_back(words[i]);
  }
  if (named == nullptr || script_.read_in.size() >= kMostFiles) return;
  std::string path = named->text;
  const size_t unknown = path.find_last_of("$`)}");
  if (unknown != std::string::npos) path.erase(0, std::min(path.find('/', unknown), path.size()));
  if (path.find("..") != std::string::npos) return;  // not this folder's
  while (!path.empty()) {
    const std::optional<std::string> text = path.front() == '/' ? std::nullopt : files_(path);
    if (text) {
      if (source_.text.size() + text->size() > kLargestScript)
        Fail(named->line, "scripts that are read in grow to more than 1 MiB");
      script_.read_in.push_back({path, named->line});
      file_.emplace();
      for (const char c : *text) file_->Add(c, named->line);
      file_->Add('\n', named->line);
      return;
    }
    const size_t slash = path.find('/');
    path.erase(0, slash == std::string::npos ? path.size() : slash + 1);
  }
}

// Puts a file that was found at the cursor.
void ShellReader::ReadIn(Cursor& cursor) {
  if (!file_) return;
  const LinedText file = *std::exchange(file_, std::nullopt);
  cursor.at = std::min(cursor.at, source_.text.size());
  source_.text.insert(cursor.at, file.text);
  source_.lines.insert(source_.lines.begin() + static_cast<ptrdiff_t>(cursor.at),
                       file.lines.begin(), file.lines.end());
}

void ShellReader::EndCondition() {
  in_condition_ = false;
  if (blocks_.empty()) return;
  Block& block = blocks_.back();
  const Runs here = RunsIf(TruthOf(condition_));
  condition_.clear();
  Runs branch = here;
  if (block.taken == Runs::kYes) branch = Runs::kNo;
  if (block.taken == Runs::kOpen && here != Runs::kNo) branch = Runs::kOpen;
  if (block.taken == Runs::kNo || here == Runs::kYes) {
    if (branch != Runs::kNo) block.taken = branch;
  }
  block.now = Both(block.outer, branch);
}

// Words that structure a script, where a command may begin.
bool ShellReader::TakeKeyword(Cursor& cursor) {
  if (!starts_ || !command_.empty()) return false;
  size_t end = cursor.at;
  while (end < cursor.text->text.size() && !EndsWord(cursor.text->text[end])) ++end;
  const std::string_view word =
      std::string_view(cursor.text->text).substr(cursor.at, end - cursor.at);
  const auto push = [&](bool is_if) {
    const Runs outer = Now();
    blocks_.push_back({.is_if = is_if, .outer = outer, .now = Both(outer, Runs::kOpen)});
  };
  if (word == "if") {
    push(true);
    in_condition_ = true;
  } else if (word == "elif") {
    in_condition_ = true;
  } else if (word == "then") {
    EndCondition();
  } else if (word == "else") {
    if (!blocks_.empty()) {
      Block& block = blocks_.back();
      const Runs branch = block.taken == Runs::kYes  ? Runs::kNo
                          : block.taken == Runs::kNo ? Runs::kYes
                                                     : Runs::kOpen;
      block.now = Both(block.outer, branch);
    }
  } else if (word == "case") {
    push(false);
    cursor.at = end;
    BeginCase(cursor);
    return true;
  } else if (word == "for" || word == "while" || word == "until") {
    push(false);
  } else if (word == "fi" || word == "done" || word == "esac") {
    if (!blocks_.empty()) blocks_.pop_back();
  } else if (word != "do" && word != "{" && word != "}" && word != "function" && word != "time" &&
             word != "exec") {
    return false;
  }
  cursor.at = end;
  return true;
}

// Behind `case`: the word that is compared, and `in`.
void ShellReader::BeginCase(Cursor& cursor) {
  const auto skip = [&cursor] {
    while (!cursor.AtEnd() && (IsBlank(cursor.Now()) || cursor.Now() == '\n')) ++cursor.at;
  };
  skip();
  Block& block = blocks_.back();
  block.subject = ReadText(cursor).text;
  block.is_case = true;
  block.awaits_pattern = true;
  skip();
  if (cursor.text->text.compare(cursor.at, 2, "in") == 0) cursor.at += 2;
}

// At what may be "a|b)" of a `case`.
void ShellReader::TakePattern(Cursor& cursor) {
  Block& block = blocks_.back();
  block.awaits_pattern = false;
  if (cursor.Now() == '(') ++cursor.at;
  std::optional<bool> fits = false;
  while (!cursor.AtEnd() && cursor.Now() != ')' && cursor.Now() != '\n') {
    if (EndsWord(cursor.Now())) {
      ++cursor.at;
      continue;
    }
    const std::string pattern = ReadText(cursor).text;
    const bool is_open =
        IsLeftOpen(pattern) || IsLeftOpen(block.subject) || pattern.find('[') != std::string::npos;
    const bool is_all = pattern == "*";
    fits = EitherTrue(fits, is_open && !is_all
                                ? std::optional<bool>()
                                : std::optional<bool>(FitsPattern(block.subject, pattern)));
  }
  if (!cursor.AtEnd() && cursor.Now() == ')') ++cursor.at;
  Runs branch = RunsIf(fits);
  if (block.taken == Runs::kYes) branch = Runs::kNo;
  if (block.taken == Runs::kOpen && branch == Runs::kYes) branch = Runs::kOpen;
  if (branch == Runs::kYes || (branch == Runs::kOpen && block.taken == Runs::kNo))
    block.taken = branch;
  block.now = Both(block.outer, branch);
}

// "((NAME = 2 * OTHER))", or a condition in such parentheses.
void ShellReader::TakeArithmetic(Cursor& cursor) {
  const int line = cursor.Line();
  const size_t end = EndOf(cursor, '(', ')', "a parenthesis");
  const size_t begin = cursor.at + 2;
  const std::string text =
      end >= begin + 2 ? cursor.text->text.substr(begin, end - 2 - begin) : std::string();
  cursor.at = end;
  size_t at = text.find_first_not_of(" \t\n");
  at = at == std::string::npos ? text.size() : at;
  size_t behind = at;
  while (behind < text.size() && IsNamePart(text[behind])) ++behind;
  const std::string variable = text.substr(at, behind - at);
  const size_t equals = text.find_first_not_of(" \t", behind);
  const bool assigns = !variable.empty() && IsNameBegin(variable[0]) &&
                       equals != std::string::npos && text[equals] == '=' &&
                       (equals + 1 >= text.size() || text[equals + 1] != '=');
  command_.push_back({"((", line});
  command_.push_back({text, line});
  if (!assigns) return;
  const std::optional<int64_t> number = Calculate(std::string_view(text).substr(equals + 1));
  if (!number) return;
  ShellValue value;
  value.parts.emplace_back();
  for (const char c : std::to_string(*number)) value.parts.front().Add(c, line);
  Assign(variable, std::move(value), /*appends=*/false, line);
}

LinedText ShellReader::ReadText(Cursor& cursor) {
  Words words{.splits = false};
  ReadWord(cursor, /*is_whole=*/false, &words);
  return std::move(words.now);
}

// Behind "NAME=(".
std::vector<LinedText> ShellReader::ReadArray(Cursor& cursor) {
  const int line = cursor.Line();
  Words words;
  while (true) {
    if (cursor.AtEnd()) NeverClosed(line, "an array");
    const char c = cursor.Now();
    if (c == ')') break;
    if (c == '#') {
      while (!cursor.AtEnd() && cursor.Now() != '\n') ++cursor.at;
    } else if (EndsWord(c)) {
      ++cursor.at;
    } else {
      ReadWord(cursor, /*is_whole=*/false, &words);
      words.Close();
    }
  }
  ++cursor.at;
  return std::move(words.done);
}

void ShellReader::Assign(const std::string& variable, ShellValue value, bool appends, int line) {
  if (fixed_.contains(variable)) return;
  if (Now() != Runs::kYes) {
    std::vector<std::string>& open = script_.left_open;
    if (Now() == Runs::kOpen && std::find(open.begin(), open.end(), variable) == open.end())
      open.push_back(variable);
    return;
  }
  size_t bytes = 0;
  for (const LinedText& part : value.parts) bytes += part.text.size() + 1;
  Spend(bytes, line);
  ShellValue& now = variables_[variable];
  if (!appends) {
    now = std::move(value);
  } else if (value.is_array) {
    now.is_array = true;
    for (LinedText& part : value.parts) now.parts.push_back(std::move(part));
  } else {
    if (now.parts.empty()) now.parts.emplace_back();
    now.parts.front().Add(value.parts.front());
  }
  if (!now.is_array) script_.variables[variable] = WordOf(now.parts.front(), line);
}

bool ShellReader::TakeAssignment(Cursor& cursor) {
  if (!starts_ || !IsNameBegin(cursor.Now())) return false;
  const std::string& text = cursor.text->text;
  size_t end = cursor.at;
  while (end < text.size() && IsNamePart(text[end])) ++end;
  const bool appends = end < text.size() && text[end] == '+';
  if (appends) ++end;
  if (end >= text.size() || text[end] != '=') return false;
  const int line = cursor.Line();
  const std::string variable = text.substr(cursor.at, end - cursor.at - (appends ? 1 : 0));
  cursor.at = end + 1;
  ShellValue value;
  if (!cursor.AtEnd() && cursor.Now() == '(') {
    ++cursor.at;
    value.is_array = true;
    value.parts = ReadArray(cursor);
  } else {
    value.parts.push_back(ReadText(cursor));
  }
  Assign(variable, std::move(value), appends, line);
  return true;
}

void ShellReader::TakeComment(Cursor& cursor) {
  const std::string& text = cursor.text->text;
  const size_t end = std::min(text.find('\n', cursor.at), text.size());
  const std::string_view comment = std::string_view(text).substr(cursor.at, end - cursor.at);
  constexpr std::string_view kBatch = "#SBATCH";
  if (comment.starts_with(kBatch)) {
    std::string word;
    for (const char c : comment.substr(kBatch.size())) {
      if (c == '#') break;
      if (!IsBlank(c)) {
        word += c;
        continue;
      }
      if (!word.empty()) script_.batch_options.push_back({word, cursor.Line()});
      word.clear();
    }
    if (!word.empty()) script_.batch_options.push_back({word, cursor.Line()});
  }
  cursor.at = end;
}

// At one of "<", ">", "&>".
void ShellReader::TakeRedirection(Cursor& cursor) {
  const auto is_digits = [](const std::string& text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool is_close = cursor.at > 0 && IsNamePart(cursor.text->text[cursor.at - 1]);
  if (is_close && !command_.empty() && is_digits(command_.back().text)) command_.pop_back();
  size_t opening = 0;
  while (!cursor.AtEnd() && (cursor.Now() == '<' || cursor.Now() == '>' || cursor.Now() == '&')) {
    if (cursor.Now() == '<') ++opening;
    ++cursor.at;
  }
  if (opening == 2 && !cursor.AtEnd() && cursor.Now() == '-') ++cursor.at;
  while (!cursor.AtEnd() && IsBlank(cursor.Now())) ++cursor.at;
  const LinedText target = ReadText(cursor);
  if (opening == 2) here_documents_.push_back(target.text);
}

// At the end of a line.
void ShellReader::SkipHereDocuments(Cursor& cursor) {
  const std::string& text = cursor.text->text;
  for (const std::string& last : std::exchange(here_documents_, {})) {
    const int line = cursor.Line();
    ShellWord document{"", line + 1};
    while (true) {
      const size_t begin = cursor.at + 1;
      if (begin >= text.size()) NeverClosed(line, "a here-document");
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view row = std::string_view(text).substr(begin, end - begin);
      while (row.starts_with('\t')) row.remove_prefix(1);
      cursor.at = end;
      if (row == last) break;
      document.text += row;
      document.text += '\n';
    }
    Spend(document.text.size() + 1, line);
    script_.documents.push_back(std::move(document));
  }
}

ShellScript ShellReader::Read() {
  if (source_.text.size() > kLargestScript)
    Fail(0, "found more than 1 MiB, expected a script of at most that size");
  Cursor cursor{&source_};
  while (!cursor.AtEnd()) {
    const char c = cursor.Now();
    const bool is_inside_test =
        !command_.empty() && command_.front().text == "[[" && command_.back().text != "]]";
    const bool is_pattern = !blocks_.empty() && blocks_.back().awaits_pattern && command_.empty();
    if (IsBlank(c)) {
      ++cursor.at;
    } else if (c == '\\' && cursor.Next() == '\n') {
      cursor.at += 2;
    } else if (is_inside_test && EndsWord(c) && c != '\n') {
      const bool is_double = (c == '&' || c == '|') && cursor.Next() == c;
      command_.push_back({std::string(is_double ? 2 : 1, c), cursor.Line()});
      cursor.at += is_double ? 2 : 1;
    } else if (is_pattern && c != '#' && c != '\n' && c != ';' &&
               cursor.text->text.compare(cursor.at, 4, "esac") != 0) {
      TakePattern(cursor);
    } else if (c == ';' && cursor.Next() == ';' && !blocks_.empty() && blocks_.back().is_case) {
      EndCommand("");
      blocks_.back().awaits_pattern = true;
      cursor.at += 2;
    } else if (c == '(' && cursor.Next() == '(' && command_.empty()) {
      TakeArithmetic(cursor);
    } else if (c == '#') {
      TakeComment(cursor);
    } else if (c == '<' || c == '>' || (c == '&' && cursor.Next() == '>')) {
      TakeRedirection(cursor);
    } else if (EndsWord(c)) {
      const bool is_double = (c == '&' || c == '|') && cursor.Next() == c;
      EndCommand(is_double ? (c == '&' ? "&&" : "||") : (c == '|' ? "|" : ""));
      if (c == '\n') SkipHereDocuments(cursor);
      cursor.at += is_double ? 2 : 1;
      ReadIn(cursor);
    } else if (!TakeKeyword(cursor) && !TakeAssignment(cursor)) {
      const int line = cursor.Line();
      Words words;
      ReadWord(cursor, /*is_whole=*/false, &words);
      words.Close();
      for (const LinedText& word : words.done) command_.push_back(WordOf(word, line));
      const bool declares =
          command_.size() == 1 && (command_[0].text == "export" || command_[0].text == "declare" ||
                                   command_[0].text == "local" || command_[0].text == "readonly");
      if (declares) command_.clear();
      starts_ = declares || (starts_ && command_.empty());
    }
    if (!cursor.AtEnd()) continue;
    EndCommand("");
    ReadIn(cursor);
  }
  EndCommand("");
  return std::move(script_);
}

}  // namespace

ShellScript ReadShellScript(std::string_view text, const std::string& name,
                            const ShellStart& start) {
  return ShellReader(text, name, start).Read();
}

bool IsLeftOpen(std::string_view word) {
  return word.find('$') != std::string_view::npos || word.find('`') != std::string_view::npos;
}

}  // namespace rehearse
