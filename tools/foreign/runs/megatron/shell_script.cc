#include "tools/foreign/runs/megatron/shell_script.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/runs/megatron/shell_arithmetic.h"

namespace rehearse {
namespace {

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
};

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& name)
      : name_(name), source_(WithLines(text)) {}

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
  void EndCondition();
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
  Runs guard_ = Runs::kYes;  // of a command behind && or ||
  bool in_condition_ = false;
  std::vector<std::vector<ShellWord>> condition_;
  std::vector<std::string> here_documents_;  // whose text begins on the next line
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
  size_t at = 0;
  while (at < inner.text.size() && IsNamePart(inner.text[at])) ++at;
  const std::string variable = inner.text.substr(0, at);
  std::string rest = inner.text.substr(at);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) {
    rest = rest.substr(3);
    at += 3;
  }
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
    std::optional<int64_t> number;
    if (is_arithmetic && end - cursor.at >= 4) {
      number = ShellArithmetic(
          std::string_view(cursor.text->text).substr(cursor.at + 2, end - cursor.at - 4),
          [this](std::string_view variable) { return NumberOf(variable); });
    }
    if (number) {
      for (const char c : std::to_string(*number)) words->now.Add(c, line);
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

// "[ a = b ]" and the like.
std::optional<bool> TruthOf(std::vector<ShellWord> words) {
  if (words.empty()) return std::nullopt;
  const std::string kind = words.front().text;
  const bool has_end = kind == "[" || kind == "[[";
  if (!has_end && kind != "test") return std::nullopt;
  if (has_end && words.back().text != (kind == "[" ? "]" : "]]")) return std::nullopt;
  words.erase(words.begin());
  if (has_end) words.pop_back();
  bool negates = false;
  if (!words.empty() && words.front().text == "!") {
    negates = true;
    words.erase(words.begin());
  }
  for (const ShellWord& word : words) {
    if (IsLeftOpen(word.text)) return std::nullopt;
  }
  std::optional<bool> truth;
  if (words.size() == 2) {
    if (words[0].text == "-z") truth = words[1].text.empty();
    if (words[0].text == "-n") truth = !words[1].text.empty();
  } else if (words.size() == 3) {
    const std::string& a = words[0].text;
    const std::string& b = words[2].text;
    const std::string& op = words[1].text;
    if (op == "=" || op == "==") truth = a == b;
    if (op == "!=") truth = a != b;
    int64_t first = 0;
    int64_t second = 0;
    const auto is_number = [](const std::string& text, int64_t* number) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
      return error == std::errc() && end == text.data() + text.size();
    };
    if (is_number(a, &first) && is_number(b, &second)) {
      if (op == "-eq") truth = first == second;
      if (op == "-ne") truth = first != second;
      if (op == "-lt") truth = first < second;
      if (op == "-le") truth = first <= second;
      if (op == "-gt") truth = first > second;
      if (op == "-ge") truth = first >= second;
    }
  }
  return truth ? std::optional<bool>(*truth != negates) : std::nullopt;
}

bool IsTest(const std::vector<ShellWord>& words) {
  return !words.empty() &&
         (words[0].text == "[" || words[0].text == "[[" || words[0].text == "test");
}

Runs RunsIf(std::optional<bool> truth) {
  return !truth ? Runs::kOpen : *truth ? Runs::kYes : Runs::kNo;
}

// `by` is what ends it: "&&", "||", or anything else.
void ShellReader::EndCommand(std::string_view by) {
  starts_ = true;
  std::vector<ShellWord> words = std::exchange(command_, {});
  const Runs now = Now();
  if (by == "&&" || by == "||") {
    const std::optional<bool> truth = IsTest(words) ? TruthOf(words) : std::optional<bool>(true);
    guard_ = Both(guard_, RunsIf(truth && by == "||" ? std::optional<bool>(!*truth) : truth));
  } else {
    guard_ = Runs::kYes;
  }
  if (in_condition_) {
    if (!words.empty()) condition_.push_back(std::move(words));
    return;
  }
  if (words.empty() || now == Runs::kNo) return;
  script_.commands.push_back({std::move(words), now == Runs::kOpen});
}

void ShellReader::EndCondition() {
  in_condition_ = false;
  if (blocks_.empty()) return;
  Block& block = blocks_.back();
  const Runs here =
      RunsIf(condition_.size() == 1 ? TruthOf(condition_.front()) : std::optional<bool>());
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
    blocks_.push_back({is_if, outer, Both(outer, Runs::kOpen), Runs::kNo});
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
  } else if (word == "for" || word == "while" || word == "until" || word == "case") {
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
    while (true) {
      const size_t begin = cursor.at + 1;
      if (begin >= text.size()) NeverClosed(line, "a here-document");
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view row = std::string_view(text).substr(begin, end - begin);
      while (row.starts_with('\t')) row.remove_prefix(1);
      cursor.at = end;
      if (row == last) break;
    }
  }
}

ShellScript ShellReader::Read() {
  if (source_.text.size() > kLargestScript)
    Fail(0, "found more than 1 MiB, expected a script of at most that size");
  Cursor cursor{&source_};
  while (!cursor.AtEnd()) {
    const char c = cursor.Now();
    if (IsBlank(c)) {
      ++cursor.at;
    } else if (c == '\\' && cursor.Next() == '\n') {
      cursor.at += 2;
    } else if (c == '#') {
      TakeComment(cursor);
    } else if (c == '<' || c == '>' || (c == '&' && cursor.Next() == '>')) {
      TakeRedirection(cursor);
    } else if (EndsWord(c)) {
      const bool is_double = (c == '&' || c == '|') && cursor.Next() == c;
      EndCommand(is_double ? (c == '&' ? "&&" : "||") : "");
      if (c == '\n') SkipHereDocuments(cursor);
      cursor.at += is_double ? 2 : 1;
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
  }
  EndCommand("");
  return std::move(script_);
}

}  // namespace

ShellScript ReadShellScript(std::string_view text, const std::string& name) {
  return ShellReader(text, name).Read();
}

bool IsLeftOpen(std::string_view word) {
  return word.find('$') != std::string_view::npos || word.find('`') != std::string_view::npos;
}

}  // namespace rehearse
